// Packed arrays of u64, u32 and i32, and lists of such lists, little-endian. [spec 5]
//
// A packed array is its elements, without count or padding. A list of lists is empty if the outer
// list is, else u32 n, n u32 byte lengths, and the n packed arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "baton/result.hpp"

namespace baton::wire {

template <class T>
using Lists = std::vector<std::vector<T>>;

struct ListLimits {
  std::size_t lists_max = 0;     // inner lists
  std::size_t elements_max = 0;  // elements of all inner lists together
};

// T is std::uint64_t, std::uint32_t or std::int32_t. The errors say only "expected ..., found ...";
// callers add where.

template <class T>
Result<std::string> pack(const std::vector<T>& values, std::size_t values_max);
// Every byte must belong to an element.
template <class T>
Result<std::vector<T>> unpack(std::string_view frame, std::size_t values_max);

template <class T>
Result<std::string> pack_lists(const Lists<T>& lists, ListLimits limits);
// Bytes after the last list are ignored, as the reference ignores them. A list that is longer than
// the frame is an error; the reference shortens it silently when the cut falls between elements.
template <class T>
Result<Lists<T>> unpack_lists(std::string_view frame, ListLimits limits);

}  // namespace baton::wire
