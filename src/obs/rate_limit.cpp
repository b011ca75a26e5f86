// The table behind RateLimit, emptied of old keys only when it is full.
#include "obs/rate_limit.hpp"

#include <utility>

namespace baton::obs {

std::optional<std::uint64_t> RateLimit::admit(std::string_view key, Instant now) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entry_for(key, now);
  if (!is_open(entry, now)) {
    ++entry.held_back;
    return std::nullopt;
  }
  entry.admitted_at = now;
  return std::exchange(entry.held_back, 0);
}

RateLimit::Entry& RateLimit::entry_for(std::string_view key, Instant now) {
  const auto found = entries_.find(key);
  if (found != entries_.end()) return found->second;
  if (entries_.size() >= keys_max_) {
    std::erase_if(entries_, [&](const auto& item) { return is_open(item.second, now); });
  }
  if (entries_.size() >= keys_max_) return overflow_;
  return entries_[std::string(key)];
}

}  // namespace baton::obs
