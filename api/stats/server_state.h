#pragma once

#include <cstdint>
#include <string>

#include "api/generation/tool_memory.h"
#include "api/json/json.h"
#include "api/metrics/server_metrics.h"
#include "api/models/model_list.h"
#include "coordinator/engine/service.h"

namespace tandem::api {

/// One look at the whole server, for those who watch it.
struct ServerState {
  const ServerMetrics& metrics;
  EngineSnapshot engine;
  ToolMemoryStats tools;
  ServedModel model;
  std::string version;
  double uptime_s = 0;
  int64_t clients = 0;
  int64_t bodies_bytes = 0;
  int64_t shed_clients = 0;
  int64_t shed_bodies = 0;
};

/// The Prometheus text format, version 0.0.4. Every family and label is there from the start.
std::string metrics_text(const ServerState& state);

/// The object of GET /v1/stats with Accept: application/json.
Json stats_json(const ServerState& state);
/// The same for a terminal.
std::string stats_text(const ServerState& state);

}  // namespace tandem::api
