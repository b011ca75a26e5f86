// Counters: names, references that stay, and adding from several threads.
#include "obs/counters.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace baton::obs {
namespace {

using Counts = std::vector<NamedCount>;

TEST(Counters, StartAtZeroAndAreSortedByName) {
  Counters counters;
  counters.counter("writes_failed");
  counters.counter("bytes_sent").add(40);
  counters.counter("bytes_sent").add();
  EXPECT_EQ(counters.snapshot(), (Counts{{"bytes_sent", 41}, {"writes_failed", 0}}));
}

TEST(Counters, AReferenceStaysGood) {
  Counters counters;
  Counter& first = counters.counter("m");
  for (char name = 'a'; name <= 'z'; ++name) counters.counter(std::string(1, name));
  first.add(2);
  EXPECT_EQ(&counters.counter("m"), &first);
  EXPECT_EQ(counters.counter("m").value(), 2U);
}

TEST(Counters, ThreadsMayAddTogether) {
  Counters counters;
  const auto work = [&] {
    for (int i = 0; i < 1000; ++i) counters.counter("events").add();
  };
  std::thread one(work), two(work);
  one.join();
  two.join();
  EXPECT_EQ(counters.snapshot(), (Counts{{"events", 2000}}));
}

}  // namespace
}  // namespace baton::obs
