// Decode test: which short, long and broken messages are accepted, and what the errors say.
#include <gtest/gtest.h>

#include "wire/limits.hpp"
#include "wire/random_messages.hpp"

namespace baton::wire::test {
namespace {

const Endpoint kDecode{"10.0.0.7", 41233};

Frames registration_frames() {
  Registration message;
  message.endpoint = kDecode;
  message.session_id = "10.0.0.7:16001";
  message.staging_base = 4096;
  message.staging_bytes = 8192;
  message.staging_slot_layer_ids = {0, 1};
  return *mooncake().encode(message);
}

Frames metadata_frames() {
  return {"42", "10.0.0.7", "41233", "10.0.0.7:16001", std::string(8, '\1'), "9", "", "1", "", ""};
}

Frames with(Frames frames, std::size_t index, std::string frame) {
  frames.at(index) = std::move(frame);
  return frames;
}

template <class T>
T decoded(Side side, const Frames& frames) {
  const Result<Message> message = mooncake().decode(side, frames);
  EXPECT_TRUE(message) << message.error().text;
  if (!message) return {};
  EXPECT_TRUE(std::holds_alternative<T>(*message));
  return std::get<T>(*message);
}

void expect_error(Side side, const Frames& frames, const std::string& text) {
  const Result<Message> message = mooncake().decode(side, frames);
  ASSERT_FALSE(message) << "expected: " << text;
  EXPECT_EQ(message.error(), (Error{Errc::malformed, text}));
}

// [spec 5.10] Each error names the message, the frame, what was expected and what was found.
TEST(Decode, ErrorsAtPrefill) {
  constexpr Side kAt = Side::prefill;
  expect_error(kAt, {}, "message: expected frames, found none");
  expect_error(kAt, {"None", "10.0.0.7"}, "registration: expected 10 to 64 frames, found 2");
  expect_error(kAt, with(registration_frames(), 1, "[::1]"),
               "registration frame 1 (host): expected a host without brackets of 1 to 255 ASCII "
               "characters, found \"[::1]\" (5 bytes)");
  expect_error(kAt, with(registration_frames(), 2, "70000"),
               "registration frame 2 (port): expected a decimal in 1..65535, found \"70000\" (5 "
               "bytes)");
  expect_error(kAt, with(registration_frames(), 3, ""),
               "registration frame 3 (session_id): expected 1 to 4096 printable ASCII characters, "
               "found \"\" (0 bytes)");
  expect_error(kAt, with(registration_frames(), 4, "1234567"),
               "registration frame 4 (kv_ptrs): expected whole elements of 8 bytes, found 7 bytes");
  expect_error(kAt, with(registration_frames(), 6, std::string("\2\0\0\0\1\0\0\0", 8)),
               "registration frame 6 (state_ptrs): expected 2 lengths of 4 bytes, found 4 bytes");
  expect_error(kAt, with(registration_frames(), 8, "0"),
               "registration frame 8 (attn_tp_size): expected a decimal in 1..4294967295, found "
               "\"0\" (1 byte)");
  expect_error(kAt, with(registration_frames(), 15, "x\xff\""),
               "registration frame 15 (staging_bytes): expected a decimal in "
               "0..18446744073709551615, found \"x\\xff\\x22\" (3 bytes)");
  expect_error(kAt, {"42", "10.0.0.7"}, "metadata: expected 8 to 64 frames, found 2");
  expect_error(kAt, {"WATERMARK", "1"}, "WATERMARK: expected 3 to 64 frames, found 2");
  expect_error(
      kAt, {"ABORT", "-1"},
      "ABORT frame 1 (room): expected a decimal in 0..9223372036854775807, found \"-1\" (2 "
      "bytes)");
  expect_error(kAt, {"STAGING_RSP", "1", "2", "1.5", "0", "0", "s"},
               "STAGING_RSP frame 3 (offset): expected a signed 64 bit decimal, found \"1.5\" (3 "
               "bytes)");
}

TEST(Decode, ErrorsAtDecode) {
  constexpr Side kAt = Side::decode;
  expect_error(kAt, {"KV_STATUS", "42", "4", "0"},
               "status frame 0 (room): expected a decimal in 0..9223372036854775807, found "
               "\"KV_STATUS\" (9 bytes)");
  expect_error(kAt, {"42", "4"}, "status: expected 3 to 64 frames, found 2");
  expect_error(kAt, {"AUX_DATA", "42", "0", "9", std::string("\0\0\0\7", 4), "8 bytes!"},
               "AUX_DATA frame 4 (length): expected \"\\x00\\x00\\x00\\x08\" (4 bytes), the "
               "big-endian size of the payload, found \"\\x00\\x00\\x00\\x07\" (4 bytes)");
  expect_error(kAt, {"ABORT_ACK", "42", "31", ""},
               "ABORT_ACK frame 3 (generation): expected a decimal in 0..18446744073709551615, "
               "found \"\" (0 bytes)");
  expect_error(kAt, {"CHUNK_READY", "42", "0", "0", "1", "caf\xc3\xa9"},
               "CHUNK_READY frame 5 (writer_id): expected 0 to 4096 printable ASCII characters, "
               "found \"caf\\xc3\\xa9\" (5 bytes)");
}

// The reference also takes spaces, signs and underscores, which no peer sends.
TEST(Decode, NumbersAreDigitsOnly) {
  for (const char* room : {" 42", "42 ", "+42", "4_2", "0x2a", "", "42\n", "9223372036854775808",
                           "000000000000000000042"}) {
    EXPECT_FALSE(mooncake().decode(Side::decode, {room, "4", "0"})) << room;
  }
  EXPECT_EQ(decoded<Status>(Side::decode, {"0042", "4", "0"}).room, RoomId{42});
}

// What a peer of a later version may append must not cost the message.
TEST(Decode, SurplusFramesAreIgnoredUpToTheLimit) {
  for (const Message& message : sample_messages()) {
    // One more frame than a short form would be another form.
    Frames frames = *mooncake().encode(message);
    const bool has_longer_form =
        (std::holds_alternative<Abort>(message) && frames.size() < 5) ||
        (std::holds_alternative<AbortAck>(message) && frames.size() < 4) ||
        (std::holds_alternative<StagingRequest>(message) && frames.size() < 6) ||
        std::holds_alternative<Status>(message);
    if (has_longer_form) continue;
    frames.resize(kFramesMax, "later");
    const Result<Message> read = mooncake().decode(receiver_of(message), frames);
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_EQ(*read, after_mooncake(message));
    frames.emplace_back("too many");
    EXPECT_FALSE(mooncake().decode(receiver_of(message), frames));
  }
}

// [spec 5.4] Also an untagged status may bring a reason.
TEST(Decode, StatusReason) {
  const auto reason = [](const std::string& frame) {
    return decoded<Status>(Side::decode, {"42", "0", "1", frame, "more"}).reason;
  };
  EXPECT_EQ(reason("why"), "why");
  EXPECT_EQ(reason(""), "");
  EXPECT_EQ(reason("a\xff"
                   "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(reason(std::string(5000, 'x')), std::string(kReasonBytesMax, 'x'));
  // A character that the cut splits is replaced.
  EXPECT_EQ(reason(std::string(kReasonBytesMax - 1, 'x') + "\xc3\xa9"),
            std::string(kReasonBytesMax - 1, 'x') + "\xEF\xBF\xBD");
}

// [spec 5.6] The room is failed whatever follows; without an address nobody is told.
TEST(Decode, AbortNeedsOnlyTheRoom) {
  const auto abort = [](const Frames& frames) { return decoded<Abort>(Side::prefill, frames); };
  const Abort bare{RoomId{42}, std::nullopt, std::nullopt};
  EXPECT_EQ(abort({"ABORT", "42"}), bare);
  EXPECT_EQ(abort({"ABORT", "42", "10.0.0.7"}), bare);
  EXPECT_EQ(abort({"ABORT", "42", "10.0.0.7", "x"}), bare);
  EXPECT_EQ(abort({"ABORT", "42", "", "41233"}), bare);
  EXPECT_EQ(abort({"ABORT", "42", "10.0.0.7", "0", "7"}), bare);
  EXPECT_EQ(abort({"ABORT", "42", "10.0.0.7", "41233", "x"}),
            (Abort{RoomId{42}, kDecode, std::nullopt}));
  EXPECT_EQ(abort({"ABORT", "42", "10.0.0.7", "41233", ""}),
            (Abort{RoomId{42}, kDecode, std::nullopt}));
  EXPECT_FALSE(mooncake().decode(Side::prefill, {"ABORT"}));
  EXPECT_FALSE(mooncake().decode(Side::prefill, {"ABORT", "x", "10.0.0.7", "41233"}));
}

// [spec 5.5] The reference never reads the rank of a chunk.
TEST(Decode, ChunkReadyWithoutRank) {
  const ChunkReady expected{RoomId{17}, 2, 8, 4, "peer", 0};
  const Frames frames{"CHUNK_READY", "17", "2", "8", "4", "peer"};
  EXPECT_EQ(decoded<ChunkReady>(Side::decode, frames), expected);
  Frames longer = frames;
  longer.emplace_back("not a rank");
  EXPECT_EQ(decoded<ChunkReady>(Side::decode, longer), expected);
}

// [spec 5.9]
TEST(Decode, WatermarkWithoutSession) {
  EXPECT_EQ(decoded<Watermark>(Side::prefill, {"WATERMARK", "3", "9"}), (Watermark{3, 9, ""}));
}

// [spec 5.2] Anything but 8 bytes is no base; layers are read only if staging is registered.
TEST(Decode, RegistrationStaging) {
  const Frames frames = registration_frames();
  EXPECT_EQ(decoded<Registration>(Side::prefill, frames).staging_base, 4096U);
  EXPECT_EQ(decoded<Registration>(Side::prefill, with(frames, 14, "1234567")).staging_base, 0U);
  Frames none = with(with(frames, 14, ""), 15, "");
  none = with(none, 18, "not whole elements");
  EXPECT_TRUE(decoded<Registration>(Side::prefill, none).staging_slot_layer_ids.empty());
  EXPECT_FALSE(mooncake().decode(Side::prefill, with(frames, 18, "not whole")));
}

// [spec 5.2] Empty means the default.
TEST(Decode, RegistrationDcpDefaults) {
  const Frames frames = with(with(registration_frames(), 16, ""), 17, "");
  const auto message = decoded<Registration>(Side::prefill, frames);
  EXPECT_EQ(message.dcp_size, 1U);
  EXPECT_EQ(message.dcp_rank, 0U);
}

// [spec 5.3]
TEST(Decode, MetadataDummyOnlyIfPagesAndAuxAreEmpty) {
  const Frames frames = metadata_frames();
  EXPECT_FALSE(decoded<Metadata>(Side::prefill, frames).is_dummy);
  EXPECT_FALSE(decoded<Metadata>(Side::prefill, with(frames, 4, "")).is_dummy);  // full prefix hit
  EXPECT_FALSE(mooncake().decode(Side::prefill, with(frames, 5, "")));           // pages, no aux
  EXPECT_FALSE(mooncake().decode(Side::prefill, with(frames, 5, "None")));
  // A dummy's lists are not read.
  Frames dummy = with(with(frames, 4, ""), 5, "");
  dummy = with(with(dummy, 6, "junk"), 9, "junk!");
  const auto message = decoded<Metadata>(Side::prefill, dummy);
  EXPECT_TRUE(message.is_dummy);
  EXPECT_TRUE(message.state_slots.empty());
  EXPECT_TRUE(message.device_kv_pages.empty());
}

TEST(Decode, MetadataPagesAreWholeAndLimited) {
  const Frames frames = metadata_frames();
  EXPECT_FALSE(mooncake().decode(Side::prefill, with(frames, 4, "12345")));
  const std::string most(kPagesMax * 4, '\0');
  EXPECT_EQ(decoded<Metadata>(Side::prefill, with(frames, 4, most)).kv_pages.size(), kPagesMax);
  expect_error(Side::prefill, with(frames, 4, most + "1234"),
               "metadata frame 4 (kv_pages): expected at most 4194304 elements, found 4194305");
}

// A message of the other direction is not mistaken for one of this direction.
TEST(Decode, TagsOfTheOtherSide) {
  for (const char* tag : {"ABORT_ACK", "AUX_DATA", "CHUNK_READY", "STAGING_REQ", "BOOTSTRAP"}) {
    EXPECT_FALSE(mooncake().decode(Side::prefill, {tag, "1", "1", "1", "1", "1", "1", "1"})) << tag;
  }
  for (const char* tag : {"ABORT", "None", "STAGING_RSP", "WATERMARK", "BOOTSTRAP"}) {
    EXPECT_FALSE(mooncake().decode(Side::decode, {tag, "1", "1", "1", "1", "1", "1", "1"})) << tag;
  }
}

}  // namespace
}  // namespace baton::wire::test
