// Counters: named relaxed counters in one object that its owner passes around.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace baton::obs {

// Only counts up. Adding takes one relaxed atomic operation and may happen in any thread.
class Counter {
 public:
  void add(std::uint64_t amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct NamedCount {
  std::string name;
  std::uint64_t value = 0;

  friend bool operator==(const NamedCount&, const NamedCount&) = default;
};

// Thread-safe. Look a counter up once and keep the reference: it lives as long as the registry.
class Counters {
 public:
  // The counter of that name, made on first use. Names are chosen by the program, not by peers.
  Counter& counter(std::string_view name);
  // By name. Each value is exact; together they are not one instant.
  std::vector<NamedCount> snapshot() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Counter, std::less<>> counters_;  // nodes never move
};

}  // namespace baton::obs
