// Wakeup on an eventfd.
#include "cli/wakeup.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>

#include "base/assert.hpp"

namespace baton::cli {

Wakeup::Wakeup() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  BATON_ASSERT(descriptor_ >= 0);
}

Wakeup::~Wakeup() { close(descriptor_); }

// A counter that is full is readable already, so a failed write loses nothing.
void Wakeup::raise() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof one);
}

void Wakeup::clear() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(descriptor_, &count, sizeof count);
}

void sleep_on(int first, int second, Duration longest) {
  pollfd entries[2] = {{first, POLLIN, 0}, {second, POLLIN, 0}};
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(longest).count();
  poll(entries, 2, static_cast<int>(milliseconds));
}

}  // namespace baton::cli
