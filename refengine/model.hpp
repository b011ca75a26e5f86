// Model: the forward pass of a Qwen3-shaped decoder over a paged KV pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "baton/result.hpp"
#include "refengine/pools.hpp"
#include "refengine/weights.hpp"

namespace baton::refengine {

// Where a request's K and V live: token i is in slot i % page_size of pages[i / page_size].
struct KvPlace {
  const KvPool* pool = nullptr;
  std::span<const PageIndex> pages;
};

// Immutable after load; any number of threads may call forward() on different pages.
class Model {
 public:
  // Reads config.json and model.safetensors in `folder`.
  static Result<Model> load(const std::string& folder);

  const ModelConfig& config() const { return config_; }

  // Computes tokens [first, first + tokens.size()) of a request whose earlier tokens are in `kv`
  // already, stores their K and V there, and answers the final-normed hidden state of the last one.
  // limit: past the context. invalid_argument: no token, an unknown token, or too few pages.
  Result<std::vector<float>> forward(std::span<const std::int32_t> tokens, std::size_t first,
                                     const KvPlace& kv) const;
  std::vector<float> logits(std::span<const float> hidden) const;

 private:
  struct Scratch;

  Result<void> check(std::span<const std::int32_t> tokens, std::size_t first,
                     const KvPlace& kv) const;
  void attention_block(std::size_t layer, std::size_t first, const KvPlace& kv, Scratch& s) const;
  void project_qkv(std::size_t layer, std::size_t first, const KvPlace& kv, Scratch& s) const;
  void feed_forward_block(std::size_t layer, Scratch& s) const;
  void rotate(std::span<float> head, std::size_t position) const;

  ModelConfig config_;
  ModelWeights weights_;
  std::vector<float> cosines_, sines_;  // [context][head_dim / 2]
};

}  // namespace baton::refengine
