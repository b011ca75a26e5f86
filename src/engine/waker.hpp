// Waker: an eventfd that is readable while there is work, and a timer for the next deadline.
#pragma once

#include <optional>

#include "baton/result.hpp"
#include "baton/types.hpp"
#include "engine/fd.hpp"

namespace baton::engine {

// One epoll descriptor that an engine shows to its users and watches its own sockets with. Belongs
// to the worker thread.
class Waker {
 public:
  static Result<Waker> create();

  int epoll_descriptor() const { return epoll_.get(); }
  // Readable from now on while `has_work`. Costs a system call only when the answer changes.
  void set_work(bool has_work);
  // Readable at `deadline`; empty: never.
  void set_deadline(std::optional<Instant> deadline);
  // `key` comes back from epoll_wait; kOwnKey is taken.
  Result<void> watch(int descriptor, std::uint32_t events, std::uint64_t key);
  void change(int descriptor, std::uint32_t events, std::uint64_t key);
  static constexpr std::uint64_t kOwnKey = ~std::uint64_t{0};

 private:
  Fd epoll_, work_, timer_;
  bool has_work_ = false;
  std::optional<Instant> deadline_;
};

}  // namespace baton::engine
