#include "model/families/families.h"

#include "model/families/deepseek_v4/model.h"

namespace tandem {
namespace {

struct Family {
  bool (*matches)(const GgufFile& file);
  Result<std::shared_ptr<const Model>> (*open)(const GgufFile& file);
};

// The only place that lists the families.
constexpr Family kFamilies[] = {
    {is_deepseek_v4, open_deepseek_v4},
};

}  // namespace

Result<std::shared_ptr<const Model>> open_model(const GgufFile& file) {
  for (const Family& family : kFamilies) {
    if (family.matches(file)) return family.open(file);
  }
  TANDEM_TRY_ASSIGN(const std::string_view architecture, file.get_string("general.architecture"));
  return Status(
      StatusCode::kUnimplemented,
      str_cat(file.name(), ": architecture \"", architecture, "\" is not supported"));
}

}  // namespace tandem
