// Region tables: which bytes of a process may be written, with checked arithmetic.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "baton/engine.hpp"

namespace baton::engine {

// A half-open range of addresses that is known not to wrap around.
struct AddressRange {
  std::uint64_t begin = 0, end = 0;

  bool contains(AddressRange other) const { return begin <= other.begin && other.end <= end; }
  friend bool operator==(const AddressRange&, const AddressRange&) = default;
};

// False if address + length does not fit in 64 bits.
bool make_range(std::uint64_t address, std::uint64_t length_bytes, AddressRange& out);

// One accepted registration.
struct RegionEntry {
  RegionId id;
  Region region;

  AddressRange range() const { return {region.address, region.address + region.length_bytes}; }
  friend bool operator==(const RegionEntry&, const RegionEntry&) = default;
};

// A sorted set of regions that answers "which one region contains this range?". A value: callers
// that share it between threads lock it themselves. Overlapping regions are allowed.
class RegionIndex {
 public:
  void insert(const RegionEntry& entry);
  bool erase(RegionId id);
  // One region that contains the whole range, or null. A range that touches two adjacent regions is
  // in neither. [spec 4.3]
  const RegionEntry* find(AddressRange range) const;
  const RegionEntry* find(std::uint64_t address, std::uint64_t length_bytes) const;
  const std::vector<RegionEntry>& entries() const { return entries_; }

 private:
  void rebuild_furthest();
  std::vector<RegionEntry> entries_;   // by address
  std::vector<std::size_t> furthest_;  // index of the entry in [0, i] that ends last
};

// The registrations of one engine. Thread-safe.
class RegionTable {
 public:
  // Refuses empty, wrapping, device and doubly registered regions.
  Result<RegionId> add(const Region& region);
  Result<Region> remove(RegionId id);
  // A copy of the region that contains the range, with id; false if there is none.
  bool find(std::uint64_t address, std::uint64_t length_bytes, RegionEntry& out) const;
  std::vector<RegionEntry> snapshot() const;
  // Held while bytes are written into a region, so that remove() returns only between writes.
  std::mutex& mutex() const { return mutex_; }
  // A thread that takes mutex() again and again calls this in between: std::mutex is not fair, and
  // remove() could starve.
  void yield_to_removals() const;
  const RegionIndex& index_locked() const { return index_; }
  // Counts removals; a cached find() is good while it stands still. Read under mutex().
  std::uint64_t removals_locked() const { return removals_; }

 private:
  mutable std::mutex mutex_;
  RegionIndex index_;
  std::uint64_t removals_ = 0;
  std::atomic<int> removals_waiting_{0};
  std::uint32_t next_id_ = 1;
};

// Why a region can never be registered, or success.
Result<void> check_region(const Region& region);
// Why a batch must be refused (a source wraps around), or success.
Result<void> check_runs(WriteBatch batch);

}  // namespace baton::engine
