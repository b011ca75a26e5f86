// Golden test: our frames and our reading of frames against what real SGLang processes recorded.
//
// Kinds without frames, which speak of the staging core (a later issue) and not of the codec:
// CHUNK_READY_FANIN (how many writers complete a chunk). STAGING_STATE is one too, but what it says
// about prefill's view of the replies is checked here. ABORT_ACK_APPLIED's counting belongs to the
// core; its frames are checked here. Which status is emitted (KV_STATUS: success_downgraded,
// success_on_failed_room) and when an ACK is due (ABORT_ACK) also belong to the core.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "wire/dialect.hpp"
#include "wire/golden_messages.hpp"

namespace baton::wire::test {
namespace {

// The recorded entries of every Mooncake kind. A loop over an empty list cannot pass for a check.
const std::map<std::string, int> kRecorded = {
    {"registration", 44},      {"registration_truncated", 14},
    {"metadata", 45},          {"metadata_error", 1},
    {"metadata_truncated", 6}, {"ABORT", 2},
    {"ABORT_ACK", 7},          {"ABORT_ACK_APPLIED", 1},
    {"AUX_DATA", 2},           {"CHUNK_READY", 2},
    {"CHUNK_READY_FANIN", 2},  {"KV_STATUS", 12},
    {"KV_STATUS_PARSE", 8},    {"STAGING_REQ", 6},
    {"STAGING_RSP", 20},       {"STAGING_STATE", 2},
    {"WATERMARK", 12},
};

Side receiver_of(const std::string& kind) {
  const bool to_prefill = kind.starts_with("registration") || kind.starts_with("metadata") ||
                          kind == "ABORT" || kind == "STAGING_RSP" || kind == "WATERMARK";
  return to_prefill ? Side::prefill : Side::decode;
}

std::string label(const GoldenEntry& entry) { return entry.kind + " " + entry.name; }

void expect_encodes(const GoldenEntry& entry, const Message& message) {
  const Result<Frames> frames = mooncake().encode(message);
  ASSERT_TRUE(frames) << label(entry) << ": " << frames.error().text;
  EXPECT_EQ(*frames, entry.frames) << label(entry);
}

void expect_decodes(const GoldenEntry& entry) {
  const std::optional<Message> expected = message_received(entry);
  const Result<Message> message = mooncake().decode(receiver_of(entry.kind), entry.frames);
  if (!expected) {
    ASSERT_FALSE(message) << label(entry);
    EXPECT_EQ(message.error().code, Errc::malformed) << label(entry);
    return;
  }
  ASSERT_TRUE(message) << label(entry) << ": " << message.error().text;
  EXPECT_EQ(*message, *expected) << label(entry);
}

std::vector<GoldenEntry> recorded(const std::string& kind) {
  std::vector<GoldenEntry> entries = golden_entries(kind);
  EXPECT_EQ(count_recorded(kind, entries), kRecorded.at(kind)) << kind;
  return entries;
}

TEST(Golden, TheFileHasEveryRecordedEntry) {
  const auto header = golden_header();
  ASSERT_TRUE(header.contains("entries"));
  const auto entries = header.at("entries").get<std::map<std::string, int>>();
  EXPECT_EQ(entries, kRecorded);
  EXPECT_EQ(count_recorded("of all kinds", golden_entries()), 186);
}

class GoldenKind : public testing::TestWithParam<const char*> {};

TEST_P(GoldenKind, EncodesAndDecodes) {
  for (const GoldenEntry& entry : recorded(GetParam())) {
    expect_encodes(entry, message_to_send(entry));
    expect_decodes(entry);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenKind,
                         testing::Values("ABORT", "ABORT_ACK", "AUX_DATA", "CHUNK_READY",
                                         "KV_STATUS", "STAGING_REQ", "STAGING_RSP", "WATERMARK"),
                         [](const auto& kind) { return std::string(kind.param); });

// Peers of the version before the PR send 18 frames; we always send 20, and they do not look at
// the last two.
TEST(Golden, RegistrationOfOlderPeersIsAPrefixOfOurs) {
  int short_entries = 0;
  for (GoldenEntry entry : recorded("registration")) {
    expect_decodes(entry);
    if (entry.upstream) {
      ASSERT_EQ(entry.frames.size(), 18U) << label(entry);
      short_entries += entry.recorded;
      const Result<Frames> frames = mooncake().encode(message_to_send(entry));
      ASSERT_TRUE(frames) << label(entry);
      entry.frames.insert(entry.frames.end(), frames->begin() + 18, frames->end());
    }
    ASSERT_EQ(entry.frames.size(), 20U) << label(entry);
    expect_encodes(entry, message_to_send(entry));
  }
  EXPECT_EQ(short_entries, 7);
}

// On purpose unlike the reference: its sender writes "None" for a missing aux index, which ends the
// receiver's thread. We refuse to send such a message, and drop it when we get it. [spec 5.3]
TEST(Golden, MetadataWithoutAuxIndexIsRefusedWhereTheReferenceThreadDies) {
  int refused = 0;
  for (const GoldenEntry& entry : recorded("metadata")) {
    expect_decodes(entry);
    const Message message = message_to_send(entry);
    if (message_received(entry)) {
      expect_encodes(entry, message);
      continue;
    }
    refused += entry.recorded;
    EXPECT_EQ(entry.frames.at(5), "None") << label(entry);
    const Result<Frames> frames = mooncake().encode(message);
    ASSERT_FALSE(frames) << label(entry);
    EXPECT_EQ(frames.error().code, Errc::invalid_argument) << label(entry);
  }
  EXPECT_EQ(refused, 2);
}

// The reference's encoder raises for a state component of None. Ours cannot be asked to send one:
// a list of lists has no such element. An empty list takes its place.
TEST(Golden, MetadataErrorCannotBeExpressed) {
  for (const GoldenEntry& entry : recorded("metadata_error")) {
    EXPECT_EQ(entry.parsed.at("encoder_exception"), "TypeError");
    EXPECT_TRUE(entry.frames.empty());
    EXPECT_TRUE(entry.config.at("metadata").at("state_indices").at(1).is_null());
  }
}

// On purpose unlike the reference: an IndexError ends its thread, ours answers an error.
TEST(Golden, TruncatedMessagesAreErrorsWhereTheReferenceThreadDies) {
  std::map<std::string, int> dropped;
  for (const char* kind : {"registration_truncated", "metadata_truncated"}) {
    for (const GoldenEntry& entry : recorded(kind)) {
      expect_decodes(entry);
      if (!message_received(entry)) dropped[kind] += entry.recorded;
    }
  }
  EXPECT_EQ(dropped["registration_truncated"], 4);
  EXPECT_EQ(dropped["metadata_truncated"], 4);
}

// Both drop what is no status; the reference's answer is None, ours an error that says why.
TEST(Golden, StatusParse) {
  int dropped = 0;
  for (const GoldenEntry& entry : recorded("KV_STATUS_PARSE")) {
    expect_decodes(entry);
    if (!message_received(entry)) dropped += entry.recorded;
  }
  EXPECT_EQ(dropped, 6);
}

// The ABORTs that the recorded prefill answered.
TEST(Golden, AbortsBehindTheAcks) {
  int aborts = 0;
  for (const GoldenEntry& entry : recorded("ABORT_ACK")) {
    if (!entry.config.contains("abort_frames")) continue;
    const Frames frames = unhex(entry.config.at("abort_frames"));
    const Result<Message> message = mooncake().decode(Side::prefill, frames);
    ASSERT_TRUE(message) << label(entry) << ": " << message.error().text;
    const auto& abort = std::get<Abort>(*message);
    EXPECT_EQ(abort.room, RoomId{entry.parsed.at("room")});
    EXPECT_EQ(abort.return_address,
              (Endpoint{frames.at(2), static_cast<std::uint16_t>(std::stoi(frames.at(3)))}));
    EXPECT_EQ(abort.generation, std::nullopt);
    EXPECT_EQ(*mooncake().encode(*message), frames);
    aborts += entry.recorded;
  }
  EXPECT_EQ(aborts, 6);
}

TEST(Golden, AbortAckAppliedFrames) {
  for (const GoldenEntry& entry : recorded("ABORT_ACK_APPLIED")) {
    const Result<Message> message = mooncake().decode(Side::decode, entry.frames);
    ASSERT_TRUE(message) << message.error().text;
    const auto& ack = std::get<AbortAck>(*message);
    ASSERT_EQ(entry.parsed.at("ranks").size(), 1U);
    EXPECT_EQ(ack.prefill_rank, entry.parsed.at("ranks").at(0).get<std::uint32_t>());
  }
}

// Prefill keeps three lists, indexed by chunk: they must come out of the replies' frames.
TEST(Golden, StagingStateFollowsFromTheReplies) {
  for (const GoldenEntry& state : recorded("STAGING_STATE")) {
    const std::string suffix = state.name.substr(state.name.rfind('_'));  // _pp1 or _pp2
    int replies = 0;
    for (const GoldenEntry& entry : golden_entries("STAGING_RSP")) {
      if (entry.name != "rsp" + suffix) continue;
      const Result<Message> message = mooncake().decode(Side::prefill, entry.frames);
      ASSERT_TRUE(message) << message.error().text;
      const auto& reply = std::get<StagingReply>(*message);
      EXPECT_EQ(reply.offset_bytes, state.parsed.at("offsets").at(reply.chunk_index));
      EXPECT_EQ(reply.round, state.parsed.at("rounds").at(reply.chunk_index));
      EXPECT_EQ(reply.end_bytes, state.parsed.at("ends").at(reply.chunk_index));
      replies += entry.recorded;
    }
    EXPECT_EQ(replies, 6) << state.name;
  }
}

TEST(Golden, StagingRequestsBehindTheReplies) {
  for (const GoldenEntry& entry : recorded("STAGING_RSP")) {
    const Frames frames = unhex(entry.config.at("request_frames"));
    const Result<Message> message = mooncake().decode(Side::decode, frames);
    ASSERT_TRUE(message) << label(entry) << ": " << message.error().text;
    const auto& request = std::get<StagingRequest>(*message);
    EXPECT_EQ(request.room, RoomId{entry.parsed.at("room")});
    EXPECT_EQ(request.chunk_index, entry.parsed.at("chunk_idx"));
    EXPECT_EQ(request.session_id, entry.parsed.at("session"));
    EXPECT_EQ(*mooncake().encode(*message), frames);
  }
}

TEST(Golden, FanInBelongsToTheStagingCore) {
  for (const GoldenEntry& entry : recorded("CHUNK_READY_FANIN")) {
    EXPECT_TRUE(entry.frames.empty()) << label(entry);
  }
}

}  // namespace
}  // namespace baton::wire::test
