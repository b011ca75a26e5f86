// The eventfd behind an EventFlag.
#include "runtime/event_flag.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.hpp"

namespace baton::runtime {

EventFlag::EventFlag() : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  BATON_ASSERT(descriptor_ >= 0);  // no descriptor left: nothing can run
}

EventFlag::~EventFlag() { close(descriptor_); }

void EventFlag::raise() {
  if (raised_.exchange(true)) return;
  const eventfd_t one = 1;
  eventfd_write(descriptor_, one);
}

// The descriptor first: were the flag lowered first, a raise in between would write one more event
// that the read below swallows, and the flag would stay up with nothing to read.
void EventFlag::lower() {
  eventfd_t value = 0;
  eventfd_read(descriptor_, &value);
  raised_.store(false);
}

}  // namespace baton::runtime
