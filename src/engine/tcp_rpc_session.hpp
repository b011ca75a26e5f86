// RpcSession: the serving end of one exchange on the RPC port: one request, one answer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "baton/types.hpp"
#include "engine/fd.hpp"

namespace baton::engine::tcp {

// Answers a request (type byte, JSON); empty: hang up. `client` is the "host:port" of the asker.
using RpcHandler = std::function<std::optional<std::string>(
    std::uint8_t type, std::string_view json, const std::string& client)>;

// Belongs to the server's thread.
class RpcSession {
 public:
  RpcSession(Fd socket, std::string peer, Instant now);

  int socket() const { return socket_.get(); }
  // False: close the session.
  bool on_event(const RpcHandler& handler);
  std::uint32_t interest() const;
  bool is_overdue(Instant now) const { return now >= give_up_at_; }

 private:
  enum class State : std::uint8_t {
    receiving,  // awaits the rest of the request
    answering,  // the answer is being sent
    lingering,  // half-closed; awaits the client's hang-up
  };
  bool receive();
  bool is_complete() const;
  bool is_acceptable() const;

  Fd socket_;
  std::string peer_;
  State state_ = State::receiving;
  std::string request_, answer_;
  Instant give_up_at_;
};

}  // namespace baton::engine::tcp
