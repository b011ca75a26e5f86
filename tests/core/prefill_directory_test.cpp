// What decode knows of prefill deployments: asked once, registered once, forgotten exactly.
#include "core/prefill_directory.hpp"

#include <gtest/gtest.h>

#include "support/core_printer.hpp"

namespace {

using namespace baton;
using namespace baton::core;
using test::print_actions;

const Endpoint kRank{"P", 1};
const Endpoint kOther{"Q", 1};
const Instant kNow = Instant{} + std::chrono::hours(1);
const std::string kAskTopology = "ask topology boot:80";
const std::string kAskRoute = "ask route boot:80 dp 0 cp 0 tp 0 pp 0";
const std::string kRegister = "registration from D:1 session D-engine:1";

RouteKey route(std::uint32_t dp_rank = 0) { return {"boot:80", dp_rank, 0, 0, 0}; }

class Directory : public testing::Test {
 protected:
  Directory() {
    registration_.endpoint = {"D", 1};
    registration_.session_id = "D-engine:1";
  }

  // What the directory asks or sends; the answer is kept in the members.
  std::string resolve(std::uint64_t room = 7) {
    Actions actions;
    failure_ = {};
    const auto result =
        directory_.resolve(RoomId{room}, "boot:80", std::nullopt, registration_, actions, failure_);
    failed_ = !result;
    resolution_ = result ? *result : std::optional<Resolution>();
    return print_actions(actions, "; ");
  }

  void learn(const Endpoint& endpoint = kRank) {
    EXPECT_EQ(resolve(), kAskTopology);
    EXPECT_TRUE(directory_.on_topology({"boot:80", PrefillInfo{}}, kNow));
    EXPECT_EQ(resolve(), kAskRoute);
    EXPECT_TRUE(directory_.on_route({route(), endpoint}));
  }

  PrefillPeer peer() const { return resolution_->peers.at(0); }

  PrefillDirectory directory_{DecodeShape{}, std::chrono::milliseconds(200)};
  Registration registration_;
  Failure failure_;
  bool failed_ = false;
  std::optional<Resolution> resolution_;
};

TEST_F(Directory, AsksOnceForAllRooms) {
  EXPECT_EQ(resolve(7), kAskTopology);
  EXPECT_EQ(resolve(8), "");
  EXPECT_TRUE(directory_.on_topology({"boot:80", PrefillInfo{}}, kNow));
  EXPECT_EQ(resolve(7), kAskRoute);
  EXPECT_EQ(resolve(8), "");
  EXPECT_FALSE(resolution_);
}

TEST_F(Directory, RegistersOncePerRoute) {
  learn();
  EXPECT_EQ(resolve(7), "send P:1 " + kRegister);
  ASSERT_TRUE(resolution_);
  EXPECT_EQ(resolve(8), "");
  ASSERT_TRUE(resolution_);
  EXPECT_EQ(peer().endpoint, kRank);
}

TEST_F(Directory, UnaskedAnswersAreRefused) {
  EXPECT_FALSE(directory_.on_topology({"boot:80", PrefillInfo{}}, kNow));
  EXPECT_FALSE(directory_.on_route({route(), kRank}));
  learn();
  EXPECT_FALSE(directory_.on_topology({"boot:80", PrefillInfo{}}, kNow));
  EXPECT_FALSE(directory_.on_route({route(), kOther}));
  resolve();
  EXPECT_EQ(peer().endpoint, kRank);
}

TEST_F(Directory, InvalidationForgetsRouteAndShape) {
  learn();
  resolve();
  directory_.invalidate(peer());
  learn(kOther);
  EXPECT_EQ(resolve(), "send Q:1 " + kRegister);
}

// A late word about the old entry must not remove the new one under the same key. [I28]
TEST_F(Directory, StaleInvalidationLeavesTheReplacement) {
  learn();
  resolve();
  const PrefillPeer old = peer();
  directory_.invalidate(old);
  learn(kOther);
  resolve();
  directory_.invalidate(old);
  EXPECT_EQ(resolve(), "");
  ASSERT_TRUE(resolution_);
  EXPECT_EQ(peer().endpoint, kOther);
}

TEST_F(Directory, InvalidationByEndpointLeavesOthers) {
  learn();
  resolve();
  directory_.invalidate(kOther);
  EXPECT_EQ(resolve(), "");
  ASSERT_TRUE(resolution_);
  directory_.invalidate(kRank);
  EXPECT_EQ(resolve(), kAskTopology);
}

// The same endpoint under several routes: all are forgotten.
TEST_F(Directory, InvalidationByEndpointForgetsEveryRoute) {
  EXPECT_EQ(resolve(), kAskTopology);
  PrefillInfo info;
  info.dp_size = 2;
  directory_.on_topology({"boot:80", info}, kNow);
  resolve(0);
  resolve(1);
  directory_.on_route({route(0), kRank});
  directory_.on_route({route(1), kRank});
  directory_.invalidate(kRank);
  EXPECT_EQ(resolve(0), kAskTopology);
  directory_.on_topology({"boot:80", info}, kNow);
  EXPECT_EQ(resolve(0), "ask route boot:80 dp 0 cp 0 tp 0 pp 0");
  EXPECT_EQ(resolve(1), "ask route boot:80 dp 1 cp 0 tp 0 pp 0");
}

TEST_F(Directory, FailingRouteFailsAllWaitingRoomsWithOneRequest) {
  resolve(7);
  directory_.on_topology({"boot:80", PrefillInfo{}}, kNow);
  resolve(7);
  resolve(8);
  EXPECT_TRUE(directory_.on_route({route(), Error{Errc::not_found, "404"}}));
  for (const std::uint64_t room : {7U, 8U}) {
    EXPECT_EQ(resolve(room), "");
    EXPECT_TRUE(failed_);
    EXPECT_EQ(failure_.code, FailureCode::unresolved);
  }
  directory_.forget_failed(route());
  EXPECT_EQ(resolve(9), kAskRoute);
  EXPECT_FALSE(failed_);
}

TEST_F(Directory, FailingTopologyIsAskedAgainAfterTheInterval) {
  resolve();
  EXPECT_TRUE(directory_.on_topology({"boot:80", Error{Errc::unreachable, "refused"}}, kNow));
  EXPECT_EQ(directory_.last_error("boot:80"), "refused");
  EXPECT_EQ(resolve(), "");
  EXPECT_EQ(directory_.next_retry(), kNow + std::chrono::milliseconds(200));
  EXPECT_EQ(directory_.take_due(kNow), std::nullopt);
  EXPECT_EQ(directory_.take_due(kNow + std::chrono::milliseconds(200)), "boot:80");
  EXPECT_EQ(directory_.next_retry(), std::nullopt);
  EXPECT_EQ(resolve(), kAskTopology);
}

TEST_F(Directory, LastErrorSaysWhatIsMissing) {
  EXPECT_EQ(directory_.last_error("boot:80"), "");
  resolve();
  EXPECT_EQ(directory_.last_error("boot:80"), "no answer yet");
  directory_.on_topology({"boot:80", PrefillInfo{}}, kNow);
  EXPECT_EQ(directory_.last_error("boot:80"), "no answer about the rank's address yet");
}

TEST_F(Directory, MismatchFailsWithoutAskingForARoute) {
  resolve();
  PrefillInfo info;
  info.attn_tp_size = 8;
  directory_.on_topology({"boot:80", info}, kNow);
  EXPECT_EQ(resolve(), "");
  EXPECT_TRUE(failed_);
  EXPECT_EQ(failure_.code, FailureCode::incompatible);
}

}  // namespace
