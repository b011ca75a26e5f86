// Bounds, order and expiry of the messages for one endpoint.
#include "net/outbox.hpp"

#include <utility>

#include "base/assert.hpp"

namespace baton::net {

std::size_t count_bytes(const Frames& frames) {
  std::size_t bytes = 0;
  for (const Frame& frame : frames) bytes += frame.size();
  return bytes;
}

bool Outbox::push(Frames&& frames, Instant deadline) {
  const std::size_t bytes = count_bytes(frames);
  const bool fits = entries_.size() < limits_.messages_max && bytes_ + bytes <= limits_.bytes_max;
  if (!fits && !entries_.empty()) return false;
  entries_.push_back(Entry{std::move(frames), bytes, deadline});
  bytes_ += bytes;
  return true;
}

Frames Outbox::pop() {
  BATON_ASSERT(!entries_.empty());
  Frames frames = std::move(entries_.front().frames);
  bytes_ -= entries_.front().bytes;
  entries_.pop_front();
  return frames;
}

std::optional<Instant> Outbox::next_deadline() const {
  if (entries_.empty()) return std::nullopt;
  return entries_.front().deadline;
}

std::vector<Frames> Outbox::pop_expired(Instant now) {
  std::vector<Frames> expired;
  while (!entries_.empty() && entries_.front().deadline <= now) expired.push_back(pop());
  return expired;
}

}  // namespace baton::net
