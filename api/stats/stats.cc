#include <algorithm>
#include <cmath>
#include <sstream>

#include "api/stats/server_state.h"

namespace tandem::api {
namespace {

template <size_t kSize>
Json named(
    const std::array<const char*, kSize>& names,
    const std::array<std::atomic<int64_t>, kSize>& values) {
  Json out;
  for (size_t i = 0; i < kSize; ++i) out[names[i]] = values[i].load();
  return out;
}

const char* bank_state(const BankDirectory::BankInfo& bank) {
  if (bank.busy) return "busy";
  return bank.num_tokens > 0 ? "warm" : "free";
}

}  // namespace

Json stats_json(const ServerState& state) {
  const ServerMetrics& metrics = state.metrics;
  const EngineStats& stats = state.engine.stats;
  Json out;
  out["model"] = state.model.id;
  out["version"] = state.version;
  out["uptime_s"] = std::floor(state.uptime_s);
  out["context_length"] = state.model.context_tokens;
  Json& requests = out["requests"] = named(kOutcomeNames, metrics.requests);
  requests["started"] = metrics.requests_started.load();
  requests["inflight"] = metrics.inflight();
  requests["running"] = stats.num_running;
  out["tokens"] = {
      {"prompt_computed", stats.prompt_tokens},
      {"prompt_cached", stats.cached_tokens},
      {"generated", stats.generated_tokens},
      {"steps", stats.steps}};
  out["routes"] = named(kSurfaceNames, metrics.surfaces);
  out["think_modes"] = named(kThinkNames, metrics.thinks);
  out["sheds"] = {
      {"clients", state.shed_clients},
      {"queue_depth", metrics.shed_queue.load()},
      {"queue_bytes", state.shed_bodies},
      {"slow_reader", metrics.shed_slow_reader.load()}};
  out["disconnects"] = named(kPhaseNames, metrics.disconnects);
  out["tool_parses"] = named(kParseResultNames, metrics.tool_parses);
  out["tool_replay"] = {
      {"ids", state.tools.num_ids},
      {"bytes", state.tools.block_bytes},
      {"mem", state.tools.replayed},
      {"canonical", state.tools.canonical},
      {"missing", state.tools.missing}};
  out["clients"] = state.clients;
  out["queue_depth"] = stats.num_waiting;
  out["inflight_body_bytes"] = state.bodies_bytes;
  Json& banks = out["banks"] = Json::array();
  for (size_t i = 0; i < state.engine.banks.size(); ++i) {
    const auto& bank = state.engine.banks[i];
    banks.push_back({{"index", i}, {"state", bank_state(bank)}, {"tokens", bank.num_tokens}});
  }
  return out;
}

std::string stats_text(const ServerState& state) {
  const ServerMetrics& metrics = state.metrics;
  const EngineStats& stats = state.engine.stats;
  std::ostringstream out;
  out << "tandem " << state.version << "  " << state.model.id << "  context "
      << state.model.context_tokens << "  up " << std::floor(state.uptime_s) << " s\n\n"
      << "requests  " << stats.num_running << " running, " << stats.num_waiting << " waiting, "
      << metrics.requests[0] << " completed, " << metrics.requests[1] << " failed, "
      << metrics.requests[2] << " canceled\n"
      << "clients   " << state.clients << " connected, " << state.bodies_bytes
      << " bytes of bodies\n"
      << "tokens    " << stats.generated_tokens << " generated, " << stats.prompt_tokens
      << " read, " << stats.cached_tokens << " reused\n"
      << "tools     " << state.tools.replayed << " replayed, " << state.tools.canonical
      << " written anew, " << state.tools.missing << " unknown, " << state.tools.num_ids
      << " calls remembered\n\n";
  for (size_t i = 0; i < state.engine.banks.size(); ++i) {
    const auto& bank = state.engine.banks[i];
    out << "session " << i << "  " << bank_state(bank) << "  " << bank.num_tokens << " tokens\n";
  }
  return out.str();
}

}  // namespace tandem::api
