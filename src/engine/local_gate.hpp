// LocalGate: the shared page that lets the owner of memory stop a local peer's copies.
#pragma once

#include <atomic>
#include <cstdint>

namespace baton::engine {

// One per connection, in a memfd that both processes map. It replaces a question and an answer over
// the socket: a peer that sleeps, or is stopped between two copies, need not answer at all.
//
// The race it prevents (test: LocalEngine.UnregisterWaitsForACopyInProgress):
//  1. The owner unregisters a region while the peer is about to copy into it.
//  2. The peer makes `passages` odd, then reads `generation`. The owner raises `generation`, then
//     reads `passages`. All four are sequentially consistent, so at least one of them sees the
//     other's store.
//  3. If the peer sees the new generation, it backs off and reads its socket for the removal.
//     If the owner sees an odd number, it waits until the number moves on: that copy has ended, and
//     the next one will see the new generation.
struct LocalGate {
  alignas(64) std::atomic<std::uint64_t> generation{0};  // stored by the owner of the memory
  alignas(64) std::atomic<std::uint64_t> passages{0};    // stored by the peer; odd while it copies

  static bool is_inside(std::uint64_t passages_seen) { return passages_seen % 2 == 1; }
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace baton::engine
