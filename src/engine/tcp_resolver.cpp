// One thread per name that is looked up.
#include "engine/tcp_resolver.hpp"

#include <thread>

namespace baton::engine::tcp {

Resolver::Resolver(const Endpoint& endpoint) : slot_(std::make_shared<Slot>()) {
  if (const std::optional<SocketAddress> address = literal_address(endpoint)) {
    slot_->result = *address;
    return;
  }
  std::thread([slot = slot_, endpoint] {
    Result<SocketAddress> result = resolve_blocking(endpoint);
    const std::lock_guard lock(slot->mutex);
    slot->result = std::move(result);
  }).detach();
}

std::optional<Result<SocketAddress>> Resolver::poll() const {
  const std::lock_guard lock(slot_->mutex);
  return slot_->result;
}

}  // namespace baton::engine::tcp
