// Our logits against PyTorch's within tolerance, and against our own to the last bit.
#include <fstream>
#include <nlohmann/json.hpp>

#include "refengine/digest.hpp"
#include "refengine/support.hpp"

namespace baton::refengine {
namespace {

constexpr float kTolerance = 0.01F;

void expect_close(const std::vector<float>& ours, const std::vector<float>& theirs) {
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], theirs[i], kTolerance) << i;
}

TEST(Reference, AgreesWithPyTorch) {
  std::ifstream file(std::string(BATON_SOURCE_DIR) + "/tests/golden/reference_logits.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  for (const auto& entry : golden["prompts"]) {
    SCOPED_TRACE(entry["prompt"].get<std::string>());
    const auto prompt = entry["prompt_ids"].get<std::vector<std::int32_t>>();
    const auto greedy = entry["greedy"].get<std::vector<std::int32_t>>();
    const PoolShape shape = pool_shape(test_model().config(), 8, 16);
    std::vector<std::byte> memory(shape.total_bytes());
    const KvPool pool(shape, memory);
    Sequence sequence(test_model(), pool, *PageAllocator(8).take(8), 0);
    ASSERT_TRUE(sequence.extend(prompt));
    expect_close(sequence.logits(), entry["logits_first"].get<std::vector<float>>());
    std::vector<std::int32_t> tokens;
    while (tokens.size() < greedy.size()) {
      tokens.push_back(sequence.choose(sequence.logits(), {}));
      if (tokens.size() == greedy.size()) {
        expect_close(sequence.logits(), entry["logits_16th"].get<std::vector<float>>());
      }
      ASSERT_TRUE(sequence.extend({&tokens.back(), 1}));
    }
    EXPECT_EQ(tokens, greedy);
  }
}

// FNV-1a-64 over the f32 logits of 48 greedy steps. A change means that the order of an addition
// changed: every hand-off would still agree with itself, but not with yesterday's build.
TEST(Reference, LogitsBitsAreThoseOfTheGoldenBuild) {
  const std::array<std::string, 3> golden = {"58eebbc4f99119ec", "9d6c474bc0a99882",
                                             "9ae1044b6f56ee4b"};
  for (std::size_t i = 0; i < kPrompts.size(); ++i) {
    const Result<GenerateOutcome> outcome =
        generate(test_model(), {test_tokenizer().encode(kPrompts[i]), 48, {}}, {});
    ASSERT_TRUE(outcome) << outcome.error().text;
    EXPECT_EQ(hex(outcome->all_logits_digest), golden[i]) << kPrompts[i];
  }
}

}  // namespace
}  // namespace baton::refengine
