// The decode node as a whole: one look-up for many rooms, deadlines, and that it is a value.
#include "core/decode_node.hpp"

#include <gtest/gtest.h>

#include "support/core_printer.hpp"

namespace {

using namespace baton;
using namespace baton::core;

const Instant kNow = Instant{} + std::chrono::hours(1);
const RouteKey kRoute{"boot:80", 0, 0, 0, 0};
const Endpoint kPrefill{"P", 1};

DecodeConfig config() {
  DecodeConfig made;
  made.registration.endpoint = {"D", 1};
  made.registration.session_id = "D-engine:1";
  return made;
}

class DecodeNodeWhole : public testing::Test {
 protected:
  std::string step(DecodeEvent event, Instant now = kNow) {
    Actions actions;
    const Result<RoomKey> told = node_.step(now, std::move(event), actions);
    if (told) key_ = *told;
    return told ? test::print_actions(actions, "; ") : test::print_error(told.error());
  }
  std::string open(std::uint64_t room, Instant now = kNow) {
    return step(OpenReceiver{RoomId{room}, "boot:80", std::nullopt}, now);
  }

  DecodeNode node_{config()};
  RoomKey key_;
};

TEST_F(DecodeNodeWhole, ConcurrentRoomsShareOneRequestAndOneRegistration) {
  EXPECT_EQ(open(1), "count rooms_opened; status 1#1 Bootstrapping; ask topology boot:80");
  EXPECT_EQ(open(2), "count rooms_opened; status 2#2 Bootstrapping");
  EXPECT_EQ(step(TopologyReply{"boot:80", PrefillInfo{}}), "ask route boot:80 dp 0 cp 0 tp 0 pp 0");
  EXPECT_EQ(step(RouteReply{kRoute, kPrefill}),
            "send P:1 registration from D:1 session D-engine:1; status 1#1 WaitingForInput; "
            "status 2#2 WaitingForInput");
}

// The registration leaves before any metadata, on the same ordered link. [I27]
TEST_F(DecodeNodeWhole, RegistersBeforeItPublishes) {
  open(1);
  step(TopologyReply{"boot:80", PrefillInfo{}});
  EXPECT_EQ(step(RouteReply{kRoute, kPrefill}).substr(0, 21), "send P:1 registration");
}

// Resolve time-outs and retries share one timer.
TEST_F(DecodeNodeWhole, NextDeadlineIsTheEarlierOfRoomsAndRetries) {
  open(1);
  EXPECT_EQ(node_.next_deadline(), kNow + std::chrono::seconds(15));
  step(TopologyReply{"boot:80", Error{Errc::unreachable, "refused"}});
  EXPECT_EQ(node_.next_deadline(), kNow + std::chrono::milliseconds(200));
  EXPECT_EQ(step(Tick{}, kNow + std::chrono::milliseconds(200)), "ask topology boot:80");
  EXPECT_EQ(node_.next_deadline(), kNow + std::chrono::seconds(15));
}

TEST_F(DecodeNodeWhole, LateTickFiresAllThatIsDue) {
  open(1);
  open(2);
  const std::string told = step(Tick{}, kNow + std::chrono::hours(1));
  EXPECT_NE(told.find("status 1#1 Failed"), std::string::npos) << told;
  EXPECT_NE(told.find("status 2#2 Failed"), std::string::npos) << told;
  EXPECT_EQ(node_.next_deadline(), std::nullopt);
}

// Generations are the node's, not the room's: a reused number never meets its old one. [I25]
TEST_F(DecodeNodeWhole, GenerationsNeverRepeat) {
  open(1);
  step(TopologyReply{"boot:80", PrefillInfo{}});
  step(RouteReply{kRoute, kPrefill});
  for (const std::string generation : {"generation 1", "generation 2", "generation 3"}) {
    const RoomKey key = node_.rooms().at(RoomId{1}).key();
    step(Publish{key, {10}, 0, {}, 0});
    EXPECT_NE(step(ClearRoom{key}).find(generation), std::string::npos);
    step(Tick{}, kNow + std::chrono::seconds(30));
    open(1);
  }
}

TEST_F(DecodeNodeWhole, IsAValue) {
  DecodeNode copy = node_;
  const RoomKey key{RoomId{1}, Life{1}};
  const std::vector<DecodeEvent> story = {OpenReceiver{RoomId{1}, "boot:80", std::nullopt},
                                          TopologyReply{"boot:80", PrefillInfo{}},
                                          RouteReply{kRoute, kPrefill},
                                          Publish{key, {10}, 0, {}, 0},
                                          ClearRoom{key},
                                          MessageReceived{AbortAck{RoomId{1}, 0, 1}}};
  for (const DecodeEvent& event : story) {
    EXPECT_TRUE(copy == node_);
    Actions here, there;
    const Result<RoomKey> told = node_.step(kNow, event, here);
    EXPECT_FALSE(copy == node_) << test::print_event(event);
    EXPECT_EQ(copy.step(kNow, event, there), told) << test::print_event(event);
    EXPECT_EQ(test::print_actions(here, "\n"), test::print_actions(there, "\n"));
  }
  EXPECT_TRUE(copy == node_);
}

}  // namespace
