#include "model/gguf/gguf_writer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "model/gguf/gguf_file.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

TEST(GgufWriterTest, RoundTripsTensorsAndEveryMetadataType) {
  const std::vector<float> first = {1, 2, 3, 4, 5, 6};
  const std::vector<float> second = {7, 8};
  const std::string path = test::temp_path("round_trip.gguf");
  GgufWriter writer;
  writer.set_alignment(64);
  writer.set_u8("u8", 1);
  writer.set_u16("u16", 2);
  writer.set_u32("u32", 3);
  writer.set_i32("i32", -4);
  writer.set_u64("u64", 5);
  writer.set_i64("i64", -6);
  writer.set_f32("f32", 0.5f);
  writer.set_f64("f64", 0.25);
  writer.set_bool("bool", true);
  writer.set_string("string", "text");
  const uint8_t u8s[] = {9, 8};
  writer.set_u8_array("u8s", u8s);
  const std::vector<std::string> texts = {"a", "", "c"};
  writer.set_string_array("texts", texts);
  writer.add_tensor("first", DType::kF32, {3, 2}, bytes_of(first));
  writer.add_tensor("second", DType::kF32, {2}, [&](const GgufWriter::Sink& sink) -> Status {
    TANDEM_TRY(sink(bytes_of(second).first(3)));  // pieces of any size
    return sink(bytes_of(second).subspan(3));
  });
  writer.add_zeros("zeros", DType::kQ8_0, {64, 2});
  ASSERT_OK(writer.write(path));

  const auto file = GgufFile::open(path);
  ASSERT_OK(file);
  EXPECT_EQ(file->alignment(), 64U);
  EXPECT_EQ(*file->get_u64("u8"), 1U);
  EXPECT_EQ(*file->get_u64("u16"), 2U);
  EXPECT_EQ(*file->get_u64("u32"), 3U);
  EXPECT_EQ(*file->get_i64("i32"), -4);
  EXPECT_EQ(*file->get_u64("u64"), 5U);
  EXPECT_EQ(*file->get_i64("i64"), -6);
  EXPECT_EQ(*file->get_f64("f32"), 0.5);
  EXPECT_EQ(*file->get_f64("f64"), 0.25);
  EXPECT_TRUE(*file->get_bool("bool"));
  EXPECT_EQ(*file->get_string("string"), "text");
  EXPECT_EQ(*file->get_u64_array("u8s"), (std::vector<uint64_t>{9, 8}));
  EXPECT_EQ((*file->get_string_array("texts"))[2], "c");
  const TensorInfo* tensor = file->find_tensor("first");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->dims, (std::vector<uint64_t>{3, 2}));
  EXPECT_EQ(std::memcmp(tensor->data, first.data(), tensor->bytes), 0);
  tensor = file->find_tensor("second");
  EXPECT_EQ(std::memcmp(tensor->data, second.data(), tensor->bytes), 0);
  tensor = file->find_tensor("zeros");
  EXPECT_EQ(tensor->bytes, 4U * 34);
  EXPECT_EQ(std::to_integer<int>(tensor->data[135]), 0);
}

TEST(GgufWriterTest, CopiesTheBundledModelByteForByte) {
  const auto source = GgufFile::open(test::repo_path("models/nano-q4_k.gguf"));
  ASSERT_OK(source);
  GgufWriter writer;
  for (const auto& [key, value] : source->metadata()) writer.set_value(key, value);
  for (const TensorInfo& tensor : source->tensors()) {
    writer.add_tensor(tensor.name, tensor.dtype, tensor.dims, {tensor.data, tensor.bytes});
  }
  const std::string path = test::temp_path("copy.gguf");
  ASSERT_OK(writer.write(path));
  EXPECT_TRUE(test::read_text(path) == test::read_text(test::repo_path("models/nano-q4_k.gguf")));
}

TEST(GgufWriterTest, WritesZerosAsAHole) {
  const std::string path = test::temp_path("hole.gguf");
  GgufWriter writer;
  writer.add_zeros("t", DType::kF32, {1 << 20, 1 << 12});
  ASSERT_OK(writer.write(path));
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_GT(info.st_size, 1LL << 34);
  EXPECT_LT(info.st_blocks * 512LL, 1LL << 20);
  EXPECT_OK(GgufFile::open(path));
  ::unlink(path.c_str());
}

TEST(GgufWriterTest, ReturnsTheFirstMistake) {
  const auto mistake = [](const char* text, auto&& calls) {
    GgufWriter writer;
    calls(writer);
    EXPECT_ERROR(writer.write(test::temp_path("mistake.gguf")), StatusCode::kInvalidArgument, text);
    EXPECT_NE(::access(test::temp_path("mistake.gguf").c_str(), F_OK), 0);
    EXPECT_NE(::access((test::temp_path("mistake.gguf") + ".part").c_str(), F_OK), 0);
  };
  const std::vector<float> four = {1, 2, 3, 4};
  mistake("key k is set twice", [](GgufWriter& w) {
    w.set_u8("k", 1);
    w.set_u8("k", 1);
  });
  mistake("a key has 0 bytes", [](GgufWriter& w) { w.set_u8("", 1); });
  mistake("tensor t is added twice", [](GgufWriter& w) {
    w.add_zeros("t", DType::kF32, {1});
    w.add_zeros("t", DType::kF32, {1});
  });
  mistake("tensor t: size overflows", [](GgufWriter& w) {
    w.add_zeros("t", DType::kF32, {1ULL << 40, 1ULL << 40});
  });
  mistake("5 dimensions", [](GgufWriter& w) { w.add_zeros("t", DType::kF32, {1, 1, 1, 1, 1}); });
  mistake("alignment 7", [](GgufWriter& w) { w.set_alignment(7); });
  mistake("after the first tensor", [](GgufWriter& w) {
    w.add_zeros("t", DType::kF32, {1});
    w.set_alignment(64);
  });
  mistake("got 16 of 20 bytes", [&](GgufWriter& w) {
    w.add_tensor("t", DType::kF32, {5}, bytes_of(four));
  });
  mistake("got more than its 12 bytes", [&](GgufWriter& w) {
    w.add_tensor("t", DType::kF32, {3}, bytes_of(four));
  });
  mistake("from the payload", [&](GgufWriter& w) {
    w.add_tensor("t", DType::kF32, {3}, [](const GgufWriter::Sink&) {
      return invalid_argument("from the payload");
    });
  });
}

TEST(GgufWriterTest, NamesAnUnwritablePath) {
  EXPECT_ERROR(
      GgufWriter().write("/nonexistent/folder/x.gguf"), StatusCode::kUnavailable,
      "/nonexistent/folder/x.gguf");
}

}  // namespace
}  // namespace tandem
