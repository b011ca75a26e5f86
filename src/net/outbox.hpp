// Outbox: the bounded queue of messages that wait for one endpoint, oldest first.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "base/frames.hpp"
#include "baton/types.hpp"

namespace baton::net {

std::size_t count_bytes(const Frames& frames);

struct OutboxLimits {
  std::size_t messages_max = 0;
  std::size_t bytes_max = 0;
};

class Outbox {
 public:
  explicit Outbox(const OutboxLimits& limits) : limits_(limits) {}

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const { return bytes_; }

  // False: a limit is reached and `frames` was left alone. An empty outbox takes any one message.
  bool push(Frames&& frames, Instant deadline);
  // Both need a message.
  const Frames& front() const { return entries_.front().frames; }
  Frames pop();
  // When the oldest message expires; nullopt when empty.
  std::optional<Instant> next_deadline() const;
  // Removes what has expired, oldest first.
  std::vector<Frames> pop_expired(Instant now);

 private:
  struct Entry {
    Frames frames;
    std::size_t bytes = 0;
    Instant deadline;
  };

  OutboxLimits limits_;
  std::deque<Entry> entries_;
  std::size_t bytes_ = 0;
};

}  // namespace baton::net
