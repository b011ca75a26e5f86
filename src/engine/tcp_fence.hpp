// Fence: finds out whether writes that were sent on a broken connection can still land.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "baton/types.hpp"
#include "engine/tcp_protocol.hpp"
#include "engine/tcp_rpc_call.hpp"

namespace baton::engine::tcp {

// What a sender can prove about a connection that broke with unanswered writes (E3).
//
// Closing our end proves nothing, not even with a reset: bytes in the peer kernel's receive queue
// are still handed to the peer's server. What does prove it:
//  * The peer closed in order (FIN). A server of this protocol closes a data connection only when
//    it is done with it, never just one half, so it reads no more. [spec 4.3]
//  * Nobody listens at the peer's RPC port any more (connection refused): the process is gone. It
//    loses its sockets only after its last thread has stopped; a server that is shut down closes
//    its sessions before its listeners.
//  * Another process listens there now: a Baton server with another identity, or any server with
//    another data port.
//  * A Baton server answers a fence request that names the connection. Its one receiving thread
//    closes that connection (accepting it first, if it waits in the backlog), then answers. The
//    name is our "host:port"; the answer repeats how the server sees *this* exchange's host, so
//    that address translation on the way, which would make the names differ, shows.
// A reset or a time-out while a foreign server goes on answering proves nothing: its server thread
// may be asleep in front of a full receive queue. Such writes stay unsettled until the process
// ends.
class Fence {
 public:
  struct Target {
    SocketAddress rpc;
    std::uint16_t data_port = 0;
    std::string identity;  // empty: a foreign server
  };
  enum class Verdict : std::uint8_t {
    unknown,  // nothing is proven yet; ask again
    quiet,    // the named connections are closed; the peer lives
    alive,    // the peer lives, but nothing is proven about the connections
    gone,     // the peer process has ended
  };

  // Asks about `connections` (may be empty: is the peer alive?).
  Fence(Target target, std::vector<std::string> connections);

  void set_connections(std::vector<std::string> connections);
  // Asks, waits and asks again, with growing pauses. `unknown` while there is no news.
  Verdict advance(Instant now, Waker& waker, std::uint64_t key);
  Instant deadline() const;
  const std::string& reason() const { return reason_; }

 private:
  RpcCall::Question question() const;
  Verdict judge(const Result<RpcCall::Answer>& answer);
  Verdict judge_foreign(const RpcCall::Answer& answer);

  Target target_;
  std::vector<std::string> connections_;
  std::optional<RpcCall> call_;
  Instant ask_at_{};
  Duration pause_;
  std::string reason_;
};

}  // namespace baton::engine::tcp
