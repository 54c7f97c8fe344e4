#include "base/mapped_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <utility>

#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

TEST(MappedFileTest, MapsWholeFile) {
  const std::string path = test::temp_path("mapped");
  std::ofstream(path) << "tandem";
  auto file = MappedFile::open(path);
  ASSERT_OK(file);
  ASSERT_EQ(file->bytes().size(), 6U);
  EXPECT_EQ(std::to_integer<char>(file->bytes()[5]), 'm');
  const MappedFile moved = std::move(*file);
  EXPECT_EQ(moved.bytes().size(), 6U);
}

TEST(MappedFileTest, NamesWhatIsWrong) {
  EXPECT_ERROR(MappedFile::open("/nonexistent/x"), StatusCode::kNotFound, "/nonexistent/x");
  EXPECT_ERROR(MappedFile::open("/tmp"), StatusCode::kInvalidArgument, "not a regular file");
  const std::string path = test::temp_path("empty");
  std::ofstream{path}.flush();
  EXPECT_ERROR(MappedFile::open(path), StatusCode::kInvalidArgument, "with content");
}

}  // namespace
}  // namespace tandem
