#pragma once

#include "api/http/http_server.h"

namespace tandem::api {

/// Answers one request that is already read: calls the handler and writes its reply, stream or not.
void answer_request(
    Connection& connection, const HttpRequest& request, HttpHandler& handler, bool cors);

/// Writes a reply by hand, for requests that never were one.
void write_reply(Connection& connection, const HttpReply& reply, bool cors);

/// The headers that let web pages of other origins read a reply.
const HttpHeaders& cors_headers();

}  // namespace tandem::api
