// Chunks, pages and batches must not change a bit; a changed bit must show.
#include "refengine/digest.hpp"
#include "refengine/support.hpp"

namespace baton::refengine {
namespace {

constexpr SamplingParams kSampled{0.8F, 40, 7};

TEST(Invariance, ChunkAndPageSizeDoNotChangeABit) {
  const GenerateRequest request{test_tokenizer().encode(std::string(kPrompts[0]) + kPrompts[2]), 8,
                                kSampled};
  const Result<GenerateOutcome> whole = generate(test_model(), request, {0, 16});
  ASSERT_TRUE(whole) << whole.error().text;
  ASSERT_GT(request.prompt.size(), 64U);
  for (const std::size_t chunk : {0, 64, 37, 1}) {
    for (const std::size_t page_size : {1, 16, 64}) {
      const Result<GenerateOutcome> other = generate(test_model(), request, {chunk, page_size});
      ASSERT_TRUE(other) << other.error().text;
      EXPECT_EQ(other->tokens, whole->tokens) << chunk << " " << page_size;
      EXPECT_EQ(other->logits_digests, whole->logits_digests) << chunk << " " << page_size;
      EXPECT_EQ(other->kv_digests, whole->kv_digests) << chunk << " " << page_size;
      EXPECT_EQ(aux_bytes(other->aux), aux_bytes(whole->aux)) << chunk << " " << page_size;
    }
  }
}

class OnePrompt : public testing::Test {
 protected:
  OnePrompt()
      : prompt_(test_tokenizer().encode(kPrompts[1])),
        shape_(pool_shape(test_model().config(), 6, 4)),
        memory_(shape_.total_bytes()),
        pool_(shape_, memory_),
        pages_(*PageAllocator(6).take(4)) {}

  std::uint64_t digest_of_next(const std::vector<PageIndex>& pages) {
    Sequence sequence(test_model(), pool_, pages, prompt_.size());
    const std::int32_t token = 300;
    EXPECT_TRUE(sequence.extend({&token, 1}));
    return logits_digest(sequence.logits());
  }

  void SetUp() override {
    Sequence sequence(test_model(), pool_, pages_, 0);
    ASSERT_TRUE(sequence.extend(prompt_));
  }

  std::vector<std::int32_t> prompt_;
  PoolShape shape_;
  std::vector<std::byte> memory_;
  KvPool pool_;
  std::vector<PageIndex> pages_;
};

TEST_F(OnePrompt, EveryFlippedBitChangesLogitsAndDigests) {
  const std::uint64_t before = digest_of_next(pages_);
  const std::vector<std::uint64_t> kv_before = kv_digests(pool_, pages_, prompt_.size());
  for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
    for (const KvPart part : {KvPart::k, KvPart::v}) {
      const std::size_t token = 1 + layer;
      // A mantissa bit and the sign bit of one value.
      for (const unsigned bit : {3U, 15U}) {
        std::uint16_t* value = pool_.token(layer, part, pages_, token) + 17;
        *value = static_cast<std::uint16_t>(*value ^ 1U << bit);
        EXPECT_NE(digest_of_next(pages_), before) << layer << " " << bit;
        const std::vector<std::uint64_t> kv = kv_digests(pool_, pages_, prompt_.size());
        std::size_t changed = 0;
        for (std::size_t i = 0; i < kv.size(); ++i) changed += kv[i] != kv_before[i] ? 1 : 0;
        EXPECT_EQ(changed, 1U);
        *value = static_cast<std::uint16_t>(*value ^ 1U << bit);
      }
    }
  }
  EXPECT_EQ(digest_of_next(pages_), before);
}

TEST_F(OnePrompt, SwappedPagesShow) {
  std::vector<PageIndex> swapped = pages_;
  std::swap(swapped[0], swapped[1]);
  EXPECT_NE(digest_of_next(swapped), digest_of_next(pages_));
  EXPECT_NE(kv_digests(pool_, swapped, prompt_.size()), kv_digests(pool_, pages_, prompt_.size()));
}

// The row-parallel products are sums of four partials, so a prefix of the batch, any tile shape and
// any companion rows give the same row. (Ranks of a TP group rely on it.)
TEST_F(OnePrompt, ARowDoesNotDependOnItsCompanions) {
  Sequence one_by_one(test_model(), pool_, {4, 5}, 0);
  PageAllocator allocator(6);
  for (std::size_t i = 0; i < prompt_.size(); ++i) {
    ASSERT_TRUE(one_by_one.extend(std::span(prompt_).subspan(i, 1)));
    Sequence together(test_model(), pool_, {0, 1}, 0);
    ASSERT_TRUE(together.extend(std::span(prompt_).first(i + 1)));
    EXPECT_EQ(together.hidden(), one_by_one.hidden()) << i;
  }
}

}  // namespace
}  // namespace baton::refengine
