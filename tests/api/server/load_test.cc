// Many clients at once, on loopback.

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "tests/api/server/script_texts.h"
#include "tests/support/http_client.h"
#include "tests/support/test_server.h"

namespace tandem::test {
namespace {

using std::chrono::milliseconds;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsOurs = false;  // a sanitizer keeps several bytes for each of ours
#else
constexpr bool kMemoryIsOurs = true;
#endif

/// Resident memory of this process, in bytes.
int64_t resident_bytes() {
  std::ifstream status("/proc/self/statm");
  int64_t size_pages = 0;
  int64_t resident_pages = 0;
  status >> size_pages >> resident_pages;
  return resident_pages * 4096;
}

TEST(LoadTest, TwoHundredIdleStreamsBesideSixteenActiveOnes) {
  constexpr int kActive = 16;
  constexpr int kIdle = 200;  // they wait for a session and get heartbeats
  TestServer::Options options;
  options.stage.num_banks = kActive;
  options.server.heartbeat_interval = milliseconds(500);
  TestServer server(
      {{.when = "", .say = "la ", .endless = true, .token_delay = milliseconds(1)}}, options);
  const std::string request = http_request(
      "POST", "/v1/chat/completions",
      chat_body("hi", R"("stream":true,"thinking":{"type":"disabled"})"));
  const int64_t before = resident_bytes();

  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<std::string> received;
  for (int i = 0; i < kActive + kIdle; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    ASSERT_TRUE(clients.back()->send(request));
  }
  for (const auto& client : clients) {
    received.push_back(client->read_until("\"role\":\"assistant\""));
    ASSERT_NE(received.back().find("200 OK"), std::string::npos) << received.back();
  }
  std::this_thread::sleep_for(milliseconds(1500));

  int num_active = 0;
  int num_beating = 0;
  for (size_t i = 0; i < clients.size(); ++i) {
    received[i] += clients[i]->read_until("never", milliseconds(5));
    EXPECT_FALSE(clients[i]->saw_end()) << i;
    EXPECT_EQ(received[i].find("error"), std::string::npos) << received[i];
    const bool is_active = received[i].find("\"content\":\"la") != std::string::npos;
    num_active += is_active;
    num_beating += !is_active && received[i].find(": prefill") != std::string::npos;
  }
  const int64_t grown = resident_bytes() - before;
  std::printf(
      "%d active, %d idle with heartbeats, memory grew by %.1f MB\n", num_active, num_beating,
      static_cast<double>(grown) / 1e6);
  EXPECT_EQ(num_active, kActive);
  EXPECT_EQ(num_beating, kIdle);
  if (kMemoryIsOurs) {
    EXPECT_LT(grown, 100'000'000);
  }

  clients.clear();
  const auto is_busy = [&] {
    const EngineStats stats = server.engine().stats;
    return server.metrics().inflight() + stats.num_running + stats.num_waiting > 0;
  };
  for (int i = 0; i < 500 && is_busy(); ++i) std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(server.metrics().inflight(), 0);
  for (const auto& bank : server.engine().banks) EXPECT_FALSE(bank.busy);
}

}  // namespace
}  // namespace tandem::test
