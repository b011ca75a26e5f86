// Damaged, missing and foreign model files: each error names the file and what was wrong.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "refengine/support.hpp"

namespace baton::refengine {
namespace {

namespace fs = std::filesystem;

std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Loading : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / ("baton_loading_" + std::string(info->name()));
    fs::create_directories(folder_);
    for (const char* name : {"config.json", "model.safetensors"}) {
      fs::copy_file(fs::path(model_folder()) / name, folder_ / name,
                    fs::copy_options::overwrite_existing);
      fs::permissions(folder_ / name, fs::perms::owner_write, fs::perm_options::add);
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Replaces `from` by `to`, which must be as long, in a file of the model.
  void edit(const char* name, const std::string& from, const std::string& to) {
    std::string bytes = slurp(folder_ / name);
    const std::size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos);
    ASSERT_EQ(from.size(), to.size());
    bytes.replace(at, from.size(), to);
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  void expect_error(Errc code, const std::vector<std::string>& parts) {
    const Result<Model> loaded = Model::load(folder_.string());
    ASSERT_FALSE(loaded.has_value());
    EXPECT_EQ(loaded.error().code, code) << loaded.error().text;
    for (const std::string& part : parts) {
      EXPECT_NE(loaded.error().text.find(part), std::string::npos)
          << "no \"" << part << "\" in: " << loaded.error().text;
    }
  }

  fs::path folder_;
};

TEST_F(Loading, AnUntouchedCopyLoads) { EXPECT_TRUE(Model::load(folder_.string()).has_value()); }

TEST_F(Loading, MissingFiles) {
  fs::remove(folder_ / "model.safetensors");
  expect_error(Errc::not_found, {"model.safetensors", "No such file"});
  fs::remove(folder_ / "config.json");
  expect_error(Errc::not_found, {"config.json", "--model"});
}

TEST_F(Loading, TruncationIsFoundWhereverItIs) {
  for (const std::uintmax_t size : {std::uintmax_t{0}, std::uintmax_t{5}, std::uintmax_t{100},
                                    std::uintmax_t{100000}, std::uintmax_t{3075150}}) {
    fs::resize_file(folder_ / "model.safetensors", size);
    expect_error(Errc::malformed, {"model.safetensors", "truncated"});
    fs::copy_file(fs::path(model_folder()) / "model.safetensors", folder_ / "model.safetensors",
                  fs::copy_options::overwrite_existing);
  }
  fs::resize_file(folder_ / "config.json", 40);
  expect_error(Errc::malformed, {"config.json", "truncated"});
}

TEST_F(Loading, WrongDtypeShapeAndName) {
  edit("model.safetensors", R"("BF16","shape":[1024,128])", R"("FP16","shape":[1024,128])");
  expect_error(Errc::incompatible,
               {"model.embed_tokens.weight", "expected BF16 [1024, 128]", "found FP16"});
  edit("model.safetensors", R"("FP16","shape":[1024,128])", R"("BF16","shape":[128,1024])");
  expect_error(Errc::incompatible, {"expected BF16 [1024, 128]", "found BF16 [128, 1024]"});
  edit("model.safetensors", R"("BF16","shape":[128,1024])", R"("BF16","shape":[1024,128])");
  edit("model.safetensors", "model.layers.3.mlp.up_proj.weight",
       "model.layers.3.mlp.op_proj.weight");
  expect_error(Errc::not_found, {"model.layers.3.mlp.up_proj.weight", "found no such tensor"});
}

TEST_F(Loading, HeadersThatLie) {
  edit("model.safetensors", R"("data_offsets":[0,262144])", R"("data_offsets":[9,262144])");
  expect_error(Errc::malformed, {"model.embed_tokens.weight", "expected 262144 bytes"});
  edit("model.safetensors", R"("data_offsets":[9,262144])", R"("data_offsets":[9,0]     )");
  expect_error(Errc::malformed, {"model.embed_tokens.weight", "backwards"});
  edit("model.safetensors", R"("data_offsets":[9,0]     )", R"("data_offsets":[-1,9]    )");
  expect_error(Errc::malformed, {"model.embed_tokens.weight", "data_offsets"});
}

TEST_F(Loading, ConfigsOfOtherModels) {
  edit("config.json", R"("qwen3")", R"("llama")");
  expect_error(Errc::incompatible, {"model_type", "qwen3", "llama"});
  edit("config.json", R"("llama")", R"("qwen3")");
  edit("config.json", R"("num_hidden_layers": 6)", R"("num_hidden_layers": 0)");
  expect_error(Errc::incompatible, {"num_hidden_layers", "found 0"});
  edit("config.json", R"("num_hidden_layers": 0)", R"("num_hidden_layers": 7)");
  expect_error(Errc::not_found, {"model.layers.6.input_layernorm.weight"});
  edit("config.json", R"("num_key_value_heads": 4)", R"("num_key_value_heads": 2)");
  expect_error(Errc::incompatible, {"KV heads in multiples of 4"});
}

TEST(Limits, ContextOverflowIsAnError) {
  const std::vector<std::int32_t> prompt(500, 300);
  const auto run = [&](std::size_t tokens) {
    return generate(test_model(), {prompt, tokens, {}}, {});
  };
  EXPECT_TRUE(run(13).has_value());
  const Result<GenerateOutcome> over = run(14);
  ASSERT_FALSE(over.has_value());
  EXPECT_EQ(over.error().code, Errc::limit);
  EXPECT_NE(over.error().text.find("512"), std::string::npos) << over.error().text;
}

TEST(Limits, ForwardChecksItsArguments) {
  const PoolShape shape = pool_shape(test_model().config(), 1, 16);
  std::vector<std::byte> memory(shape.total_bytes());
  const KvPool pool(shape, memory);
  Sequence sequence(test_model(), pool, {0}, 0);
  EXPECT_EQ(sequence.extend({}).error().code, Errc::invalid_argument);
  EXPECT_EQ(sequence.extend(std::vector<std::int32_t>(17, 5)).error().code, Errc::invalid_argument);
  EXPECT_EQ(sequence.extend(std::vector<std::int32_t>{1024}).error().code, Errc::invalid_argument);
  EXPECT_EQ(sequence.extend(std::vector<std::int32_t>{-1}).error().code, Errc::invalid_argument);
  EXPECT_EQ(sequence.tokens_count(), 0U);
}

}  // namespace
}  // namespace baton::refengine
