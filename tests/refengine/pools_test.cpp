// Addresses in the KV pool and the page free list.
#include "refengine/pools.hpp"

#include <set>

#include "refengine/support.hpp"

namespace baton::refengine {
namespace {

TEST(KvPool, BuffersAreKOfAllLayersThenVOfAllLayers) {
  const PoolShape shape{3, 5, 16, 4, 32};
  std::vector<std::byte> memory(shape.total_bytes());
  const KvPool pool(shape, memory);
  const std::vector<KvBuffer> buffers = pool.buffers();
  ASSERT_EQ(buffers.size(), 6U);
  for (std::size_t layer = 0; layer < 3; ++layer) {
    for (const std::size_t part : {0, 1}) {
      const KvBuffer& buffer = buffers[part * 3 + layer];
      EXPECT_EQ(buffer.item_bytes, 4096U);
      EXPECT_EQ(buffer.length_bytes, 5U * 4096U);
      EXPECT_EQ(buffer.address,
                reinterpret_cast<std::uintptr_t>(memory.data()) + (2 * layer + part) * 5 * 4096);
    }
  }
}

TEST(KvPool, ATokenIsFoundThroughThePageTable) {
  const PoolShape shape{2, 5, 4, 4, 32};
  std::vector<std::byte> memory(shape.total_bytes());
  const KvPool pool(shape, memory);
  const std::vector<PageIndex> pages = {3, 0, 4};
  const auto offset = [&](std::size_t layer, KvPart part, std::size_t token) {
    return reinterpret_cast<std::byte*>(pool.token(layer, part, pages, token)) - memory.data();
  };
  EXPECT_EQ(offset(0, KvPart::k, 0), 3 * 1024);
  EXPECT_EQ(offset(0, KvPart::k, 5), 256);
  EXPECT_EQ(offset(0, KvPart::v, 11), 5 * 1024 + 4 * 1024 + 3 * 256);
  EXPECT_EQ(offset(1, KvPart::v, 4), 3 * 5 * 1024);
}

TEST(PageAllocator, HandsOutEveryPageOnceInScatteredRuns) {
  PageAllocator allocator(100);
  const std::vector<PageIndex> pages = *allocator.take(100);
  EXPECT_EQ(std::set<PageIndex>(pages.begin(), pages.end()).size(), 100U);
  EXPECT_EQ(allocator.free_count(), 0U);
  std::size_t runs = 1;
  for (std::size_t i = 1; i < pages.size(); ++i) runs += pages[i] == pages[i - 1] + 1 ? 0 : 1;
  EXPECT_GT(runs, 20U);  // gaps,
  EXPECT_LT(runs, 80U);  // and runs
}

TEST(PageAllocator, TakesAllOrNothing) {
  PageAllocator allocator(4);
  const std::vector<PageIndex> three = *allocator.take(3);
  EXPECT_FALSE(allocator.take(2).has_value());
  EXPECT_EQ(allocator.free_count(), 1U);
  allocator.give_back(three);
  EXPECT_EQ(allocator.take(4)->size(), 4U);
  EXPECT_TRUE(allocator.take(0)->empty());
}

TEST(PageAllocatorDeathTest, APageCannotBeGivenBackTwice) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  PageAllocator allocator(4);
  const std::vector<PageIndex> one = *allocator.take(1);
  allocator.give_back(one);
  EXPECT_DEATH(allocator.give_back(one), "taken_");
}

}  // namespace
}  // namespace baton::refengine
