#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "kernels/core/scratch.h"

struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

namespace tandem::cuda {

// Devices, memory, streams and graphs for callers that are compiled without nvcc. A build without
// CUDA answers kUnimplemented everywhere. After a fault inside a kernel every call answers
// kInternal: the process has to stop, since the device context is lost.

struct DeviceInfo {
  int idx = 0;
  std::string name;
  int compute_capability = 0;  // 90, 120, 121
  int num_sms = 0;
  int64_t memory_bytes = 0;
  int64_t free_bytes = 0;  // when asked
  int64_t l2_bytes = 0;
  int64_t shared_bytes_max = 0;  // of one CTA
  bool unified_memory = false;   // host and device share one memory
};

/// Errors: kUnavailable without a usable driver, kNotFound without a device.
Result<int> device_count();

/// Errors: as device_count(); kNotFound if idx is no device; kUnimplemented if this build has no
/// code for its architecture.
Result<DeviceInfo> device_info(int idx);

/// Makes `idx` the device of the calling thread. Every thread that queues work calls it once.
Status use_device(int idx);

/// Memory of the calling thread's device. allocate() gives null if there is not enough.
std::unique_ptr<Allocator> device_allocator();

/// Host memory that the device reads and writes directly.
std::unique_ptr<Allocator> pinned_allocator();

class Event;

/// An ordered queue of device work. Threads: one owner.
class Stream {
 public:
  static Result<Stream> create();
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) noexcept = default;
  CUstream_st* get() const { return stream_.get(); }
  /// Returns when all queued work is done; reports a fault of any of it.
  Status synchronize() const;
  /// What is queued from now on runs after `event`, as it was last recorded.
  Status wait(const Event& event) const;

 private:
  struct Delete {
    void operator()(CUstream_st* stream) const;
  };
  explicit Stream(CUstream_st* stream) : stream_(stream) {}
  std::unique_ptr<CUstream_st, Delete> stream_;
};

/// A point in a stream, with a time stamp. Threads: one owner.
class Event {
 public:
  static Result<Event> create();
  Event(Event&&) noexcept = default;
  Event& operator=(Event&&) noexcept = default;
  CUevent_st* get() const { return event_.get(); }
  Status record(const Stream& stream) const;
  /// Inside Graph::capture: every launch of the graph will record it anew.
  Status record_in_graph(const Stream& stream) const;
  Status synchronize() const;
  /// Milliseconds from `start` to this event; both have happened.
  Result<float> elapsed_ms_since(const Event& start) const;

 private:
  struct Delete {
    void operator()(CUevent_st* event) const;
  };
  explicit Event(CUevent_st* event) : event_(event) {}
  std::unique_ptr<CUevent_st, Delete> event_;
};

/// Work that was recorded once and is queued as a whole. What it points to must outlive it.
class Graph {
 public:
  /// Records what `queue_work` puts on `stream`; nothing runs. queue_work takes no memory and does
  /// not synchronize: run it directly once before, so that scratch memory has grown.
  static Result<Graph> capture(const Stream& stream, const std::function<Status()>& queue_work);
  Graph(Graph&&) noexcept = default;
  Graph& operator=(Graph&&) noexcept = default;
  Status launch(const Stream& stream) const;
  int64_t num_nodes() const { return num_nodes_; }

 private:
  struct Delete {
    void operator()(CUgraphExec_st* graph) const;
  };
  Graph(CUgraphExec_st* graph, int64_t num_nodes) : graph_(graph), num_nodes_(num_nodes) {}
  std::unique_ptr<CUgraphExec_st, Delete> graph_;
  int64_t num_nodes_ = 0;
};

/// Queues a copy between any two places; host memory should be pinned.
Status copy_async(void* to, const void* from, size_t bytes, const Stream& stream);
Status zero_async(void* to, size_t bytes, const Stream& stream);

}  // namespace tandem::cuda
