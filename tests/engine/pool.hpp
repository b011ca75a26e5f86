// Pool: target memory with guards around and between two regions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "baton/engine.hpp"
#include "baton/shared_memory.hpp"

namespace baton::engine::test {

constexpr std::size_t kGuardBytes = 64U << 10U;
constexpr std::byte kFill{0xA5};

// guard | region 0 | guard | region 1 | guard, all filled with kFill. Offsets count from the first
// guard's first byte.
class Pool {
 public:
  Pool(std::size_t region_bytes, bool is_shared) : region_bytes_(region_bytes) {
    const std::size_t length = 3 * kGuardBytes + 2 * region_bytes;
    if (is_shared) {
      shared_.emplace(std::move(SharedMemory::create(length).value()));
    } else {
      private_.resize(length);
    }
    std::memset(bytes().data(), static_cast<int>(kFill), length);
  }

  std::span<std::byte> bytes() {
    return shared_ ? std::span(shared_->data(), shared_->size_bytes()) : std::span(private_);
  }
  std::size_t region_bytes() const { return region_bytes_; }
  std::size_t region_offset(std::size_t index) const {
    return kGuardBytes + index * (region_bytes_ + kGuardBytes);
  }
  Region region(std::size_t index) {
    Region region;
    if (shared_) region = shared_->region();
    region.address = reinterpret_cast<std::uint64_t>(bytes().data()) + region_offset(index);
    region.length_bytes = region_bytes_;
    region.shared_offset_bytes = shared_ ? region_offset(index) : 0;
    return region;
  }
  bool guards_are_intact() {
    const std::span<std::byte> all = bytes();
    for (std::size_t i = 0; i < 3; ++i) {
      const auto guard = all.subspan(i * (kGuardBytes + region_bytes_), kGuardBytes);
      if (std::ranges::any_of(guard, [](std::byte b) { return b != kFill; })) return false;
    }
    return true;
  }

 private:
  std::size_t region_bytes_;
  std::optional<SharedMemory> shared_;
  std::vector<std::byte> private_;
};

}  // namespace baton::engine::test
