// The aux row: what it holds, where it lies, and what its room word proves.
#include "refengine/aux.hpp"

#include <cmath>
#include <numeric>

#include "refengine/support.hpp"

namespace baton::refengine {
namespace {

class AuxRows : public testing::Test {
 protected:
  std::vector<std::byte> memory_ = std::vector<std::byte>(AuxPool::total_bytes(3));
  AuxPool pool_{3, memory_};
};

TEST_F(AuxRows, BuffersFollowTheSpecification) {
  const std::vector<std::uint64_t> item_bytes = {64, 64, 64, 64, 512, 512, 64, 128, 512, 64};
  const std::vector<KvBuffer> buffers = pool_.buffers();
  ASSERT_EQ(buffers.size(), item_bytes.size());
  std::uint64_t address = reinterpret_cast<std::uintptr_t>(memory_.data());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(buffers[i].item_bytes, item_bytes[i]) << i;
    EXPECT_EQ(buffers[i].length_bytes, 3 * item_bytes[i]) << i;
    EXPECT_EQ(buffers[i].address, address) << i;
    address += buffers[i].length_bytes;
  }
}

TEST_F(AuxRows, TheRoomWordTellsArrivedFromMissingFromCorrupt) {
  constexpr RoomId kRoom{0x1122334455667788};
  EXPECT_EQ(pool_.check(1, kRoom), RoomWord::not_yet);
  AuxRow row;
  row.bootstrap_room[0] = kRoom.value;
  row.output_ids[0] = 42;
  pool_.write(1, row);
  EXPECT_EQ(pool_.check(1, kRoom), RoomWord::arrived);
  EXPECT_EQ(pool_.check(1, RoomId{7}), RoomWord::corrupt);
  EXPECT_EQ(pool_.read(1), row);
  EXPECT_EQ(pool_.check(0, kRoom), RoomWord::not_yet);  // its neighbours are untouched
  EXPECT_EQ(pool_.check(2, kRoom), RoomWord::not_yet);
  pool_.clear(1);
  EXPECT_EQ(pool_.read(1), AuxRow{});
  EXPECT_EQ(pool_.check(1, kRoom), RoomWord::not_yet);
}

TEST_F(AuxRows, BytesLeaveOutNothingButTheRoomWord) {
  AuxRow row;
  const std::string bytes = aux_bytes(row);
  row.bootstrap_room[0] = 7;
  EXPECT_EQ(aux_bytes(row), bytes);
  row.bootstrap_room[1] = 7;
  EXPECT_NE(aux_bytes(row), bytes);
}

TEST_F(AuxRows, HoldsRealNumbers) {
  const GenerateRequest request{test_tokenizer().encode(kPrompts[1]), 1, {}};
  const Result<GenerateOutcome> outcome = generate(test_model(), request, {});
  ASSERT_TRUE(outcome);
  const AuxRow& row = outcome->aux;
  EXPECT_EQ(row.output_ids[0], outcome->tokens[0]);
  EXPECT_EQ(row.cached_tokens[0], 8);
  EXPECT_EQ(row.logprob_values[0], row.top_logprob_values[0]);  // greedy takes the best
  EXPECT_EQ(row.logprob_ids[0], row.top_logprob_ids[0]);
  EXPECT_TRUE(std::is_sorted(row.top_logprob_values.rbegin(), row.top_logprob_values.rend()));
  const float kept = std::accumulate(row.topk_p.begin(), row.topk_p.end(), 0.0F);
  EXPECT_GT(kept, 0.3F);
  EXPECT_LT(kept, 1.0F);
  EXPECT_EQ(row.topk_index[5], row.top_logprob_ids[5]);
  EXPECT_GT(std::abs(row.hidden_states[127]), 0.0F);
  EXPECT_EQ(row.bootstrap_room[0], 0U);
  EXPECT_EQ(aux_bytes(row).size(), 2048U);
}

}  // namespace
}  // namespace baton::refengine
