// PageRun and coalesce: turns two lists of page indices into runs that are contiguous on both
// sides.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "baton/types.hpp"

namespace baton::plan {

// Pages source, source+1, ... go to pages target, target+1, ...: `count` of them.
struct PageRun {
  PageIndex source = 0;
  PageIndex target = 0;
  std::uint32_t count = 0;

  friend bool operator==(const PageRun&, const PageRun&) = default;
};

// Appends the longest runs in which both lists step by exactly 1. Both must be equally long; the
// indices themselves are not judged here (append_writes does that). [spec 4.11.0]
void coalesce(std::span<const PageIndex> source, std::span<const PageIndex> target,
              std::vector<PageRun>& out);

}  // namespace baton::plan
