// TCP sockets as this engine uses them: non-blocking, no delay, addresses resolved beforehand.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/address.hpp"
#include "baton/result.hpp"
#include "engine/fd.hpp"

namespace baton::engine::tcp {

struct SocketAddress {
  sockaddr_storage value{};
  socklen_t length = 0;
};

// Only for literal addresses; empty for names, which need resolve_blocking().
std::optional<SocketAddress> literal_address(const Endpoint& endpoint);
// May ask DNS: never in the worker thread.
Result<SocketAddress> resolve_blocking(const Endpoint& endpoint);
SocketAddress with_port(SocketAddress address, std::uint16_t port);
// "10.0.0.1:4242"
std::string print_address(const SocketAddress& address);
SocketAddress local_address(int socket);
SocketAddress peer_address(int socket);

Result<Fd> listen_tcp(const SocketAddress& address, int backlog);
// The handshake goes on in the background; the socket becomes writable when it has ended.
Result<Fd> connect_tcp(const SocketAddress& address);
// The result of that handshake: 0 or an errno.
int connect_result(int socket);
void tune_data_socket(int socket);
// Closing it will reset the connection and throw unsent bytes away.
void abort_on_close(int socket);

}  // namespace baton::engine::tcp
