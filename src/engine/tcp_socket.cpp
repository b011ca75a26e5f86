// getaddrinfo, socket options and their reasons.
#include "engine/tcp_socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace baton::engine::tcp {
namespace {

// A dead host is noticed after 30 s when idle. With data under way the kernel's user time-out
// rules, and it also counts the time for which a live peer's window stays closed: it must be longer
// than a process may reasonably be stopped, because it breaks the connection.
constexpr int kKeepIdleSeconds = 10;
constexpr int kKeepIntervalSeconds = 5;
constexpr int kKeepProbes = 4;
constexpr int kUserTimeoutMs = 120'000;

Result<SocketAddress> look_up(const Endpoint& endpoint, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  const int fault = ::getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &found);
  if (fault != 0 || found == nullptr) {
    return Error{Errc::not_found, "host \"" + endpoint.host + "\": " + ::gai_strerror(fault)};
  }
  SocketAddress address;
  std::memcpy(&address.value, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  ::freeaddrinfo(found);
  return address;
}

void set_option(int socket, int level, int name, int value) {
  // Options are improvements; a kernel without one still works.
  ::setsockopt(socket, level, name, &value, sizeof value);
}

Result<Fd> open_socket(const SocketAddress& address) {
  Fd socket(::socket(address.value.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return system_error("socket", errno);
  return socket;
}

}  // namespace

std::optional<SocketAddress> literal_address(const Endpoint& endpoint) {
  Result<SocketAddress> address = look_up(endpoint, AI_NUMERICHOST);
  if (!address) return std::nullopt;
  return *address;
}

Result<SocketAddress> resolve_blocking(const Endpoint& endpoint) { return look_up(endpoint, 0); }

SocketAddress with_port(SocketAddress address, std::uint16_t port) {
  if (address.value.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&address.value)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(&address.value)->sin_port = htons(port);
  }
  return address;
}

std::string print_address(const SocketAddress& address) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address.value), address.length, host.data(),
                    host.size(), port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "?";
  }
  const Endpoint endpoint{host.data(), static_cast<std::uint16_t>(std::stoi(port.data()))};
  return to_string(endpoint);
}

SocketAddress local_address(int socket) {
  SocketAddress address;
  address.length = sizeof address.value;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address.value), &address.length);
  return address;
}

SocketAddress peer_address(int socket) {
  SocketAddress address;
  address.length = sizeof address.value;
  ::getpeername(socket, reinterpret_cast<sockaddr*>(&address.value), &address.length);
  return address;
}

Result<Fd> listen_tcp(const SocketAddress& address, int backlog) {
  Result<Fd> socket = open_socket(address);
  if (!socket) return socket;
  set_option(socket->get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(socket->get(), reinterpret_cast<const sockaddr*>(&address.value), address.length) !=
      0) {
    Error error = system_error("bind to " + print_address(address), errno);
    if (errno == EADDRINUSE) error.code = Errc::already_exists;
    return error;
  }
  if (::listen(socket->get(), backlog) != 0) {
    return system_error("listen on " + print_address(address), errno);
  }
  return socket;
}

Result<Fd> connect_tcp(const SocketAddress& address) {
  Result<Fd> socket = open_socket(address);
  if (!socket) return socket;
  if (::connect(socket->get(), reinterpret_cast<const sockaddr*>(&address.value), address.length) !=
          0 &&
      errno != EINPROGRESS) {
    const int cause = errno;
    Error error = system_error("connect to " + print_address(address), cause);
    if (cause == ECONNREFUSED) error.code = Errc::unreachable;
    return error;
  }
  return socket;
}

int connect_result(int socket) {
  int fault = 0;
  socklen_t length = sizeof fault;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &fault, &length) != 0) return errno;
  return fault;
}

// Buffer sizes are left to the kernel: setting them switches its own tuning off, which grows to
// what the path needs (measured, see bench/engine_bench.cpp).
void tune_data_socket(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);  // an acknowledgement must not wait for company
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleSeconds);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalSeconds);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kKeepProbes);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
}

void abort_on_close(int socket) {
  const linger now{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace baton::engine::tcp
