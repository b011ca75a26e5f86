// The model's shape and weights, as the forward pass wants them: floats, stored [in][out].
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "baton/result.hpp"

namespace baton::refengine {

// The row-parallel products are always cut into this many partial sums, one per group of KV heads
// and per quarter of the feed-forward width, whatever the tensor parallelism. That is what makes
// TP 1, 2 and 4 agree to the last bit.
constexpr std::size_t kReductionGroups = 4;

struct ModelConfig {
  std::size_t hidden = 0;
  std::size_t layers = 0;
  std::size_t query_heads = 0;
  std::size_t kv_heads = 0;
  std::size_t head_dim = 0;
  std::size_t ffn = 0;
  std::size_t vocabulary = 0;
  std::size_t context = 0;  // tokens
  float rms_epsilon = 0;
  double rope_theta = 0;

  std::size_t query_width() const { return query_heads * head_dim; }
  std::size_t kv_width() const { return kv_heads * head_dim; }
};

struct LayerWeights {
  std::vector<float> input_norm, post_norm, q_norm, k_norm;
  std::vector<float> q, k, v, o;
  std::vector<float> gate, up, down;
};

struct ModelWeights {
  std::vector<float> embedding;  // [vocabulary][hidden]
  std::vector<float> head;       // the same matrix as [hidden][vocabulary]
  std::vector<float> final_norm;
  std::vector<LayerWeights> layers;
};

// Reads config.json; refuses shapes that the kernels cannot run.
Result<ModelConfig> load_config(const std::string& path);
// Reads model.safetensors.
Result<ModelWeights> load_weights(const std::string& path, const ModelConfig& config);

}  // namespace baton::refengine
