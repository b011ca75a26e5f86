// Resolver: looks a host name up in the background.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "base/address.hpp"
#include "baton/result.hpp"
#include "engine/tcp_socket.hpp"

namespace baton::engine::tcp {

// Literal addresses are there at once. A name costs a detached thread, because the C library offers
// no look-up that can be given up; the thread touches nothing but the shared slot.
class Resolver {
 public:
  explicit Resolver(const Endpoint& endpoint);
  // Empty: still looking.
  std::optional<Result<SocketAddress>> poll() const;

 private:
  struct Slot {
    std::mutex mutex;
    std::optional<Result<SocketAddress>> result;
  };
  std::shared_ptr<Slot> slot_;
};

}  // namespace baton::engine::tcp
