#pragma once

#include <cstddef>
#include <string>

#include "model/gguf/gguf_file.h"

namespace tandem {

struct DescribeOptions {
  size_t items_shown = 6;         // of an array
  size_t text_bytes_shown = 120;  // of a string value, human form only
  bool tensors = true;            // list each tensor, not only the totals
};

/// What is in a file, for a person: size, metadata with long values shortened, tensors, bytes by
/// type. Control characters of the file are escaped. Ends with a newline.
std::string describe_text(const GgufFile& file, const DescribeOptions& options = {});

/// The same as one JSON object: file, bytes, splits, alignment, parameters, metadata (key to type
/// and value; arrays as type, count and first items), tensors, types. Strings that are not UTF-8
/// have U+FFFD in place of the wrong bytes.
std::string describe_json(const GgufFile& file, const DescribeOptions& options = {});

}  // namespace tandem
