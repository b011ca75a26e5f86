// The log: levels, the form of a line, escaping, and the rate limit.
#include "obs/log.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace baton::obs {
namespace {

class Log : public testing::Test {
 protected:
  ~Log() override { configure_log({}); }

  void capture(LogLevel level) {
    configure_log({level, [this](LogLevel, std::string_view line) { lines.emplace_back(line); }});
  }

  std::vector<std::string> lines;
};

using Lines = std::vector<std::string>;

TEST_F(Log, WarnsByDefault) {
  EXPECT_TRUE(log_enabled(LogLevel::error));
  EXPECT_TRUE(log_enabled(LogLevel::warn));
  EXPECT_FALSE(log_enabled(LogLevel::info));
}

TEST_F(Log, WritesAnEventWithItsValues) {
  capture(LogLevel::info);
  const std::string peer = "10.0.0.7:9000";
  BATON_LOG(info, "peer_connected peer {} attempt {} share {} ok {}", peer, 3U, 0.5, true);
  BATON_LOG(info, "hub_stopped");
  EXPECT_EQ(lines, (Lines{"peer_connected peer 10.0.0.7:9000 attempt 3 share 0.5 ok true",
                          "hub_stopped"}));
}

TEST_F(Log, ALineThatIsOffComputesNothing) {
  capture(LogLevel::warn);
  int computed = 0;
  BATON_LOG(debug, "room_opened room {}", ++computed);
  BATON_LOG(error, "room_lost room {}", ++computed);
  EXPECT_EQ(computed, 1);
  EXPECT_EQ(lines, Lines{"room_lost room 1"});
}

TEST_F(Log, OffMeansOff) {
  capture(LogLevel::off);
  BATON_LOG(error, "never");
  EXPECT_EQ(lines, Lines{});
}

TEST_F(Log, ATextFromOutsideCannotForgeALine) {
  capture(LogLevel::warn);
  BATON_LOG(warn, "malformed text \"{}\"", "a\"b\\\n{}\x7f");
  EXPECT_EQ(lines, Lines{"malformed text \"a\\\"b\\\\\\x0a{}\\x7f\""});
}

TEST_F(Log, PassesTheLevelOn) {
  std::vector<LogLevel> levels;
  configure_log(
      {LogLevel::trace, [&](LogLevel level, std::string_view) { levels.push_back(level); }});
  BATON_LOG(error, "a");
  BATON_LOG(warn, "a");
  BATON_LOG(info, "a");
  BATON_LOG(debug, "a");
  BATON_LOG(trace, "a");
  EXPECT_EQ(levels, (std::vector{LogLevel::error, LogLevel::warn, LogLevel::info, LogLevel::debug,
                                 LogLevel::trace}));
}

TEST_F(Log, LimitedLinesComeOncePerKey) {
  capture(LogLevel::warn);
  for (int i = 0; i < 5; ++i) BATON_LOG_LIMITED(warn, "log_test_a", "malformed number {}", i);
  BATON_LOG_LIMITED(warn, "log_test_b", "malformed number {}", 9);
  EXPECT_EQ(lines, (Lines{"malformed number 0", "malformed number 9"}));
}

TEST_F(Log, GoesToStderrWithTimeLevelAndThread) {
  testing::internal::CaptureStderr();
  BATON_LOG(warn, "peer_lost peer {}", 7);
  const std::string output = testing::internal::GetCapturedStderr();
  EXPECT_NE(output.find("Z warning "), std::string::npos) << output;
  EXPECT_NE(output.find(" peer_lost peer 7\n"), std::string::npos) << output;
}

TEST_F(Log, ThreadsMayLogWhileItIsReconfigured) {
  std::thread writer([] {
    for (int i = 0; i < 200; ++i) BATON_LOG(warn, "tick number {}", i);
  });
  for (int i = 0; i < 50; ++i) configure_log({LogLevel::warn, [](LogLevel, std::string_view) {}});
  writer.join();
}

TEST_F(Log, LevelNamesRoundTrip) {
  for (const LogLevel level : {LogLevel::off, LogLevel::error, LogLevel::warn, LogLevel::info,
                               LogLevel::debug, LogLevel::trace}) {
    EXPECT_EQ(parse_log_level(to_string(level)), level);
  }
  EXPECT_EQ(parse_log_level("loud"), std::nullopt);
  EXPECT_EQ(parse_log_level(""), std::nullopt);
}

}  // namespace
}  // namespace baton::obs
