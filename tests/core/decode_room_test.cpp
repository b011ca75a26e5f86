// The decode room with several prefill ranks, which the nodes of this version never resolve to.
#include "core/decode_room.hpp"

#include <gtest/gtest.h>

#include "support/core_printer.hpp"

namespace {

using namespace baton;
using namespace baton::core;

const RoomKey kKey{RoomId{7}, Life{1}};
const Instant kNow = Instant{} + std::chrono::hours(1);

PrefillPeer peer(std::uint32_t rank, bool is_dummy = false) {
  return {{"boot:80", 0, 0, rank, 0}, {'P' + std::to_string(rank), 1}, is_dummy, rank + 1};
}

class WideRoom : public testing::Test {
 protected:
  WideRoom() : room_(DecodeRoom::open(kKey, {kKey.room, "boot:80", std::nullopt}, kNow)) {
    config_.registration.endpoint = {"D", 1};
    config_.registration.session_id = "D-engine:1";
    room_.on_resolved({{peer(0), peer(1), peer(2, true)}, 1, 2}, kNow, out_);
    EXPECT_TRUE(room_.on_publish({kKey, {10}, 3, {}, 0}, config_, kNow, out_));
    published_ = told();
  }

  std::string told() {
    const std::string text = test::print_actions(out_, "; ");
    out_.clear();
    return text;
  }
  std::string status(std::uint32_t rank, std::uint32_t status) {
    room_.on_status({kKey.room, status, rank, ""}, config_, generations_, kNow, out_);
    return told();
  }
  std::string abort() {
    room_.fail({FailureCode::aborted_here, "x"}, config_, generations_, kNow, out_);
    return told();
  }
  std::string ack(std::uint32_t rank, std::uint64_t generation) {
    room_.on_abort_ack({kKey.room, rank, generation}, out_);
    return told();
  }

  DecodeConfig config_;
  DecodeRoom room_;
  std::uint64_t generations_ = 40;
  Actions out_;
  std::string published_;
};

TEST_F(WideRoom, DummiesGetMetadataWithoutPages) {
  EXPECT_NE(published_.find("send P1:1 metadata room 7 from D:1 session D-engine:1 pages [10] "
                            "aux 3 prefix 0 required 1"),
            std::string::npos);
  EXPECT_NE(published_.find("send P2:1 metadata room 7 from D:1 session D-engine:1 pages [] "
                            "prefix 0 required 1 dummy"),
            std::string::npos);
}

// [I11]
TEST_F(WideRoom, CountsDistinctRanksNotReports) {
  EXPECT_EQ(status(0, 4), "");
  EXPECT_EQ(status(0, 4), "count drop_duplicate");
  EXPECT_EQ(room_.status(), KvPoll::waiting_for_input);
  EXPECT_EQ(status(1, 4), "count rooms_succeeded; status 7#1 Success; quiet 7#1 yes");
}

TEST_F(WideRoom, OneFailedRankFailsTheRoom) {
  EXPECT_EQ(status(0, 4), "");
  EXPECT_NE(status(1, 0).find("status 7#1 Failed"), std::string::npos);
  EXPECT_EQ(room_.phase(), DecodeRoom::Phase::holding);
}

// Every peer that got an ABORT must prove that it is quiet, dummies included. [spec 4.16]
TEST_F(WideRoom, NeedsTheProofOfEveryPeer) {
  EXPECT_NE(abort().find("send P2:1 abort room 7 return D:1 generation 41"), std::string::npos);
  EXPECT_EQ(ack(0, 41), "");
  EXPECT_EQ(ack(0, 41), "");  // the same rank again
  EXPECT_EQ(ack(1, 40), "count drop_stale_generation");
  EXPECT_EQ(ack(1, 41), "");
  EXPECT_EQ(room_.phase(), DecodeRoom::Phase::holding);
  EXPECT_EQ(ack(2, 41), "quiet 7#1 yes");
}

// A rank that has finished still answers the ABORT: its report is not its proof.
TEST_F(WideRoom, ReportsAreNoProofs) {
  status(0, 4);
  abort();
  EXPECT_EQ(ack(1, 41), "");
  EXPECT_EQ(ack(2, 41), "");
  EXPECT_EQ(room_.phase(), DecodeRoom::Phase::holding);
}

// Armed before the first ABORT leaves: one generation for all, and said after the status. [I25]
TEST_F(WideRoom, ArmsOncePerRoom) {
  const std::string text = abort();
  EXPECT_EQ(text,
            "count rooms_aborted; status 7#1 Failed aborted_here \"x\"; "
            "send P0:1 abort room 7 return D:1 generation 41; "
            "send P1:1 abort room 7 return D:1 generation 41; "
            "send P2:1 abort room 7 return D:1 generation 41");
  EXPECT_EQ(abort(), "");
  EXPECT_EQ(generations_, 41U);
}

}  // namespace
