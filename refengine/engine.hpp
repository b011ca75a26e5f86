// Sequence and generate(): a request's life in one process, which every hand-off is compared with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "baton/result.hpp"
#include "refengine/aux.hpp"
#include "refengine/model.hpp"
#include "refengine/pools.hpp"
#include "refengine/sampler.hpp"

namespace baton::refengine {

// One request's tokens in a pool. Prefill, decode and the one-process run all go through it, so
// that they differ in nothing but where the KV came from.
class Sequence {
 public:
  // `tokens_count` tokens are in the pages already (0: none). Model and pool must outlive it.
  Sequence(const Model& model, const KvPool& pool, std::vector<PageIndex> pages,
           std::size_t tokens_count);

  // Computes the next tokens. Errors: those of Model::forward; nothing changes then.
  Result<void> extend(std::span<const std::int32_t> tokens);

  // Of the last token of extend(); empty before it.
  const std::vector<float>& hidden() const { return hidden_; }
  std::vector<float> logits() const;
  // Chooses the token that follows, from logits().
  std::int32_t choose(std::span<const float> logits, const SamplingParams& params) const;

  std::size_t tokens_count() const { return tokens_count_; }
  const std::vector<PageIndex>& pages() const { return pages_; }

 private:
  const Model* model_;
  const KvPool* pool_;
  std::vector<PageIndex> pages_;
  std::size_t tokens_count_;
  std::vector<float> hidden_;
};

// Everything that determines a request's output.
struct GenerateRequest {
  std::vector<std::int32_t> prompt;
  std::size_t tokens_count = 0;  // to generate; fewer if <eos> comes first
  SamplingParams sampling;
};

// How it is computed; must not matter to the output.
struct GenerateShape {
  std::size_t chunk_tokens = 0;  // 0: the whole prompt at once
  std::size_t page_size = 16;
};

struct GenerateOutcome {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint64_t> logits_digests;  // one a step; the first is prefill's
  std::uint64_t all_logits_digest = 0;        // over the logits of all steps
  std::vector<std::uint64_t> kv_digests;      // after prefill; see kv_digests()
  AuxRow aux;                                 // room word 0
};

// limit: prompt and output do not fit the context.
Result<void> check_fits(const ModelConfig& config, const GenerateRequest& request);

Result<GenerateOutcome> generate(const Model& model, const GenerateRequest& request,
                                 const GenerateShape& shape);

}  // namespace baton::refengine
