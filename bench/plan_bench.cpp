// How fast page lists become runs, and runs become writes.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "plan/kv_plan.hpp"
#include "plan/page_runs.hpp"

namespace baton::plan {
namespace {

using Pages = std::vector<PageIndex>;

constexpr std::size_t kPagesCount = 8192;

Pages contiguous() {
  Pages pages(kPagesCount);
  std::iota(pages.begin(), pages.end(), 1000);
  return pages;
}

Pages shuffled(std::uint64_t seed) {
  Pages pages = contiguous();
  std::shuffle(pages.begin(), pages.end(), std::mt19937_64(seed));
  return pages;
}

// Stretches of `stretch` pages in random order: what a pool looks like after a while.
Pages stretches(std::uint64_t seed, std::size_t stretch) {
  Pages firsts(kPagesCount / stretch);
  std::iota(firsts.begin(), firsts.end(), 0);
  std::shuffle(firsts.begin(), firsts.end(), std::mt19937_64(seed));
  Pages pages;
  for (const PageIndex first : firsts) {
    for (std::size_t i = 0; i < stretch; ++i) {
      pages.push_back(first * static_cast<PageIndex>(stretch) + static_cast<PageIndex>(i));
    }
  }
  return pages;
}

void coalesce_pages(benchmark::State& state, const Pages& source, const Pages& target) {
  std::vector<PageRun> runs;
  for (auto _ : state) {
    runs.clear();
    coalesce(source, target, runs);
    benchmark::DoNotOptimize(runs.data());
    benchmark::ClobberMemory();
  }
  state.counters["pages/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * kPagesCount), benchmark::Counter::kIsRate);
  state.counters["runs"] = static_cast<double>(runs.size());
}

BENCHMARK_CAPTURE(coalesce_pages, contiguous, contiguous(), contiguous());
BENCHMARK_CAPTURE(coalesce_pages, stretches_of_16, stretches(1, 16), stretches(2, 16));
BENCHMARK_CAPTURE(coalesce_pages, random, shuffled(1), shuffled(2));

// 64 layers, K and V: the whole plan of one chunk, from page lists to writes.
void plan_chunk(benchmark::State& state, const Pages& source, const Pages& target) {
  std::vector<BufferPair> pairs;
  for (std::uint64_t i = 0; i < 128; ++i) {
    pairs.push_back({i << 34, (i << 34) + (1 << 20), 32768, 100000});
  }
  std::vector<PageRun> runs;
  std::vector<WriteRun> writes;
  for (auto _ : state) {
    runs.clear();
    writes.clear();
    coalesce(source, target, runs);
    const Result<void> done = append_writes(pairs, runs, writes);
    if (!done) state.SkipWithError(done.error().text.c_str());
    benchmark::DoNotOptimize(writes.data());
    benchmark::ClobberMemory();
  }
  state.counters["writes/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * writes.size()), benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(plan_chunk, contiguous, contiguous(), contiguous());
BENCHMARK_CAPTURE(plan_chunk, random, shuffled(1), shuffled(2));

}  // namespace
}  // namespace baton::plan
