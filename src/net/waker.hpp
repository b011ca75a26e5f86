// Waker: lets any thread end another thread's sleep, with a system call only when it sleeps.
#pragma once

#include <atomic>
#include <cstdint>

#include "baton/result.hpp"

namespace baton::net {

// One sleeper, any number of wakers. The sleeper polls descriptor() for reading between
// prepare_sleep() and finish_sleep().
class Waker {
 public:
  Waker() = default;
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  Result<void> open();
  int descriptor() const { return descriptor_; }

  // Any thread.
  void wake();

  // Sleeper. False: somebody called wake() since the last consume(), do not sleep.
  bool prepare_sleep();
  // Sleeper, after polling; says whether the descriptor was readable.
  void finish_sleep(bool was_readable);
  // Sleeper. True if there was a wake() since the last call.
  bool consume();

 private:
  // One word instead of two flags: a waker's exchange either sees `asleep` and writes, or leaves
  // `woken` behind, and then prepare_sleep() fails. So no wake is lost between check and sleep.
  enum State : std::uint8_t { awake, asleep, woken };

  std::atomic<State> state_{awake};
  int descriptor_ = -1;
};

}  // namespace baton::net
