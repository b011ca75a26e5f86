// Waker: no wake is lost, and no late write keeps a later sleep from sleeping.
#include "net/waker.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

namespace baton::net {
namespace {

bool is_readable(int descriptor, int timeout_ms) {
  pollfd poll_entry{descriptor, POLLIN, 0};
  return ::poll(&poll_entry, 1, timeout_ms) == 1;
}

TEST(Waker, WakeBeforeSleepIsRememberedWithoutASystemCall) {
  Waker waker;
  ASSERT_TRUE(waker.open());
  waker.wake();
  EXPECT_FALSE(waker.prepare_sleep());
  EXPECT_FALSE(is_readable(waker.descriptor(), 0));
  EXPECT_TRUE(waker.consume());
  EXPECT_FALSE(waker.consume());
}

TEST(Waker, WakeDuringSleepMakesTheDescriptorReadableOnce) {
  Waker waker;
  ASSERT_TRUE(waker.open());
  ASSERT_TRUE(waker.prepare_sleep());
  waker.wake();
  EXPECT_TRUE(is_readable(waker.descriptor(), 0));
  waker.finish_sleep(true);
  EXPECT_FALSE(is_readable(waker.descriptor(), 0));
  EXPECT_TRUE(waker.consume());
  ASSERT_TRUE(waker.prepare_sleep());
  waker.finish_sleep(false);
  EXPECT_FALSE(waker.consume());
}

// 1. The sleeper gets up for another reason, between a waker's exchange and its write.
// 2. The write lands later. 3. The next sleep ends early and has to clear it.
TEST(Waker, LateWriteEndsOneSleepOnly) {
  Waker waker;
  ASSERT_TRUE(waker.open());
  ASSERT_TRUE(waker.prepare_sleep());
  waker.wake();
  waker.finish_sleep(false);  // "did not see the descriptor readable"
  EXPECT_TRUE(waker.consume());
  ASSERT_TRUE(waker.prepare_sleep());
  EXPECT_TRUE(is_readable(waker.descriptor(), 0));
  waker.finish_sleep(true);
  EXPECT_FALSE(waker.consume());
  EXPECT_FALSE(is_readable(waker.descriptor(), 0));
}

TEST(Waker, EveryWakeIsSeen) {
  constexpr int kWakes = 20'000;
  Waker waker;
  ASSERT_TRUE(waker.open());
  std::atomic<int> produced{0};
  std::thread producer([&] {
    for (int index = 0; index < kWakes; ++index) {
      produced.fetch_add(1);
      waker.wake();
    }
  });
  int seen = 0;
  while (seen < kWakes) {
    if (waker.consume()) seen = produced.load();
    if (seen == kWakes) break;
    bool readable = false;
    if (waker.prepare_sleep()) {
      readable = is_readable(waker.descriptor(), 60'000);
      ASSERT_TRUE(readable) << "a wake was lost after " << seen;
    }
    waker.finish_sleep(readable);
  }
  producer.join();
}

}  // namespace
}  // namespace baton::net
