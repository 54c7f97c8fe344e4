#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "api/surface/surface.h"

namespace tandem::api {

/// An encoder that tells of a complete response before it writes the end, so that whoever reads the
/// end finds what was noted.
class ObservedEncoder final : public StreamEncoder {
 public:
  using Observer = std::function<void(const Completion&)>;

  ObservedEncoder(std::unique_ptr<StreamEncoder> inner, Observer observer)
      : inner_(std::move(inner)), observer_(std::move(observer)) {}

  void begin(std::string& out) override { inner_->begin(out); }
  void delta(const Delta& delta, std::string& out) override { inner_->delta(delta, out); }
  void end(const Completion& completion, std::string& out) override {
    observer_(completion);
    inner_->end(completion, out);
  }
  void error(const ApiError& error, std::string& out) override { inner_->error(error, out); }
  void heartbeat(std::string& out) override { inner_->heartbeat(out); }

 private:
  std::unique_ptr<StreamEncoder> inner_;
  Observer observer_;
};

}  // namespace tandem::api
