// RoomSlot: what a handle reads of its room without asking the node.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "baton/types.hpp"
#include "core/events.hpp"

namespace baton::runtime {

// The atomics are written under the runner's mutex and read by anyone; the rest belongs to the
// runner's mutex. A slot outlives its room: terminal answers stay.
struct RoomSlot {
  core::RoomKey key;
  std::atomic<KvPoll> status{KvPoll::bootstrapping};
  std::atomic<bool> quiet{true};
  std::atomic<bool> observed{false};  // some poll() has reported the end
  std::atomic<std::uint64_t> prefix_tokens{0};
  bool is_closed = false;  // the node has forgotten the room
  std::optional<Failure> failure;
  TransferMetric metric;
};

}  // namespace baton::runtime
