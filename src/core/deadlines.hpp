// Deadlines: which key is due when; at most one deadline a key. Data, not a clock.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "baton/types.hpp"

namespace baton::core {

template <class Key>
class Deadlines {
 public:
  // Replaces the key's earlier deadline.
  void set(const Key& key, Instant due) {
    clear(key);
    by_key_.emplace(key, due);
    by_time_.emplace(due, key);
  }

  void clear(const Key& key) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return;
    by_time_.erase({found->second, key});
    by_key_.erase(found);
  }

  std::optional<Instant> next() const {
    if (by_time_.empty()) return std::nullopt;
    return by_time_.begin()->first;
  }

  // Takes one key that is due, earliest first.
  std::optional<Key> take_due(Instant now) {
    if (by_time_.empty() || by_time_.begin()->first > now) return std::nullopt;
    const Key key = by_time_.begin()->second;
    clear(key);
    return key;
  }

  friend bool operator==(const Deadlines&, const Deadlines&) = default;

 private:
  std::map<Key, Instant> by_key_;
  std::set<std::pair<Instant, Key>> by_time_;
};

}  // namespace baton::core
