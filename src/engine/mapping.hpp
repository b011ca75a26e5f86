// Mapping: an owned piece of mapped memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "baton/result.hpp"

namespace baton::engine {

// Unmaps what it holds.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)),
        length_bytes_(std::exchange(other.length_bytes_, 0)),
        skip_bytes_(other.skip_bytes_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(length_bytes_, other.length_bytes_);
    std::swap(skip_bytes_, other.skip_bytes_);
    return *this;
  }
  ~Mapping();

  // Maps bytes [offset, offset + length) of a file, readable and writable, shared. Refuses a file
  // that is too short or that may shrink.
  static Result<Mapping> map_file(int descriptor, std::uint64_t offset_bytes,
                                  std::uint64_t length_bytes);

  // The byte at `offset_bytes`; null if nothing is mapped.
  std::byte* data() const { return base_ == nullptr ? nullptr : base_ + skip_bytes_; }

 private:
  std::byte* base_ = nullptr;
  std::size_t length_bytes_ = 0;
  std::size_t skip_bytes_ = 0;  // mmap wants whole pages: the bytes before the wanted one
};

}  // namespace baton::engine
