// Geometry: how items of one side's buffers pair up with items of the other side's.
#pragma once

#include <cstdint>
#include <vector>

namespace baton::plan {

// Item i of the source buffer goes to item j of the target buffer; both hold `item_bytes`.
struct BufferPair {
  std::uint64_t source_address = 0;
  std::uint64_t target_address = 0;
  std::uint64_t item_bytes = 0;
  std::uint64_t source_items_count = 0;  // items registered here; indices are checked against it

  friend bool operator==(const BufferPair&, const BufferPair&) = default;
};

}  // namespace baton::plan
