// SharedMemory: zeroed host memory that a peer on the same host can map.
#pragma once

#include <cstddef>
#include <cstdint>

#include "baton/result.hpp"
#include "baton/types.hpp"

namespace baton {

// Owns one memfd and its mapping (page-aligned, zeroed). Put region() into KvArgs::memory so that
// the `local` engine can copy straight into it.
class SharedMemory {
 public:
  static Result<SharedMemory> create(std::size_t length_bytes);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return length_bytes_; }
  Region region() const;

 private:
  SharedMemory(std::byte* data, std::size_t length_bytes, int descriptor);
  std::byte* data_ = nullptr;
  std::size_t length_bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace baton
