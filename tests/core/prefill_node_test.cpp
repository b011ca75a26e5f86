// The prefill node as a whole: limits, deadlines of many rooms, and that it is a value.
#include "core/prefill_node.hpp"

#include <gtest/gtest.h>

#include "support/core_printer.hpp"

namespace {

using namespace baton;
using namespace baton::core;

const Instant kNow = Instant{} + std::chrono::hours(1);

Registration registration(const std::string& name) {
  Registration message;
  message.endpoint = {name, 1};
  message.session_id = name + "-engine:1";
  return message;
}

Metadata metadata(std::uint64_t room, const std::string& name = "D") {
  Metadata message;
  message.room = RoomId{room};
  message.endpoint = {name, 1};
  message.session_id = name + "-engine:1";
  message.kv_pages = {10, 11};
  message.aux_index = 0;
  return message;
}

class PrefillNodeWhole : public testing::Test {
 protected:
  std::string step(PrefillEvent event, Instant now = kNow) {
    Actions actions;
    const Result<RoomKey> told = node_.step(now, std::move(event), actions);
    if (told) key_ = *told;
    return told ? test::print_actions(actions, "; ") : test::print_error(told.error());
  }
  std::string receive(Message message) { return step(MessageReceived{std::move(message)}); }

  PrefillNode node_{PrefillConfig{}};
  RoomKey key_;
};

// Beyond the limit metadata is dropped and counted; rooms that were opened here do not count.
TEST_F(PrefillNodeWhole, AnnouncedRoomsAreLimited) {
  step(OpenSender{RoomId{1'000'000}});
  for (std::uint64_t room = 0; room < PrefillNode::kAnnouncedRoomsMax; ++room) {
    ASSERT_EQ(receive(metadata(room)), "count metadata_unregistered");
  }
  EXPECT_EQ(receive(metadata(999'999)), "count drop_limit");
  EXPECT_NE(receive(metadata(1'000'000)), "count drop_limit");
  EXPECT_NE(receive(metadata(5)), "count drop_limit");  // known already
}

// Every way in which an announced room stops being one makes room for the next.
TEST_F(PrefillNodeWhole, AnnouncedRoomsAreCountedBack) {
  for (std::uint64_t room = 0; room < PrefillNode::kAnnouncedRoomsMax; ++room) {
    receive(metadata(room));
  }
  step(OpenSender{RoomId{5}});
  EXPECT_NE(receive(metadata(999'999)), "count drop_limit");
  EXPECT_EQ(receive(metadata(999'998)), "count drop_limit");
  receive(Abort{RoomId{6}, Endpoint{"D", 1}, 1});
  EXPECT_NE(receive(metadata(999'998)), "count drop_limit");
  EXPECT_EQ(receive(metadata(999'997)), "count drop_limit");
  step(Tick{}, kNow + std::chrono::seconds(300));
  EXPECT_EQ(node_.rooms().size(), 1U);
  EXPECT_NE(receive(metadata(999'997)), "count drop_limit");
}

TEST_F(PrefillNodeWhole, SessionsAreLimited) {
  for (std::size_t index = 0; index < PrefillNode::kSessionsMax; ++index) {
    ASSERT_EQ(receive(registration('D' + std::to_string(index))), "");
  }
  EXPECT_EQ(receive(registration("one-more")), "count drop_limit");
  EXPECT_EQ(receive(registration("D7")), "");  // a known one may register again
}

TEST_F(PrefillNodeWhole, PeersOfARoomAreLimited) {
  Metadata message = metadata(7);
  message.required_dst_info_num = 1'000'000;
  for (std::size_t index = 0; index < PrefillRoom::kPeersMax; ++index) {
    message.session_id = 'S' + std::to_string(index) + ":1";
    ASSERT_EQ(receive(message), "count metadata_unregistered");
  }
  message.session_id = "one-more:1";
  EXPECT_EQ(receive(message), "count metadata_unregistered; count drop_limit");
}

TEST_F(PrefillNodeWhole, DrainPromisesOfARoomAreLimited) {
  receive(registration("D"));
  step(OpenSender{RoomId{7}});
  const RoomKey key = key_;
  step(InitSender{key, 2, 0});
  receive(metadata(7));
  step(SendChunk{key, {0}, {}, std::nullopt});
  for (std::size_t index = 0; index < PrefillRoom::kPeersMax; ++index) {
    receive(Abort{RoomId{7}, Endpoint{'E' + std::to_string(index), 1}, 1});
  }
  EXPECT_EQ(receive(Abort{RoomId{7}, Endpoint{"one-more", 1}, 1}), "count drop_limit");
  EXPECT_EQ(receive(Abort{RoomId{7}, Endpoint{"E7", 1}, 2}), "");  // newer, same endpoint
}

// An application cannot act on a room that only decode has announced.
TEST_F(PrefillNodeWhole, AnnouncedRoomsBelongToNobody) {
  receive(metadata(7));
  const RoomKey key = node_.rooms().at(RoomId{7}).key();
  EXPECT_EQ(step(AbortRoom{key}), "not_found: room 7 is no longer tracked");
  EXPECT_EQ(step(ClearRoom{key}), "not_found: room 7 is no longer tracked");
  EXPECT_EQ(step(InitSender{key, 1, 0}), "not_found: room 7 is no longer tracked");
}

TEST_F(PrefillNodeWhole, NextDeadlineIsTheEarliestRoom) {
  EXPECT_EQ(node_.next_deadline(), std::nullopt);
  step(OpenSender{RoomId{1}}, kNow + std::chrono::seconds(5));
  step(OpenSender{RoomId{2}}, kNow);
  EXPECT_EQ(node_.next_deadline(), kNow + std::chrono::seconds(300));
  const std::string told = step(Tick{}, kNow + std::chrono::seconds(301));
  EXPECT_NE(told.find("status 2#2 Failed"), std::string::npos) << told;
  EXPECT_EQ(told.find("status 1#1"), std::string::npos) << told;
  EXPECT_EQ(node_.next_deadline(), kNow + std::chrono::seconds(305));
}

// One late tick fires everything that is due.
TEST_F(PrefillNodeWhole, LateTickFiresAllThatIsDue) {
  step(OpenSender{RoomId{1}});
  step(OpenSender{RoomId{2}});
  const std::string told = step(Tick{}, kNow + std::chrono::hours(1));
  EXPECT_NE(told.find("status 1#1 Failed"), std::string::npos) << told;
  EXPECT_NE(told.find("status 2#2 Failed"), std::string::npos) << told;
  EXPECT_EQ(node_.next_deadline(), std::nullopt);
}

// The clock of the caller may stand still or jump back; nothing fires early.
TEST_F(PrefillNodeWhole, TimeMayRunBackwards) {
  step(OpenSender{RoomId{1}});
  EXPECT_EQ(step(Tick{}, kNow - std::chrono::seconds(100)), "");
  EXPECT_EQ(node_.next_deadline(), kNow + std::chrono::seconds(300));
}

// Two registrations say the same but are two objects: a node compares by content.
TEST_F(PrefillNodeWhole, IsAValue) {
  step(OpenSender{RoomId{7}});
  PrefillNode copy = node_;
  EXPECT_TRUE(copy == node_);
  const std::vector<PrefillEvent> story = {MessageReceived{registration("D")},
                                           MessageReceived{metadata(7)},
                                           InitSender{key_, 2, 0},
                                           SendChunk{key_, {0}, {}, std::nullopt},
                                           AbortRoom{key_},
                                           Tick{}};
  for (const PrefillEvent& event : story) {
    Actions here, there;
    const Result<RoomKey> told = node_.step(kNow, event, here);
    EXPECT_FALSE(copy == node_ && !here.empty()) << test::print_event(event);
    EXPECT_EQ(copy.step(kNow, event, there), told) << test::print_event(event);
    EXPECT_EQ(test::print_actions(here, "\n"), test::print_actions(there, "\n"));
    EXPECT_TRUE(copy == node_) << test::print_event(event);
  }
}

}  // namespace
