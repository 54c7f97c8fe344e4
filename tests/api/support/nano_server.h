#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/json/json.h"
#include "api/server/api_server.h"

namespace tandem::test {

struct NanoAnswer {
  int status = 0;
  std::string body;
  std::string content_type;

  /// The body as JSON; null if it is none.
  api::Json json() const;
};

/// The bundled nano model behind a server on a free port of this machine, for one test.
/// Threads: requests may come from many.
class NanoServer {
 public:
  /// Fails the test if the model or the port cannot be had.
  explicit NanoServer(api::ApiServerOptions options = {});
  NanoServer(const NanoServer&) = delete;
  NanoServer& operator=(const NanoServer&) = delete;
  ~NanoServer();

  NanoAnswer post(const std::string& path, const api::Json& body) const;
  NanoAnswer post_text(const std::string& path, const std::string& body) const;
  NanoAnswer get(const std::string& path) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tandem::test
