// Reads config.json and model.safetensors.
#include "refengine/weights.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "refengine/files.hpp"
#include "refengine/safetensors.hpp"

namespace baton::refengine {

namespace {

using Json = nlohmann::json;

// More than any model that this engine is for; keeps products of shapes far from overflow.
constexpr std::size_t kExtentMax = std::size_t{1} << 20U;

// Collects the first error, so that a list of keys reads as a list of keys.
class ConfigReader {
 public:
  ConfigReader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  std::size_t extent(const char* key) {
    const auto found = json_.find(key);
    const bool good = found != json_.end() && found->is_number_unsigned() &&
                      found->get<std::size_t>() >= 1 && found->get<std::size_t>() <= kExtentMax;
    if (!good) complain(key, "a whole number from 1 to 1048576", found);
    return good ? found->get<std::size_t>() : 1;
  }

  double positive(const char* key) {
    const auto found = json_.find(key);
    const bool good = found != json_.end() && found->is_number() && found->get<double>() > 0;
    if (!good) complain(key, "a number above 0", found);
    return good ? found->get<double>() : 1;
  }

  void expect(const char* key, const Json& value) {
    const auto found = json_.find(key);
    if (found == json_.end() || *found != value) complain(key, value.dump(), found);
  }

  void require(bool condition, const char* what) {
    if (!condition && error_.empty()) error_ = path_ + ": this engine needs " + what;
  }

  const std::string& error() const { return error_; }

 private:
  void complain(const char* key, const std::string& expected, const Json::const_iterator& found) {
    if (!error_.empty()) return;
    const std::string is = found == json_.end() ? "nothing" : found->dump();
    error_ = path_ + ", key " + key + ": expected " + expected + ", found " + is;
  }

  const Json& json_;
  std::string path_;
  std::string error_;
};

bool is_power_of_two(std::size_t value) { return (value & (value - 1)) == 0; }

// [rows][columns] to [columns][rows].
std::vector<float> transpose(const std::vector<float>& matrix, std::size_t rows,
                             std::size_t columns) {
  std::vector<float> result(matrix.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) result[c * rows + r] = matrix[r * columns + c];
  }
  return result;
}

// Reads tensors of one file and keeps the first error.
class WeightReader {
 public:
  explicit WeightReader(const TensorFile& file) : file_(file) {}

  std::vector<float> vector(const std::string& name, std::size_t extent) {
    return take(name, {extent});
  }

  // The file holds [out][in].
  std::vector<float> matrix(const std::string& name, std::size_t in, std::size_t out) {
    std::vector<float> values = take(name, {out, in});
    return error_ ? std::vector<float>() : transpose(values, out, in);
  }

  std::vector<float> take(const std::string& name, const std::vector<std::size_t>& shape) {
    if (error_) return {};
    Result<std::vector<float>> values = file_.read(name, shape);
    if (values) return std::move(*values);
    error_ = values.error();
    return {};
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  const TensorFile& file_;
  std::optional<Error> error_;
};

LayerWeights read_layer(WeightReader& reader, std::size_t index, const ModelConfig& config) {
  const std::string base = "model.layers." + std::to_string(index) + ".";
  LayerWeights layer;
  layer.input_norm = reader.vector(base + "input_layernorm.weight", config.hidden);
  layer.post_norm = reader.vector(base + "post_attention_layernorm.weight", config.hidden);
  layer.q_norm = reader.vector(base + "self_attn.q_norm.weight", config.head_dim);
  layer.k_norm = reader.vector(base + "self_attn.k_norm.weight", config.head_dim);
  const std::string attention = base + "self_attn.";
  layer.q = reader.matrix(attention + "q_proj.weight", config.hidden, config.query_width());
  layer.k = reader.matrix(attention + "k_proj.weight", config.hidden, config.kv_width());
  layer.v = reader.matrix(attention + "v_proj.weight", config.hidden, config.kv_width());
  layer.o = reader.matrix(attention + "o_proj.weight", config.query_width(), config.hidden);
  layer.gate = reader.matrix(base + "mlp.gate_proj.weight", config.hidden, config.ffn);
  layer.up = reader.matrix(base + "mlp.up_proj.weight", config.hidden, config.ffn);
  layer.down = reader.matrix(base + "mlp.down_proj.weight", config.ffn, config.hidden);
  return layer;
}

}  // namespace

Result<ModelConfig> load_config(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) {
    return Error{Errc::malformed, path + " is truncated or not a JSON object; copy the file again"};
  }
  ConfigReader reader(json, path);
  reader.expect("model_type", "qwen3");
  reader.expect("hidden_act", "silu");
  reader.expect("attention_bias", false);
  reader.expect("tie_word_embeddings", true);
  ModelConfig config;
  config.hidden = reader.extent("hidden_size");
  config.layers = reader.extent("num_hidden_layers");
  config.query_heads = reader.extent("num_attention_heads");
  config.kv_heads = reader.extent("num_key_value_heads");
  config.head_dim = reader.extent("head_dim");
  config.ffn = reader.extent("intermediate_size");
  config.vocabulary = reader.extent("vocab_size");
  config.context = reader.extent("max_position_embeddings");
  config.rms_epsilon = static_cast<float>(reader.positive("rms_norm_eps"));
  config.rope_theta = reader.positive("rope_theta");
  reader.require(config.query_heads % config.kv_heads == 0, "query heads in whole KV groups");
  reader.require(config.kv_heads % kReductionGroups == 0, "KV heads in multiples of 4");
  reader.require(config.ffn % (8 * kReductionGroups) == 0, "an ffn width in multiples of 32");
  reader.require(config.hidden % 8 == 0, "a hidden width in multiples of 8");
  reader.require(config.vocabulary % 8 == 0, "a vocabulary in multiples of 8");
  reader.require(config.head_dim >= 8 && is_power_of_two(config.head_dim),
                 "a head_dim that is a power of two, 8 or more");
  if (!reader.error().empty()) return Error{Errc::incompatible, reader.error()};
  return config;
}

Result<ModelWeights> load_weights(const std::string& path, const ModelConfig& config) {
  const Result<TensorFile> file = TensorFile::open(path);
  if (!file) return file.error();
  WeightReader reader(*file);
  ModelWeights weights;
  weights.embedding = reader.take("model.embed_tokens.weight", {config.vocabulary, config.hidden});
  weights.final_norm = reader.vector("model.norm.weight", config.hidden);
  for (std::size_t i = 0; i < config.layers && !reader.error(); ++i) {
    weights.layers.push_back(read_layer(reader, i, config));
  }
  if (reader.error()) return *reader.error();
  weights.head = transpose(weights.embedding, config.vocabulary, config.hidden);
  return weights;
}

}  // namespace baton::refengine
