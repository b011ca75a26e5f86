// However a demo ends, none of its processes is left.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "e2e/process.hpp"

namespace baton::e2e {
namespace {

// Generates long enough to be caught in the middle.
const Arguments kLongDemo = {"demo", "--tokens", "400", "--requests", "8"};

void expect_no_orphans() {
  const auto deadline = std::chrono::steady_clock::now() + kHangLimit;
  while (count_children(getpid()) > 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(count_children(getpid()), 0U);
}

class DemoProcesses : public testing::Test {
 protected:
  DemoProcesses() { adopt_orphans(); }
  // Waits until text is streamed: all three children run and requests are under way.
  static void wait_until_busy(Process& demo) {
    ASSERT_TRUE(demo.wait_for_output("a wife.")) << demo.err();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ASSERT_EQ(count_children(demo.pid()), 3U);
  }
};

TEST_F(DemoProcesses, EndsItsChildrenOnInterrupt) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Process demo(kLongDemo);
    wait_until_busy(demo);
    demo.signal(signal);
    EXPECT_EQ(demo.wait(), 130) << demo.err();
    expect_no_orphans();
  }
}

TEST_F(DemoProcesses, EndsItsChildrenOnInterruptAtAnyTime) {
  for (int milliseconds = 0; milliseconds < 300; milliseconds += 60) {
    Process demo(kLongDemo);
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    demo.signal(SIGTERM);
    const int status = demo.wait();
    // Before it has set itself up, the signal just ends it.
    EXPECT_TRUE(status == 130 || status == 128 + SIGTERM) << status << demo.err();
    expect_no_orphans();
  }
}

TEST_F(DemoProcesses, ItsChildrenDieWithIt) {
  Process demo(kLongDemo);
  wait_until_busy(demo);
  demo.signal(SIGKILL);
  EXPECT_EQ(demo.wait(), 128 + SIGKILL);
  expect_no_orphans();
}

TEST_F(DemoProcesses, SaysWhichChildWasKilled) {
  for (const char* command : {"prefill", "decode", "bootstrap"}) {
    Process demo(kLongDemo);
    wait_until_busy(demo);
    const pid_t child = find_child(demo.pid(), command);
    ASSERT_GT(child, 0);
    kill(child, SIGKILL);
    EXPECT_EQ(demo.wait(), 1);
    EXPECT_NE(demo.err().find(std::string("the ") + command + " process (pid " +
                              std::to_string(child) + ") was killed by signal 9"),
              std::string::npos)
        << demo.err();
    expect_no_orphans();
  }
}

}  // namespace
}  // namespace baton::e2e
