// Spec examples: the messages that the specification prints, byte for byte, both ways.
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "wire/golden_data.hpp"
#include "wire/lists.hpp"
#include "wire/random_messages.hpp"
#include "wire/shared.hpp"

namespace baton::wire::test {
namespace {

std::string hex(std::string digits) {
  std::erase(digits, ' ');
  return unhex(nlohmann::json{digits}).front();
}

void expect_both_ways(const Message& message, const Frames& frames) {
  const Result<Frames> sent = mooncake().encode(message);
  ASSERT_TRUE(sent) << sent.error().text;
  EXPECT_EQ(*sent, frames);
  const Result<Message> read = mooncake().decode(receiver_of(message), frames);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(*read, message);
}

const Endpoint kDecode{"10.0.0.7", 41233};
const std::string kSession = "10.0.0.7:16001";

// [spec 5]
TEST(SpecExamples, ListsOfLists) {
  constexpr ListLimits kLimits{16, 64};
  EXPECT_EQ(*pack_lists<std::uint64_t>({}, kLimits), "");
  EXPECT_EQ(*pack_lists<std::uint32_t>({{}}, kLimits), hex("01000000 00000000"));
  const std::string packed = hex("02000000 08000000 00000000 01000000 02000000");
  EXPECT_EQ(*pack_lists<std::int32_t>({{1, 2}, {}}, kLimits), packed);
  EXPECT_EQ(*unpack_lists<std::int32_t>(packed, kLimits), (Lists<std::int32_t>{{1, 2}, {}}));
}

// [spec 5.2]
TEST(SpecExamples, Registration) {
  constexpr std::uint64_t kMiB = 1 << 20;
  Registration message;
  message.endpoint = kDecode;
  message.session_id = kSession;
  for (std::uint64_t index = 0; index < 4; ++index) {
    message.kv_ptrs.push_back(0x7f0000000000 + index * kMiB);
  }
  message.aux_ptrs = {0x7f1000000000, 0x7f1000000000 + kMiB};
  message.state_ptrs = {{0x7f2000000000, 0x7f2000000000 + kMiB}};
  message.engine_rank = 3;
  message.attn_tp_size = 4;
  message.kv_item_bytes = 65536;
  message.state_item_bytes = {{4096, 8192}};
  message.state_dims = {{128, 16}};
  message.kv_layer_ids = {0, 1, 0, 1};
  message.state_layer_ids = {{0, 1}};
  message.kv_item_bytes_all = {65536, 65536, 65536, 65536};
  expect_both_ways(message,
                   {"None",
                    "10.0.0.7",
                    "41233",
                    "10.0.0.7:16001",
                    hex("00000000007f0000 00001000007f0000 00002000007f0000 00003000007f0000"),
                    hex("00000000107f0000 00001000107f0000"),
                    hex("01000000 10000000 00000000207f0000 00001000207f0000"),
                    "3",
                    "4",
                    "65536",
                    hex("01000000 08000000 00100000 00200000"),
                    hex("01000000 08000000 80000000 10000000"),
                    hex("00000000 01000000 00000000 01000000"),
                    hex("01000000 08000000 00000000 01000000"),
                    "",
                    "",
                    "1",
                    "0",
                    "",
                    hex("0000010000000000 0000010000000000 0000010000000000 0000010000000000")});
}

// [spec 5.3]
TEST(SpecExamples, Metadata) {
  Metadata message;
  message.room = {8123456789012345678};
  message.endpoint = kDecode;
  message.session_id = kSession;
  message.kv_pages = {12, 13, 14, 40, 41};
  message.aux_index = 9;
  message.state_slots = {{7}};
  message.decode_prefix_tokens = 128;
  expect_both_ways(message, {"8123456789012345678", "10.0.0.7", "41233", "10.0.0.7:16001",
                             hex("0c000000 0d000000 0e000000 28000000 29000000"), "9",
                             hex("01000000 04000000 07000000"), "1", "128", ""});
}

// [spec 5.3]
TEST(SpecExamples, DummyMetadata) {
  Metadata message;
  message.room = {8123456789012345678};
  message.endpoint = kDecode;
  message.session_id = kSession;
  message.decode_prefix_tokens = 128;
  message.is_dummy = true;
  expect_both_ways(message, {"8123456789012345678", "10.0.0.7", "41233", "10.0.0.7:16001", "", "",
                             "", "1", "128", ""});
}

// [spec 5.4]
TEST(SpecExamples, Status) {
  expect_both_ways(Status{RoomId{42}, 4, 31, ""}, {"42", "4", "31"});
  const Status success{RoomId{42}, 4, 31, ""};
  EXPECT_EQ(*encode_status(success, "KV_STATUS"), (Frames{"KV_STATUS", "42", "4", "31", ""}));
  const Status failure{RoomId{42}, 0, 31, "NIXL transfer encountered ERR room=42"};
  const Frames frames{"KV_STATUS", "42", "0", "31", "NIXL transfer encountered ERR room=42"};
  EXPECT_EQ(*encode_status(failure, "KV_STATUS"), frames);
  EXPECT_EQ(*decode_status(frames, "KV_STATUS"), Message(failure));
  EXPECT_FALSE(decode_status(frames, "MoriMsgGuard"));
  // The reference's recorded tagged forms, with a reason that is not UTF-8.
  EXPECT_EQ(*decode_status({"KV_STATUS", "12", "0", "3", "\xff\xfe"}, "KV_STATUS"),
            Message(Status{RoomId{12}, 0, 3, "\xEF\xBF\xBD\xEF\xBF\xBD"}));
  EXPECT_EQ(*decode_status({"KV_STATUS", "12", "4", "0"}, "KV_STATUS"),
            Message(Status{RoomId{12}, 4, 0, ""}));
}

// [spec 5.5]
TEST(SpecExamples, ChunkReady) {
  expect_both_ways(ChunkReady{RoomId{17}, 2, 8, 4, "peer_name_with_underscores", 3},
                   {"CHUNK_READY", "17", "2", "8", "4", "peer_name_with_underscores", "3"});
}

// [spec 5.6]
TEST(SpecExamples, Abort) {
  expect_both_ways(Abort{RoomId{42}, kDecode, std::nullopt}, {"ABORT", "42", "10.0.0.7", "41233"});
  expect_both_ways(Abort{RoomId{42}, kDecode, 7}, {"ABORT", "42", "10.0.0.7", "41233", "7"});
  expect_both_ways(Abort{RoomId{42}, std::nullopt, std::nullopt}, {"ABORT", "42"});
}

// [spec 5.6]
TEST(SpecExamples, AbortAck) {
  expect_both_ways(AbortAck{RoomId{42}, std::nullopt, std::nullopt}, {"ABORT_ACK", "42"});
  expect_both_ways(AbortAck{RoomId{42}, 31, std::nullopt}, {"ABORT_ACK", "42", "31"});
  expect_both_ways(AbortAck{RoomId{42}, 31, 7}, {"ABORT_ACK", "42", "31", "7"});
}

// [spec 5.7]
TEST(SpecExamples, AuxData) {
  expect_both_ways(AuxData{RoomId{42}, 0, 9, "8 bytes!"},
                   {"AUX_DATA", "42", "0", "9", hex("00 00 00 08"), "8 bytes!"});
}

// [spec 5.8]
TEST(SpecExamples, Staging) {
  expect_both_ways(StagingRequest{RoomId{7}, 0, 1, "peer", 3},
                   {"STAGING_REQ", "7", "0", "1", "peer", "3"});
  expect_both_ways(StagingRequest{RoomId{7}, 0, 1, "peer", std::nullopt},
                   {"STAGING_REQ", "7", "0", "1", "peer"});
  expect_both_ways(StagingReply{RoomId{7}, 0, 128, 0, 8320, "peer"},
                   {"STAGING_RSP", "7", "0", "128", "0", "8320", "peer"});
  expect_both_ways(StagingReply{RoomId{7}, 0, -2, 0, -1, "peer"},
                   {"STAGING_RSP", "7", "0", "-2", "0", "-1", "peer"});
}

// [spec 5.9]
TEST(SpecExamples, Watermark) {
  expect_both_ways(Watermark{3, 0, "session-new"}, {"WATERMARK", "3", "0", "session-new"});
}

}  // namespace
}  // namespace baton::wire::test
