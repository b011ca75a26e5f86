// RawHttp: a blocking TCP connection for tests that must decide which bytes go out and when.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace baton::net {

struct RawReply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

class RawHttp {
 public:
  explicit RawHttp(std::uint16_t port) {
    descriptor_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{60, 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ = ::connect(descriptor_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  RawHttp(RawHttp&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)),
        is_connected_(other.is_connected_),
        input_(std::move(other.input_)) {}
  RawHttp& operator=(RawHttp&&) = delete;
  ~RawHttp() { close(); }

  bool is_connected() const { return is_connected_; }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }
  void finish_sending() { ::shutdown(descriptor_, SHUT_WR); }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // One more block of input; false at the end.
  bool read_more() {
    char block[4096];
    const ssize_t got = ::recv(descriptor_, block, sizeof block, 0);
    if (got > 0) input_.append(block, static_cast<std::size_t>(got));
    return got > 0;
  }
  // All until the server hangs up.
  std::string read_to_end() {
    while (read_more()) {
    }
    return std::exchange(input_, {});
  }
  std::string read_until(std::string_view mark) {
    std::size_t found = std::string::npos;
    while ((found = input_.find(mark)) == std::string::npos) {
      if (!read_more()) return std::exchange(input_, {});
    }
    const std::string text = input_.substr(0, found + mark.size());
    input_.erase(0, text.size());
    return text;
  }
  // A reply with Content-Length; status 0 if the connection ended first.
  RawReply read_reply(bool has_body = true) {
    RawReply reply;
    const std::string head = read_until("\r\n\r\n");
    if (!head.ends_with("\r\n\r\n")) return reply;
    reply.status = std::atoi(head.c_str() + head.find(' '));
    std::size_t at = head.find("\r\n") + 2;
    while (at + 2 < head.size()) {
      const std::size_t end = head.find("\r\n", at);
      const std::size_t colon = head.find(": ", at);
      std::string name = head.substr(at, colon - at);
      for (char& c : name) c = static_cast<char>(std::tolower(c));
      reply.headers[name] = head.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    if (!has_body) return reply;
    const auto length =
        static_cast<std::size_t>(std::atoll(reply.headers["content-length"].c_str()));
    while (input_.size() < length && read_more()) {
    }
    reply.body = input_.substr(0, length);
    input_.erase(0, length);
    return reply;
  }

 private:
  int descriptor_ = -1;
  bool is_connected_ = false;
  std::string input_;
};

}  // namespace baton::net
