#include "api/http/reply_writer.h"

#include <httplib.h>

#include <algorithm>
#include <cstring>

namespace tandem::api {
namespace {

/// What the library reads is a request of ours; what it writes goes to the connection.
class ReplyStream final : public httplib::Stream {
 public:
  ReplyStream(Connection& connection, std::string request)
      : connection_(connection), request_(std::move(request)) {}

  bool is_readable() const override { return read_ < request_.size(); }
  bool is_writable() const override { return is_open_; }
  ssize_t read(char* out, size_t size) override {
    size = std::min(size, request_.size() - read_);
    std::memcpy(out, request_.data() + read_, size);
    read_ += size;
    return static_cast<ssize_t>(size);
  }
  ssize_t write(const char* bytes, size_t size) override {
    if (!connection_.write({bytes, size}).ok()) is_open_ = false;
    return is_open_ ? static_cast<ssize_t>(size) : -1;
  }
  // Nothing asks for addresses, and the library refuses descriptors above 1023, which it never
  // uses.
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  socket_t socket() const override { return 0; }

 private:
  Connection& connection_;
  std::string request_;
  size_t read_ = 0;
  bool is_open_ = true;
};

class SinkWriter final : public StreamWriter {
 public:
  explicit SinkWriter(httplib::DataSink& sink) : sink_(sink) {}
  bool write(std::string_view bytes) override { return sink_.write(bytes.data(), bytes.size()); }

 private:
  httplib::DataSink& sink_;
};

/// The library's server without its sockets: one object answers one request.
class Answerer final : public httplib::Server {
 public:
  Answerer(HttpExchange& exchange, HttpHandler& handler, bool cors) {
    svr_sock_ = 0;  // "not shutting down"; nothing is read from it
    const auto handle = [&exchange, &handler, cors](
                            const httplib::Request&, httplib::Response& response) {
      handler.handle(exchange);
      fill(exchange, cors, response);
    };
    // The target is always "/": paths are routed by the handler.
    Get("/", handle);
    Post("/", handle);
    Options("/", handle);
  }

  template <class Stream>
  void answer(Stream& stream) {
    constexpr bool kCloseConnection = true;
    bool closed = false;
    if constexpr (requires { this->process_request(stream, kCloseConnection, closed, nullptr); }) {
      (void)this->process_request(stream, kCloseConnection, closed, nullptr);
    } else {  // later versions also take the addresses of both ends, which nothing asks for
      (void)this->process_request(stream, "", 0, "", 0, kCloseConnection, closed, nullptr);
    }
  }

 private:
  static void fill(HttpExchange& exchange, bool cors, httplib::Response& response) {
    HttpReply& reply = exchange.reply();
    response.status = reply.status;
    for (const auto& [name, value] : reply.headers) response.set_header(name, value);
    if (cors) {
      for (const auto& [name, value] : cors_headers()) response.set_header(name, value);
    }
    if (!exchange.stream_body()) {
      if (!reply.content_type.empty()) {
        response.set_content(reply.body, reply.content_type);
      }
      return;
    }
    response.set_content_provider(reply.content_type, [&exchange](size_t, httplib::DataSink& sink) {
      SinkWriter writer(sink);
      exchange.stream_body()(writer);
      sink.done();
      return true;
    });
  }
};

const char* reason_phrase(int status) {
  switch (status) {
    case 400: return "Bad Request";
    case 408: return "Request Timeout";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 417: return "Expectation Failed";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Error";
  }
}

}  // namespace

const HttpHeaders& cors_headers() {
  static const HttpHeaders kHeaders = {
      {"Access-Control-Allow-Origin", "*"},
      {"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
      {"Access-Control-Allow-Headers", "*"}};
  return kHeaders;
}

void answer_request(
    Connection& connection, const HttpRequest& request, HttpHandler& handler, bool cors) {
  HttpExchange exchange(request, connection);
  // Any method that is not HEAD or OPTIONS looks the same to the library; the handler sees the true
  // one.
  const char* method = request.method == "HEAD"      ? "HEAD"
                       : request.method == "OPTIONS" ? "OPTIONS"
                                                     : "GET";
  ReplyStream stream(connection, str_cat(method, " / HTTP/1.1\r\n\r\n"));
  Answerer(exchange, handler, cors).answer(stream);
}

void write_reply(Connection& connection, const HttpReply& reply, bool cors) {
  std::string out = str_cat(
      "HTTP/1.1 ", reply.status, " ", reason_phrase(reply.status),
      "\r\nContent-Type: ", reply.content_type, "\r\nContent-Length: ", reply.body.size(), "\r\n");
  for (const auto& [name, value] : reply.headers) out += str_cat(name, ": ", value, "\r\n");
  if (cors) {
    for (const auto& [name, value] : cors_headers()) out += str_cat(name, ": ", value, "\r\n");
  }
  out += "Connection: close\r\n\r\n";
  out += reply.body;
  (void)connection.write(out);  // a client that is gone needs no answer
}

}  // namespace tandem::api
