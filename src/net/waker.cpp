// The eventfd behind Waker.
#include "net/waker.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace baton::net {

Waker::~Waker() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<void> Waker::open() {
  descriptor_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (descriptor_ < 0) {
    return Error{Errc::io, std::string("cannot create an eventfd: ") + std::strerror(errno)};
  }
  return {};
}

void Waker::wake() {
  if (state_.exchange(woken) != asleep) return;
  const std::uint64_t one = 1;
  // Can only fail when the counter is full, and then the descriptor is readable anyway.
  [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one);
}

bool Waker::prepare_sleep() {
  State expected = awake;
  return state_.compare_exchange_strong(expected, asleep);
}

void Waker::finish_sleep(bool was_readable) {
  State expected = asleep;
  state_.compare_exchange_strong(expected, awake);  // fails if woken: consume() will tell
  // Not tied to the state: a waker may write only after its sleeper got up for another reason. That
  // write ends a later sleep early, and has to be read then, or no sleep would ever last again.
  if (!was_readable) return;
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(descriptor_, &count, sizeof count);
}

bool Waker::consume() {
  State expected = woken;
  return state_.compare_exchange_strong(expected, awake);
}

}  // namespace baton::net
