// HttpClient: HTTP/1.1 calls with deadlines over pooled keep-alive connections, on its own thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.hpp"
#include "baton/result.hpp"
#include "baton/types.hpp"
#include "net/http_message.hpp"

namespace baton::net {

struct HttpCall {
  Endpoint to;
  std::string method = "GET";
  std::string target = "/";
  std::string body;
  std::string content_type = "application/json";  // sent only with a body
  std::vector<HttpHeader> headers;
  // From send() to the whole answer; with on_piece it starts again with every piece.
  Duration timeout = std::chrono::seconds(5);
  // May the call be sent twice? Unset: true for GET, HEAD and PUT. Decides whether a pooled
  // connection that turns out to be stale is replaced, once, without the caller noticing.
  std::optional<bool> idempotent;
  // If set, called on the client thread with each piece of the body of a 2xx answer as it arrives
  // (and not collected); false ends the call (Errc::closed). Other answers are collected. See
  // LineSplitter for lines.
  std::function<bool(std::string_view)> on_piece;
};

struct HttpReply {
  int status = 0;
  std::vector<HttpHeader> headers;
  std::string body;
};

struct HttpClientOptions {
  std::string thread_name = "baton-client";
  std::size_t connections_per_address_max = 4;  // further calls wait for one, within their timeout
  std::size_t reply_bytes_max = std::size_t{64} << 20;  // beyond: Errc::limit
  Duration idle_timeout = std::chrono::seconds(30);     // a pooled connection's longest rest
};

struct HttpClientStats {
  std::uint64_t calls = 0, connections_opened = 0, retries = 0, failures = 0;
};

// Any status is a reply; errors mean that there is none: unreachable (names host:port and cause),
// timeout, malformed, limit, closed, invalid_argument.
class HttpClient {
 public:
  using Callback = std::function<void(Result<HttpReply>)>;

  explicit HttpClient(const HttpClientOptions& options = {});
  ~HttpClient();  // Open calls end with Errc::closed before this returns.
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Any thread. `done` is called exactly once, on the client thread, never from inside send().
  void send(HttpCall call, Callback done);
  // Blocks; not on the client thread (it would wait for itself).
  Result<HttpReply> send_and_wait(HttpCall call);
  // Runs on the client thread, in order with the call-backs.
  void defer(std::function<void()> task);
  HttpClientStats stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::net
