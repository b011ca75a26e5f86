// The forward pass; the architecture is that of Qwen3 (QK-norm, half-split RoPE, GQA, SwiGLU).
#include "refengine/model.hpp"

#include <array>
#include <cmath>

#include "refengine/attention.hpp"
#include "refengine/math.hpp"

namespace baton::refengine {

// The activations of one forward call; `rows` tokens.
struct Model::Scratch {
  Scratch(const ModelConfig& config, std::size_t tokens_count, std::size_t keys_count)
      : rows(tokens_count),
        x(tokens_count * config.hidden),
        normed(x.size()),
        q(tokens_count * config.query_width()),
        k(tokens_count * config.kv_width()),
        v(k.size()),
        attended(q.size()),
        gate(tokens_count * config.ffn),
        up(gate.size()),
        keys(config, keys_count) {
    for (std::vector<float>& partial : partials) partial.resize(x.size());
  }

  std::size_t rows;
  std::vector<float> x, normed;
  std::vector<float> q, k, v, attended;
  std::vector<float> gate, up;
  std::array<std::vector<float>, kReductionGroups> partials;
  AttentionKeys keys;
};

namespace {

// theta^(-2i/head_dim) without pow(): head_dim is a power of two, so theta^(2/head_dim) is a
// repeated square root, which IEEE defines to the last bit.
std::vector<double> inverse_frequencies(const ModelConfig& config) {
  double step = config.rope_theta;
  for (std::size_t n = config.head_dim / 2; n > 1; n /= 2) step = std::sqrt(step);
  std::vector<double> inverse{1.0};
  while (inverse.size() < config.head_dim / 2) inverse.push_back(inverse.back() / step);
  return inverse;
}

// A TP=n rank would compute partials [rank * 4/n, (rank + 1) * 4/n) and gather the others.
void row_parallel_partial(const std::vector<float>& input, std::size_t rows, std::size_t group,
                          const std::vector<float>& weights, std::size_t in, std::size_t out,
                          std::vector<float>& partial) {
  const std::size_t width = in / kReductionGroups;
  const Rows slice{input.data() + group * width, rows, in};
  matmul(slice, {weights.data() + group * width * out, width, out}, partial.data());
}

void normalise_rows(const std::vector<float>& x, const std::vector<float>& weight, float epsilon,
                    std::vector<float>& out) {
  const std::size_t width = weight.size();
  for (std::size_t at = 0; at < x.size(); at += width) {
    rms_norm(std::span(x).subspan(at, width), weight, epsilon, std::span(out).subspan(at, width));
  }
}

}  // namespace

Result<Model> Model::load(const std::string& folder) {
  Result<ModelConfig> config = load_config(folder + "/config.json");
  if (!config) return config.error();
  Result<ModelWeights> weights = load_weights(folder + "/model.safetensors", *config);
  if (!weights) return weights.error();
  Model model;
  model.config_ = *config;
  model.weights_ = std::move(*weights);
  const std::vector<double> inverse = inverse_frequencies(*config);
  for (std::size_t position = 0; position < config->context; ++position) {
    for (const double frequency : inverse) {
      const double angle = static_cast<double>(position) * frequency;
      model.cosines_.push_back(static_cast<float>(cosine(angle)));
      model.sines_.push_back(static_cast<float>(sine(angle)));
    }
  }
  return model;
}

Result<void> Model::check(std::span<const std::int32_t> tokens, std::size_t first,
                          const KvPlace& kv) const {
  if (tokens.empty()) return Error{Errc::invalid_argument, "no token to compute"};
  const std::size_t end = first + tokens.size();
  if (end > config_.context) {
    return Error{Errc::limit, "the request needs " + std::to_string(end) +
                                  " tokens, but the model's context is " +
                                  std::to_string(config_.context) +
                                  "; shorten the prompt or ask for fewer tokens"};
  }
  if (kv.pages.size() * kv.pool->shape().page_size < end) {
    return Error{Errc::invalid_argument, "too few pages: " + std::to_string(kv.pages.size()) +
                                             " for " + std::to_string(end) + " tokens"};
  }
  for (const std::int32_t token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= config_.vocabulary) {
      return Error{Errc::invalid_argument, "token " + std::to_string(token) +
                                               " is not in the vocabulary of " +
                                               std::to_string(config_.vocabulary)};
    }
  }
  return {};
}

Result<std::vector<float>> Model::forward(std::span<const std::int32_t> tokens, std::size_t first,
                                          const KvPlace& kv) const {
  if (Result<void> checked = check(tokens, first, kv); !checked) return checked.error();
  Scratch s(config_, tokens.size(), first + tokens.size());
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const auto row = static_cast<std::size_t>(tokens[t]) * config_.hidden;
    for (std::size_t i = 0; i < config_.hidden; ++i) {
      s.x[t * config_.hidden + i] = weights_.embedding[row + i];
    }
  }
  for (std::size_t layer = 0; layer < config_.layers; ++layer) {
    attention_block(layer, first, kv, s);
    feed_forward_block(layer, s);
  }
  std::vector<float> hidden(config_.hidden);
  rms_norm(std::span(s.x).last(config_.hidden), weights_.final_norm, config_.rms_epsilon, hidden);
  return hidden;
}

