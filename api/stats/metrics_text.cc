#include <span>
#include <sstream>
#include <string_view>

#include "api/stats/server_state.h"

namespace tandem::api {
namespace {

/// Writes families, each with its help and type.
class Families {
 public:
  void counter(std::string_view name, std::string_view help, int64_t value) {
    head(name, help, "counter");
    out_ << "tandem_" << name << ' ' << value << '\n';
  }
  template <class T>
  void gauge(std::string_view name, std::string_view help, T value) {
    head(name, help, "gauge");
    out_ << "tandem_" << name << ' ' << value << '\n';
  }
  template <size_t kSize>
  void counters(
      std::string_view name, std::string_view help, std::string_view label,
      const std::array<const char*, kSize>& names,
      const std::array<std::atomic<int64_t>, kSize>& values) {
    head(name, help, "counter");
    for (size_t i = 0; i < kSize; ++i) sample(name, label, names[i], values[i].load());
  }
  void head(std::string_view name, std::string_view help, std::string_view type) {
    out_ << "# HELP tandem_" << name << ' ' << help << "\n# TYPE tandem_" << name << ' ' << type
         << '\n';
  }
  void sample(
      std::string_view name, std::string_view label, std::string_view label_value, int64_t value) {
    out_ << "tandem_" << name << '{' << label << "=\"" << label_value << "\"} " << value << '\n';
  }
  std::string text() const { return out_.str(); }

 private:
  std::ostringstream out_;
};

void write_requests(const ServerState& state, Families& out) {
  const ServerMetrics& metrics = state.metrics;
  out.counter("requests_started_total", "Generations begun.", metrics.requests_started);
  out.counters(
      "requests_total", "Generations ended, by how.", "outcome", kOutcomeNames, metrics.requests);
  out.gauge("requests_inflight", "Generations begun and not ended.", metrics.inflight());
  out.counters(
      "surface_requests_total", "Generations begun, by API.", "surface", kSurfaceNames,
      metrics.surfaces);
  out.counters(
      "requests_think_total", "Generations begun, by reasoning effort.", "mode", kThinkNames,
      metrics.thinks);
  constexpr std::string_view kShed = "requests_shed_total";
  out.head(kShed, "Requests turned away to protect the others.", "counter");
  out.sample(kShed, "reason", "clients", state.shed_clients);
  out.sample(kShed, "reason", "queue_depth", metrics.shed_queue);
  out.sample(kShed, "reason", "queue_bytes", state.shed_bodies);
  out.sample(kShed, "reason", "slow_reader", metrics.shed_slow_reader);
  out.counters(
      "client_disconnects_total", "Clients that left before their answer was complete.", "phase",
      kPhaseNames, metrics.disconnects);
  out.gauge("clients_connected", "Open connections.", state.clients);
  out.gauge("queue_depth", "Generations that wait for a session.", state.engine.stats.num_waiting);
  out.gauge("inflight_body_bytes", "Bytes of request bodies in memory.", state.bodies_bytes);
}

void write_tokens(const ServerState& state, Families& out) {
  const EngineStats& stats = state.engine.stats;
  constexpr std::string_view kPrefilled = "tokens_prefilled_total";
  out.head(kPrefilled, "Prompt tokens, computed or reused.", "counter");
  out.sample(kPrefilled, "kind", "computed", stats.prompt_tokens);
  out.sample(kPrefilled, "kind", "cached", stats.cached_tokens);
  out.counter("tokens_decoded_total", "Tokens generated.", stats.generated_tokens);
  out.counter("engine_steps_total", "Forward passes.", stats.steps);
  int64_t warm = 0;
  for (const auto& bank : state.engine.banks) warm += !bank.busy && bank.num_tokens > 0;
  out.gauge("banks_live", "Sessions that run.", stats.num_running);
  out.gauge("banks_warm", "Idle sessions whose tokens can be reused.", warm);
  out.gauge("banks_total", "Sessions.", state.engine.banks.size());
}

void write_tools(const ServerState& state, Families& out) {
  out.counters(
      "tool_parse_total", "Answers with a tool call, by how it was read.", "result",
      kParseResultNames, state.metrics.tool_parses);
  constexpr std::string_view kReplay = "tool_replay_total";
  out.head(kReplay, "Replayed messages with calls, by where their text came from.", "counter");
  out.sample(kReplay, "source", "mem", state.tools.replayed);
  out.sample(kReplay, "source", "canonical", state.tools.canonical);
  out.sample(kReplay, "source", "missing", state.tools.missing);
  out.gauge("tool_replay_ids", "Calls whose exact text is remembered.", state.tools.num_ids);
  out.gauge("tool_replay_bytes", "Bytes of that text.", state.tools.block_bytes);
}

}  // namespace

std::string metrics_text(const ServerState& state) {
  Families out;
  out.gauge("uptime_seconds", "Since the server started.", state.uptime_s);
  write_requests(state, out);
  write_tokens(state, out);
  write_tools(state, out);
  return out.text();
}

}  // namespace tandem::api
