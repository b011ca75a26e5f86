// Region tables: sorted by address, with the furthest end seen so far beside each entry.
#include "engine/regions.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <thread>

namespace baton::engine {

bool make_range(std::uint64_t address, std::uint64_t length_bytes, AddressRange& out) {
  if (length_bytes > std::numeric_limits<std::uint64_t>::max() - address) return false;
  out = {address, address + length_bytes};
  return true;
}

Result<void> check_region(const Region& region) {
  AddressRange range;
  if (region.address == 0 || region.length_bytes == 0) {
    return Error{Errc::invalid_argument, "a region needs an address and a length above 0"};
  }
  if (!make_range(region.address, region.length_bytes, range)) {
    return Error{Errc::invalid_argument, "the region at " + std::to_string(region.address) +
                                             " of " + std::to_string(region.length_bytes) +
                                             " bytes runs past the end of the address space"};
  }
  if (region.kind != MemoryKind::host) {
    return Error{Errc::unsupported, "this engine registers host memory only, not device memory"};
  }
  return {};
}

Result<void> check_runs(WriteBatch batch) {
  AddressRange range;
  for (const WriteRun& run : batch) {
    if (make_range(run.source, run.length_bytes, range)) continue;
    return Error{Errc::invalid_argument, "the source " + std::to_string(run.source) + " of " +
                                             std::to_string(run.length_bytes) +
                                             " bytes wraps around"};
  }
  return {};
}

void RegionIndex::insert(const RegionEntry& entry) {
  const auto position = std::upper_bound(entries_.begin(), entries_.end(), entry,
                                         [](const RegionEntry& a, const RegionEntry& b) {
                                           return a.region.address < b.region.address;
                                         });
  entries_.insert(position, entry);
  rebuild_furthest();
}

bool RegionIndex::erase(RegionId id) {
  const auto erased = std::erase_if(entries_, [&](const RegionEntry& e) { return e.id == id; });
  if (erased == 0) return false;
  rebuild_furthest();
  return true;
}

void RegionIndex::rebuild_furthest() {
  furthest_.resize(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const bool extends = i == 0 || entries_[i].range().end > entries_[furthest_[i - 1]].range().end;
    furthest_[i] = extends ? i : furthest_[i - 1];
  }
}

const RegionEntry* RegionIndex::find(AddressRange range) const {
  const auto after = std::upper_bound(
      entries_.begin(), entries_.end(), range.begin,
      [](std::uint64_t address, const RegionEntry& e) { return address < e.region.address; });
  if (after == entries_.begin()) return nullptr;
  // Every entry before `after` starts early enough; the one that ends last contains the range if
  // any of them does.
  const auto last = static_cast<std::size_t>(after - entries_.begin()) - 1;
  const RegionEntry& candidate = entries_[furthest_[last]];
  return candidate.range().contains(range) ? &candidate : nullptr;
}

const RegionEntry* RegionIndex::find(std::uint64_t address, std::uint64_t length_bytes) const {
  AddressRange range;
  return make_range(address, length_bytes, range) ? find(range) : nullptr;
}

Result<RegionId> RegionTable::add(const Region& region) {
  if (Result<void> usable = check_region(region); !usable) return usable.error();
  const std::lock_guard lock(mutex_);
  for (const RegionEntry& entry : index_.entries()) {
    if (entry.region.address != region.address) continue;
    if (entry.region.length_bytes != region.length_bytes) continue;
    return Error{Errc::already_exists, "the region at " + std::to_string(region.address) + " of " +
                                           std::to_string(region.length_bytes) +
                                           " bytes is registered already"};
  }
  const RegionId id{next_id_++};
  index_.insert({id, region});
  return id;
}

void RegionTable::yield_to_removals() const {
  while (removals_waiting_.load(std::memory_order_relaxed) > 0) std::this_thread::yield();
}

Result<Region> RegionTable::remove(RegionId id) {
  removals_waiting_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  removals_waiting_.fetch_sub(1, std::memory_order_relaxed);
  for (const RegionEntry& entry : index_.entries()) {
    if (entry.id != id) continue;
    const Region region = entry.region;
    index_.erase(id);
    ++removals_;
    return region;
  }
  return Error{Errc::misuse, "region " + std::to_string(id.value) + " is not registered"};
}

bool RegionTable::find(std::uint64_t address, std::uint64_t length_bytes, RegionEntry& out) const {
  const std::lock_guard lock(mutex_);
  const RegionEntry* entry = index_.find(address, length_bytes);
  if (entry == nullptr) return false;
  out = *entry;
  return true;
}

std::vector<RegionEntry> RegionTable::snapshot() const {
  const std::lock_guard lock(mutex_);
  return index_.entries();
}

}  // namespace baton::engine
