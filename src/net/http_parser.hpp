// HttpRequestReader and HttpReplyReader: HTTP/1.x messages out of bytes, without any I/O.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "net/http_message.hpp"

namespace baton::net {

struct HttpReadLimits {
  std::size_t header_bytes_max = std::size_t{16} << 10;
  std::size_t body_bytes_max = std::size_t{1} << 20;
};

enum class ReadProgress : unsigned char {
  needs_header,      // more bytes, please: the headers are not complete
  needs_body,        // the headers are complete, the body is not
  complete,          // take the message; what follows it is left in the input
  header_too_large,  // these three are final: where a next message would begin is not known
  body_too_large,
  malformed,
};

constexpr bool is_failure(ReadProgress progress) {
  return progress != ReadProgress::needs_header && progress != ReadProgress::needs_body &&
         progress != ReadProgress::complete;
}

// Reads one request.
class HttpRequestReader {
 public:
  explicit HttpRequestReader(const HttpReadLimits& limits);
  ~HttpRequestReader();

  // Removes from `input` what it used.
  ReadProgress feed(std::string& input);
  // From needs_body on: the client waits for a "100 Continue" before it sends the body.
  bool wants_continue() const;
  // When complete.
  bool is_head() const;
  bool is_http_1_0() const;
  bool keep_alive() const;
  HttpRequest take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Reads one reply; interim replies (1xx) are passed over.
class HttpReplyReader {
 public:
  // The reply to a HEAD request has no body whatever its headers say.
  HttpReplyReader(const HttpReadLimits& limits, bool is_head);
  ~HttpReplyReader();

  ReadProgress feed(std::string& input);
  // The connection ended: complete if that is how the body ends, else malformed.
  ReadProgress feed_end();
  // From needs_body on.
  int status() const;
  std::vector<HttpHeader> headers() const;
  bool keep_alive() const;
  // The body so far, or since the last call.
  std::string take_body();
  // Says what was wrong, after a failure.
  const std::string& fault() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::net