std::vector<float> Model::logits(std::span<const float> hidden) const {
  std::vector<float> result(config_.vocabulary);
  matmul({hidden.data(), 1, config_.hidden},
         {weights_.head.data(), config_.hidden, config_.vocabulary}, result.data());
  return result;
}

void Model::rotate(std::span<float> head, std::size_t position) const {
  const std::size_t half = head.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    const float c = cosines_[position * half + i];
    const float s = sines_[position * half + i];
    const float a = head[i];
    const float b = head[i + half];
    head[i] = a * c - b * s;
    head[i + half] = b * c + a * s;
  }
}

void Model::project_qkv(std::size_t layer, std::size_t first, const KvPlace& kv, Scratch& s) const {
  const LayerWeights& w = weights_.layers[layer];
  const Rows rows{s.normed.data(), s.rows, config_.hidden};
  matmul(rows, {w.q.data(), config_.hidden, config_.query_width()}, s.q.data());
  matmul(rows, {w.k.data(), config_.hidden, config_.kv_width()}, s.k.data());
  matmul(rows, {w.v.data(), config_.hidden, config_.kv_width()}, s.v.data());
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config_.head_dim)));
  for (std::size_t t = 0; t < s.rows; ++t) {
    for (std::size_t h = 0; h < config_.query_heads; ++h) {
      const std::size_t at = (t * config_.query_heads + h) * config_.head_dim;
      const std::span<float> head = std::span(s.q).subspan(at, config_.head_dim);
      rms_norm(head, w.q_norm, config_.rms_epsilon, head);
      rotate(head, first + t);
      for (float& value : head) value *= scale;
    }
    for (std::size_t h = 0; h < config_.kv_heads; ++h) {
      const std::size_t at = (t * config_.kv_heads + h) * config_.head_dim;
      const std::span<float> head = std::span(s.k).subspan(at, config_.head_dim);
      rms_norm(head, w.k_norm, config_.rms_epsilon, head);
      rotate(head, first + t);
    }
    // What is stored is what is read: attention sees the rounded values for these tokens too.
    std::uint16_t* k = kv.pool->token(layer, KvPart::k, kv.pages, first + t);
    std::uint16_t* v = kv.pool->token(layer, KvPart::v, kv.pages, first + t);
    for (std::size_t i = 0; i < config_.kv_width(); ++i) {
      k[i] = to_bf16(s.k[t * config_.kv_width() + i]);
      v[i] = to_bf16(s.v[t * config_.kv_width() + i]);
    }
  }
}

void Model::attention_block(std::size_t layer, std::size_t first, const KvPlace& kv,
                            Scratch& s) const {
  const LayerWeights& w = weights_.layers[layer];
  normalise_rows(s.x, w.input_norm, config_.rms_epsilon, s.normed);
  project_qkv(layer, first, kv, s);
  s.keys.gather(*kv.pool, layer, kv.pages);
  for (std::size_t t = 0; t < s.rows; ++t) {
    const std::size_t at = t * config_.query_width();
    s.keys.attend(std::span(s.q).subspan(at, config_.query_width()), first + t + 1,
                  std::span(s.attended).subspan(at, config_.query_width()));
  }
  for (std::size_t g = 0; g < kReductionGroups; ++g) {
    row_parallel_partial(s.attended, s.rows, g, w.o, config_.query_width(), config_.hidden,
                         s.partials[g]);
  }
  add_partials(s.partials[0], s.partials[1], s.partials[2], s.partials[3], s.x);
}

void Model::feed_forward_block(std::size_t layer, Scratch& s) const {
  const LayerWeights& w = weights_.layers[layer];
  normalise_rows(s.x, w.post_norm, config_.rms_epsilon, s.normed);
  const Rows rows{s.normed.data(), s.rows, config_.hidden};
  matmul(rows, {w.gate.data(), config_.hidden, config_.ffn}, s.gate.data());
  matmul(rows, {w.up.data(), config_.hidden, config_.ffn}, s.up.data());
  silu_times(s.gate, s.up);
  for (std::size_t g = 0; g < kReductionGroups; ++g) {
    row_parallel_partial(s.gate, s.rows, g, w.down, config_.ffn, config_.hidden, s.partials[g]);
  }
  add_partials(s.partials[0], s.partials[1], s.partials[2], s.partials[3], s.x);
}

}  // namespace baton::refengine
