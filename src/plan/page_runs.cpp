// coalesce: finds the end of each run, a block of pages at a time while the run goes on.
#include "plan/page_runs.hpp"

#include <algorithm>
#include <limits>

#include "base/assert.hpp"

namespace baton::plan {

namespace {

// Pages per step inside a run: enough for the compiler to use vectors, few enough that short runs
// do not pay for it.
constexpr std::size_t kBlockPages = 16;

// Zero if value[0..1], value[1..2], ... value[n-1..n] all step by 1. Unsigned, because the indices
// may come from a peer and a signed difference could overflow.
std::uint32_t block_breaks(const PageIndex* value) {
  std::uint32_t breaks = 0;
  for (std::size_t i = 0; i < kBlockPages; ++i) {
    const auto step =
        static_cast<std::uint32_t>(value[i + 1]) - static_cast<std::uint32_t>(value[i]);
    breaks |= step ^ 1U;
  }
  return breaks;
}

bool steps_by_one(const PageIndex* value) {
  return static_cast<std::uint32_t>(value[1]) == static_cast<std::uint32_t>(value[0]) + 1U;
}

// How many pages from the first on go up by 1 on both sides, modulo 2^32. At least 1.
std::size_t run_length(const PageIndex* source, const PageIndex* target, std::size_t pages_count) {
  std::size_t length = 1;
  const auto continues = [&] {
    return length < pages_count && steps_by_one(source + length - 1) &&
           steps_by_one(target + length - 1);
  };
  // Most breaks come early: look at a few pages one by one before going by blocks.
  for (int probe = 0; probe < 3; ++probe) {
    if (!continues()) return length;
    ++length;
  }
  while (length + kBlockPages <= pages_count &&
         (block_breaks(source + length - 1) | block_breaks(target + length - 1)) == 0) {
    length += kBlockPages;
  }
  while (continues()) ++length;
  return length;
}

// Pages until the index would wrap from the largest int32 to the smallest, which is no step by 1.
std::size_t pages_to_wrap(PageIndex first) {
  const std::int64_t last = std::numeric_limits<PageIndex>::max();
  return static_cast<std::size_t>(last - first + 1);
}

}  // namespace

void coalesce(std::span<const PageIndex> source, std::span<const PageIndex> target,
              std::vector<PageRun>& out) {
  BATON_ASSERT(source.size() == target.size());
  BATON_ASSERT(source.size() <= std::numeric_limits<std::uint32_t>::max());
  for (std::size_t begin = 0; begin < source.size();) {
    const PageIndex first_source = source[begin];
    const PageIndex first_target = target[begin];
    const std::size_t length =
        std::min({run_length(source.data() + begin, target.data() + begin, source.size() - begin),
                  pages_to_wrap(first_source), pages_to_wrap(first_target)});
    out.push_back({first_source, first_target, static_cast<std::uint32_t>(length)});
    begin += length;
  }
}

}  // namespace baton::plan
