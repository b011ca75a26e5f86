// RpcCall: one question to a peer's RPC port, asked in the background.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "baton/types.hpp"
#include "engine/fd.hpp"
#include "engine/tcp_protocol.hpp"
#include "engine/tcp_socket.hpp"
#include "engine/waker.hpp"

namespace baton::engine::tcp {

// Belongs to the worker thread. Never blocks.
class RpcCall {
 public:
  struct Question {
    RpcType type = RpcType::probe;
    std::string json;
  };
  struct Answer {
    std::string json;
    std::string local_name;  // our end of the exchange, "host:port"
  };

  RpcCall(const SocketAddress& address, const Question& question, Instant deadline, Waker& waker,
          std::uint64_t key);

  // Moves on. Empty: not ended yet. Errc::unreachable: the peer's kernel says that nobody listens
  // there. Errc::timeout, Errc::io: nothing is known.
  std::optional<Result<Answer>> advance(Instant now);
  Instant deadline() const { return deadline_; }

 private:
  std::optional<Result<Answer>> receive();
  Error failure(Errc code, const std::string& cause) const;

  SocketAddress address_;
  RpcType type_;
  std::string request_, reply_;
  Instant deadline_;
  Fd socket_;
  std::optional<Error> refused_;
};

}  // namespace baton::engine::tcp
