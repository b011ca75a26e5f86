// HttpServer: a small HTTP/1.1 server; one thread serves thousands of keep-alive connections.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "baton/result.hpp"
#include "baton/types.hpp"
#include "net/http_exchange.hpp"
#include "net/http_message.hpp"

namespace baton::net {

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // IP literal or name; "0.0.0.0" or "::" for every interface
  std::uint16_t port = 0;          // 0: any free port
  std::string thread_name = "baton-http";

  std::size_t header_bytes_max = std::size_t{16} << 10;     // beyond: 431
  std::size_t body_bytes_max = std::size_t{1} << 20;        // beyond: 413
  std::size_t connections_max = 16384;                      // beyond: closed at once
  std::size_t pipelined_bytes_max = std::size_t{64} << 10;  // beyond: not read until answered
  std::size_t stream_bytes_max = std::size_t{8} << 20;      // unsent pieces; beyond: cut off

  Duration header_timeout = std::chrono::seconds(10);  // first byte to the end of the headers
  Duration body_timeout = std::chrono::seconds(30);    // end of the headers to the end of the body
  Duration idle_timeout = std::chrono::seconds(75);    // between requests
  Duration write_timeout = std::chrono::seconds(30);   // one write that makes no progress
};

// Runs on the server thread and must not block; it answers through the responder, now or later.
using HttpHandler = std::function<void(HttpRequest, HttpResponder)>;

struct HttpServerStats {
  std::uint64_t connections_open = 0, connections_accepted = 0, connections_refused = 0;
  std::uint64_t requests = 0;
  std::uint64_t requests_malformed = 0;  // answered 400, 413 or 431 without the handler
  std::uint64_t timeouts = 0;            // connections closed by a deadline, idle ones included
  std::uint64_t handler_exceptions = 0;  // answered 500
};

class HttpServer {
 public:
  // Listens and serves until destroyed. Errors: already_exists (port in use), invalid_argument
  // (no such address here), io; the text names the address.
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options,
                                                   HttpHandler handler);
  ~HttpServer();  // Closes every connection; unfinished answers are lost.
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;
  std::string address() const;  // "host:port", IPv6 in brackets
  HttpServerStats stats() const;

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::net
