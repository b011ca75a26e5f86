// Region tables: containment, overlaps and arithmetic at the edges of the address space.
#include "engine/regions.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace baton::engine {
namespace {

constexpr std::uint64_t kTop = std::numeric_limits<std::uint64_t>::max();

Region make_region(std::uint64_t address, std::uint64_t length_bytes) {
  Region region;
  region.address = address;
  region.length_bytes = length_bytes;
  return region;
}

TEST(Regions, ARangeMustLieInOneRegion) {
  RegionTable table;
  ASSERT_TRUE(table.add(make_region(1000, 100)));
  ASSERT_TRUE(table.add(make_region(1100, 100)));  // adjacent, yet another region
  RegionEntry found;
  EXPECT_TRUE(table.find(1000, 100, found));
  EXPECT_TRUE(table.find(1050, 50, found));
  EXPECT_TRUE(table.find(1100, 100, found));
  EXPECT_FALSE(table.find(1050, 51, found));
  EXPECT_FALSE(table.find(999, 2, found));
  EXPECT_FALSE(table.find(1199, 2, found));
  EXPECT_FALSE(table.find(0, 1, found));
  EXPECT_FALSE(table.find(kTop, 1, found));
  EXPECT_FALSE(table.find(1000, kTop, found));
}

TEST(Regions, RefusesWhatCannotBe) {
  RegionTable table;
  EXPECT_FALSE(table.add(make_region(0, 10)));
  EXPECT_FALSE(table.add(make_region(10, 0)));
  EXPECT_FALSE(table.add(make_region(kTop - 5, 10)));
  EXPECT_TRUE(table.add(make_region(kTop - 10, 10)));
  EXPECT_EQ(table.add(make_region(kTop - 10, 10)).error().code, Errc::already_exists);
  EXPECT_EQ(table.remove(RegionId{99}).error().code, Errc::misuse);
}

// Against the obvious search, with regions that overlap and contain each other.
TEST(Regions, AgreesWithASearchThroughAll) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  RegionIndex index;
  for (std::uint32_t step = 0; step < 3000; ++step) {
    if (index.entries().size() > 20 || (random() % 4 == 0 && !index.entries().empty())) {
      index.erase(index.entries()[random() % index.entries().size()].id);
    } else {
      index.insert({RegionId{step}, make_region(1 + random() % 200, 1 + random() % 60)});
    }
    for (int probe = 0; probe < 20; ++probe) {
      const std::uint64_t address = random() % 280, length = random() % 50;
      bool is_inside = false;
      for (const RegionEntry& entry : index.entries()) {
        is_inside |= entry.range().contains({address, address + length});
      }
      EXPECT_EQ(index.find(address, length) != nullptr, is_inside) << address << " " << length;
    }
  }
}

}  // namespace
}  // namespace baton::engine
