#include "api/http/request_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem::api {
namespace {

using namespace std::string_view_literals;

using State = HttpRequestReader::State;

/// Reads `bytes` in pieces of `step`.
HttpRequestReader read(std::string_view bytes, size_t step = SIZE_MAX) {
  HttpRequestReader reader;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, step);
    reader.push(piece);
    bytes.remove_prefix(piece.size());
  }
  return reader;
}

int error_status(std::string_view bytes) {
  const HttpRequestReader reader = read(bytes);
  EXPECT_EQ(reader.state(), State::kFailed) << bytes.substr(0, 80);
  return reader.error().http_status;
}

TEST(HttpRequestReaderTest, ReadsALengthBodyHoweverItIsCut) {
  const std::string bytes =
      "POST /v1/chat/completions?beta=true HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
      "X-Api-Key:  secret \r\n\r\nhello";
  for (const size_t step : {size_t{1}, size_t{2}, size_t{7}, bytes.size()}) {
    SCOPED_TRACE(step);
    const HttpRequestReader reader = read(bytes, step);
    ASSERT_EQ(reader.state(), State::kDone);
    EXPECT_EQ(reader.request().method, "POST");
    EXPECT_EQ(reader.request().path, "/v1/chat/completions");
    EXPECT_EQ(reader.request().query, "beta=true");
    EXPECT_EQ(reader.request().header("x-api-key"), "secret");
    EXPECT_EQ(reader.request().body, "hello");
  }
}

TEST(HttpRequestReaderTest, JoinsChunksAndDropsExtensionsAndTrailers) {
  const std::string bytes =
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3;name=value\r\nabc\r\n00A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
  for (const size_t step : {size_t{1}, size_t{3}, bytes.size()}) {
    const HttpRequestReader reader = read(bytes, step);
    ASSERT_EQ(reader.state(), State::kDone) << step;
    EXPECT_EQ(reader.request().body, "abc0123456789");
  }
}

TEST(HttpRequestReaderTest, AcceptsBareLineFeeds) {
  const HttpRequestReader reader = read("GET /health HTTP/1.0\nHost: x\n\n");
  ASSERT_EQ(reader.state(), State::kDone);
  EXPECT_EQ(reader.request().path, "/health");
}

TEST(HttpRequestReaderTest, DropsWhatFollowsTheRequest) {
  const HttpRequestReader reader =
      read("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nokGET /other HTTP/1.1\r\n\r\n");
  ASSERT_EQ(reader.state(), State::kDone);
  EXPECT_EQ(reader.request().body, "ok");
}

TEST(HttpRequestReaderTest, RefusesBadFraming) {
  const std::string post = "POST / HTTP/1.1\r\n";
  EXPECT_EQ(error_status("GARBAGE\r\n\r\n"), 400);
  EXPECT_EQ(error_status("GET  HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(error_status("GET http://x/ HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(error_status("GET / HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(error_status("GET / HTTP/1.1\r\nBad Header: x\r\n\r\n"), 400);
  EXPECT_EQ(error_status("GET / HTTP/1.1\r\nA: x\r\n folded\r\n\r\n"), 400);
  EXPECT_EQ(error_status("GET / HTTP/1.1\r\nA: x\0y\r\n\r\n"sv), 400);
  EXPECT_EQ(error_status(post + "\r\n"), 411);
  EXPECT_EQ(error_status(post + "Content-Length: -1\r\n\r\n"), 400);
  EXPECT_EQ(error_status(post + "Content-Length: 1x\r\n\r\n"), 400);
  EXPECT_EQ(error_status(post + "Transfer-Encoding: gzip\r\n\r\n"), 400);
  EXPECT_EQ(error_status(post + "Transfer-Encoding: gzip, chunked\r\n\r\n"), 400);
  EXPECT_EQ(error_status(post + "Expect: tea\r\nContent-Length: 0\r\n\r\n"), 417);
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(error_status(chunked + "zz\r\n"), 400);
  EXPECT_EQ(error_status(chunked + "\r\n"), 400);
  EXPECT_EQ(error_status(chunked + "2\r\nabc\r\n"), 400);
  EXPECT_EQ(error_status(chunked + "fffffffffffffffff\r\n"), 400);
}

TEST(HttpRequestReaderTest, B056BoundsHeadAndBody) {
  EXPECT_EQ(error_status("GET / HTTP/1.1\r\nA: " + std::string(1 << 20, 'a')), 431);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 10000; ++i) many += "A: b\r\n";
  EXPECT_EQ(error_status(many + "\r\n"), 431);
  EXPECT_EQ(error_status("GET /" + std::string(2000, 'a') + " HTTP/1.1\r\n\r\n"), 414);
  const std::string post = "POST / HTTP/1.1\r\n";
  EXPECT_EQ(error_status(post + "Content-Length: 9223372036854775808\r\n\r\n"), 413);
  EXPECT_EQ(error_status(post + "Content-Length: 67108865\r\n\r\n"), 413);
  EXPECT_EQ(error_status(post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"), 400);
  EXPECT_EQ(
      error_status(post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(error_status(post + "Transfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n"), 413);
}

TEST(HttpRequestReaderTest, AHeadOfExactlyTheLimitPasses) {
  std::string head = "GET / HTTP/1.1\r\n";
  while (static_cast<int64_t>(head.size()) < kHttpHeadBytesMax - 4) {
    const auto left = static_cast<size_t>(kHttpHeadBytesMax - 4) - head.size();
    const size_t size = std::min<size_t>(left, 1000);
    if (size < 6) break;
    head += "A: " + std::string(size - 5, 'x') + "\r\n";
  }
  EXPECT_EQ(read(head + "\r\n").state(), State::kDone);
}

TEST(HttpRequestReaderTest, AsksToContinueOnce) {
  HttpRequestReader reader;
  reader.push("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_TRUE(reader.take_continue());
  EXPECT_FALSE(reader.take_continue());
  EXPECT_EQ(reader.push("ok"), State::kDone);
}

}  // namespace
}  // namespace tandem::api
