// Reads arbitrary bytes as an HTTP request, whole and cut: the outcome must be the same.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/http/request_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tandem::api::HttpRequestReader;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  HttpRequestReader whole;
  whole.push(bytes);
  HttpRequestReader cut;
  const size_t step = size == 0 ? 1 : 1 + data[0] % 7;
  for (size_t i = 0; i < bytes.size(); i += step) cut.push(bytes.substr(i, step));
  if (whole.state() != cut.state()) std::abort();
  if (whole.state() == HttpRequestReader::State::kDone &&
      (whole.request().body != cut.request().body || whole.request().path != cut.request().path ||
       whole.request().headers != cut.request().headers)) {
    std::abort();
  }
  return 0;
}
