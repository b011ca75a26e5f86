// Encode test: what is refused because it does not fit, instead of being sent and misread.
#include <gtest/gtest.h>

#include "wire/limits.hpp"
#include "wire/random_messages.hpp"

namespace baton::wire::test {
namespace {

void expect_refused(const Message& message, const std::string& text) {
  const Result<Frames> frames = mooncake().encode(message);
  ASSERT_FALSE(frames) << "expected: " << text;
  EXPECT_EQ(frames.error(), (Error{Errc::invalid_argument, text}));
}

Registration registration() {
  Registration message;
  message.endpoint = {"10.0.0.7", 41233};
  message.session_id = "10.0.0.7:16001";
  return message;
}

Metadata metadata() {
  return {RoomId{42}, {"10.0.0.7", 41233}, "10.0.0.7:16001", {1}, 9, {}, 1, 0, {}, false};
}

TEST(Encode, NameAndMinimalMessages) {
  EXPECT_EQ(mooncake().name(), "mooncake");
  EXPECT_TRUE(mooncake().encode(registration()));
  EXPECT_TRUE(mooncake().encode(metadata()));
}

TEST(Encode, RoomsAreBelowTwoToThe63) {
  const std::string text =
      " (room): expected a decimal in 0..9223372036854775807, found 9223372036854775808";
  const RoomId room{std::uint64_t{1} << 63};
  expect_refused(Status{room, 4, 0, ""}, "status frame 0" + text);
  expect_refused(Abort{room, std::nullopt, std::nullopt}, "ABORT frame 1" + text);
  Metadata message = metadata();
  message.room = room;
  expect_refused(message, "metadata frame 0" + text);
}

TEST(Encode, AddressesMustBeReachable) {
  Registration message = registration();
  message.endpoint.port = 0;
  expect_refused(message, "registration frame 2 (port): expected a decimal in 1..65535, found 0");
  message = registration();
  message.endpoint.host = "";
  expect_refused(message,
                 "registration frame 1 (host): expected a host without brackets of 1 to 255 ASCII "
                 "characters, found \"\" (0 bytes)");
  message = registration();
  message.session_id = std::string("a\0b:1", 5);
  expect_refused(message,
                 "registration frame 3 (session_id): expected 1 to 4096 printable ASCII "
                 "characters, found \"a\\x00b:1\" (5 bytes)");
}

TEST(Encode, MetadataWithoutAuxIndexOnlyAsDummy) {
  Metadata message = metadata();
  message.aux_index.reset();
  expect_refused(message,
                 "metadata frame 4 (aux_index): expected an aux index unless it is a dummy, found "
                 "none");
  message.is_dummy = true;
  const std::string dummy_text =
      "metadata frame 4 (kv_pages): expected a dummy without pages, aux index and state, found "
      "some";
  expect_refused(message, dummy_text);
  message.kv_pages.clear();
  EXPECT_TRUE(mooncake().encode(message));
  message.aux_index = 9;
  expect_refused(message, dummy_text);
}

TEST(Encode, SizesOfZero) {
  Metadata message = metadata();
  message.required_dst_info_num = 0;
  expect_refused(message,
                 "metadata frame 7 (required_dst_info_num): expected a decimal in 1..4294967295, "
                 "found 0");
  Registration other = registration();
  other.attn_tp_size = 0;
  expect_refused(other,
                 "registration frame 8 (attn_tp_size): expected a decimal in 1..4294967295, found "
                 "0");
}

TEST(Encode, ListsBeyondTheirLimits) {
  Metadata message = metadata();
  message.kv_pages.resize(kPagesMax + 1);
  expect_refused(message,
                 "metadata frame 4 (kv_pages): expected at most 4194304 elements, found 4194305");
  message = metadata();
  message.state_slots.resize(kComponentsMax + 1);
  expect_refused(message, "metadata frame 6 (state_slots): expected at most 256 lists, found 257");
  message = metadata();
  message.state_slots = {std::vector<std::int32_t>(kPagesMax), {1}};
  expect_refused(
      message, "metadata frame 6 (state_slots): expected at most 4194304 elements, found 4194305");
  Registration other = registration();
  other.kv_ptrs.resize(kBuffersMax + 1);
  expect_refused(other,
                 "registration frame 4 (kv_ptrs): expected at most 65536 elements, found 65537");
}

TEST(Encode, StagingLayersNeedStaging) {
  Registration message = registration();
  message.staging_slot_layer_ids = {0, 1};
  expect_refused(message,
                 "registration frame 18 (staging_slot_layer_ids): expected none without a staging "
                 "area, found 2");
  message.staging_bytes = 4096;
  EXPECT_TRUE(mooncake().encode(message));
}

TEST(Encode, GenerationsNeedWhatComesBeforeThem) {
  expect_refused(Abort{RoomId{42}, std::nullopt, 7},
                 "ABORT frame 2 (generation): expected a return address before it");
  expect_refused(AbortAck{RoomId{42}, std::nullopt, 7},
                 "ABORT_ACK frame 2 (generation): expected a prefill rank before it");
}

TEST(Encode, AuxPayloadLimit) {
  AuxData message{RoomId{42}, 0, 0, std::string(kAuxPayloadBytesMax, 'x')};
  const Result<Frames> frames = mooncake().encode(message);
  ASSERT_TRUE(frames) << frames.error().text;
  EXPECT_TRUE(mooncake().decode(Side::decode, *frames));
  message.payload += 'x';
  expect_refused(message,
                 "AUX_DATA frame 5 (payload): expected at most 16777216 bytes, found 16777217");
}

}  // namespace
}  // namespace baton::wire::test
