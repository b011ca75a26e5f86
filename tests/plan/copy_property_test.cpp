// Whole plans on real memory: every target byte written exactly once, from the right source byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <random>

#include "plan/kv_plan.hpp"
#include "plan/page_runs.hpp"

namespace baton::plan {
namespace {

using Pages = std::vector<PageIndex>;

// Two small ranks with the same layers, each in its own order and its own place.
struct World {
  std::mt19937_64 random;
  std::vector<KvBuffer> source;
  std::vector<std::uint32_t> source_layers;
  std::vector<std::uint64_t> target;
  std::vector<std::uint64_t> target_item_bytes;
  std::vector<std::uint32_t> target_layers;
  std::uint64_t target_pages = 0;
  Pages source_indices, target_indices;

  explicit World(std::uint64_t seed) : random(seed) {
    const std::uint64_t source_pages = 1 + random() % 40;
    target_pages = source_pages + random() % 40;
    place_buffers(source_pages);
    const std::size_t count = 1 + random() % source_pages;
    source_indices = choose(source_pages, count);
    target_indices = choose(target_pages, count);
  }

  void place_buffers(std::uint64_t source_pages) {
    std::vector<std::uint32_t> layers(1 + random() % 5);
    std::iota(layers.begin(), layers.end(), 3);
    std::uint64_t source_end = 1 + random() % 100, target_end = 1 + random() % 100;
    std::map<std::uint32_t, std::uint64_t> item_bytes;
    for (int half = 0; half < 2; ++half) {  // K of every layer, then V
      for (const std::uint32_t layer : layers) {
        if (half == 0) item_bytes[layer] = 1 + random() % 9;
        source.push_back({source_end, source_pages * item_bytes[layer], item_bytes[layer]});
        source_layers.push_back(layer);
        source_end += source.back().length_bytes + random() % 2 * (random() % 5);
      }
    }
    std::shuffle(layers.begin(), layers.end(), random);
    for (int half = 0; half < 2; ++half) {
      for (const std::uint32_t layer : layers) {
        target.push_back(target_end);
        target_item_bytes.push_back(item_bytes[layer]);
        target_layers.push_back(layer);
        target_end += target_pages * item_bytes[layer] + random() % 2 * (random() % 5);
      }
    }
  }

  // `count` different pages, mostly in stretches, in an order that is broken up now and then.
  Pages choose(std::uint64_t pages, std::size_t count) {
    Pages all(pages);
    std::iota(all.begin(), all.end(), 0);
    for (std::uint64_t cuts = random() % 6; cuts > 0; --cuts) {
      const auto middle = static_cast<std::ptrdiff_t>(random() % pages);
      std::rotate(all.begin(), all.begin() + middle, all.end());
      std::swap(all.front(), all[random() % pages]);
    }
    all.resize(count);
    return all;
  }
};

// Target address -> source address, byte by byte, straight from the definition. The n-th buffer of
// a layer here belongs to the n-th buffer of that layer there.
std::map<std::uint64_t, std::uint64_t> oracle(const World& world) {
  std::map<std::uint64_t, std::uint64_t> origin;
  std::map<std::uint32_t, std::size_t> seen;
  for (std::size_t i = 0; i < world.source.size(); ++i) {
    const std::uint32_t layer = world.source_layers[i];
    std::size_t skip = seen[layer]++, partner = 0;
    while (world.target_layers[partner] != layer || skip-- > 0) ++partner;
    const std::uint64_t bytes = world.source[i].item_bytes;
    for (std::size_t page = 0; page < world.source_indices.size(); ++page) {
      for (std::uint64_t byte = 0; byte < bytes; ++byte) {
        const auto from = static_cast<std::uint64_t>(world.source_indices[page]);
        const auto to = static_cast<std::uint64_t>(world.target_indices[page]);
        origin[world.target[partner] + to * bytes + byte] =
            world.source[i].address + from * bytes + byte;
      }
    }
  }
  return origin;
}

TEST(CopyProperty, EveryTargetByteOnceFromItsSource) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const World world(seed);
    const auto pairs = pair_buffers("KV", world.source, world.source_layers,
                                    {world.target, world.target_item_bytes, world.target_layers});
    ASSERT_TRUE(pairs) << pairs.error().text;
    std::vector<PageRun> runs;
    coalesce(world.source_indices, world.target_indices, runs);
    std::vector<WriteRun> writes;
    ASSERT_TRUE(append_writes(*pairs, runs, writes));
    EXPECT_EQ(writes.size(), pairs->size() * runs.size());

    std::map<std::uint64_t, std::uint64_t> origin;
    for (const WriteRun& write : writes) {
      for (std::uint64_t byte = 0; byte < write.length_bytes; ++byte) {
        const bool first = origin.emplace(write.target + byte, write.source + byte).second;
        ASSERT_TRUE(first) << "target byte " << write.target + byte << " is written twice";
      }
    }
    ASSERT_EQ(origin, oracle(world));
  }
}

}  // namespace
}  // namespace baton::plan
