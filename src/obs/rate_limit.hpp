// RateLimit: lets something happen once per key and interval, and counts what it held back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "baton/types.hpp"

namespace baton::obs {

// Thread-safe. Remembers at most `keys_max` keys; when they are all in use, every further key
// shares one more entry, so strangers with ever new names cannot fill the memory or the log.
class RateLimit {
 public:
  RateLimit(Duration interval, std::size_t keys_max) : interval_(interval), keys_max_(keys_max) {}

  // Go ahead: how often this key was held back since the last time. Held back: nothing.
  std::optional<std::uint64_t> admit(std::string_view key, Instant now);

 private:
  struct Entry {
    std::optional<Instant> admitted_at;
    std::uint64_t held_back = 0;
  };
  Entry& entry_for(std::string_view key, Instant now);
  bool is_open(const Entry& entry, Instant now) const {
    return !entry.admitted_at || now - *entry.admitted_at >= interval_;
  }

  const Duration interval_;
  const std::size_t keys_max_;
  std::mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_;
  Entry overflow_;
};

}  // namespace baton::obs
