// The parts started one by one: what a deployment on several hosts does.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "e2e/process.hpp"

namespace baton::e2e {
namespace {

using Json = nlohmann::json;

// A long prompt and one token a chunk: prefill is busy for a while.
std::string long_prompt() {
  std::string prompt;
  for (int i = 0; i < 490; ++i) prompt += " and";
  return prompt;
}

class ByHand : public testing::Test {
 protected:
  void SetUp() override {
    bootstrap_.emplace(Arguments{"bootstrap"});
    bootstrap_address_ = bootstrap_->ready_address();
    ASSERT_FALSE(bootstrap_address_.empty()) << bootstrap_->err();
  }

  void start_prefill(const Arguments& more = {}) {
    Arguments arguments{"prefill", "--bootstrap", bootstrap_address_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    prefill_.emplace(arguments);
    prefill_address_ = prefill_->ready_address();
    ASSERT_FALSE(prefill_address_.empty()) << prefill_->err();
  }

  void start_decode(const Arguments& more = {}) {
    Arguments arguments{"decode"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    decode_.emplace(arguments);
    decode_address_ = decode_->ready_address();
    ASSERT_FALSE(decode_address_.empty()) << decode_->err();
  }

  Arguments generate(const Arguments& more = {}) const {
    Arguments arguments{"generate",      "--prefill",   prefill_address_,  "--decode",
                        decode_address_, "--bootstrap", bootstrap_address_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  void expect_works() {
    const Output output = run(generate({"--json", "--compare", "--tokens", "6"}));
    EXPECT_EQ(output.status, 0) << output.out << output.err;
    const Json report = Json::parse(output.out, nullptr, false);
    ASSERT_TRUE(report.is_object()) << output.out;
    for (const auto& [what, same] : report["identical"].items()) EXPECT_TRUE(same) << what;
  }

  std::optional<Process> bootstrap_, prefill_, decode_;
  std::string bootstrap_address_, prefill_address_, decode_address_;
};

TEST_F(ByHand, GenerateIsIdenticalToOneProcess) {
  for (const char* transport : {"local", "mooncake_tcp"}) {
    start_prefill({"--transport", transport, "--chunk", "10"});
    start_decode({"--transport", transport});
    expect_works();
    expect_works();
  }
}

TEST_F(ByHand, SigtermEndsEveryPartWithStatus0) {
  start_prefill();
  start_decode();
  for (std::optional<Process>* part : {&decode_, &prefill_, &bootstrap_}) {
    (*part)->signal(SIGTERM);
    EXPECT_EQ((*part)->wait(), 0) << (*part)->err();
  }
}

void expect_failure(const Output& output, const Arguments& parts) {
  EXPECT_EQ(output.status, 1) << output.out << output.err;
  for (const std::string& part : parts) {
    EXPECT_NE(output.err.find(part), std::string::npos)
        << "no \"" << part << "\" in: " << output.err;
  }
}

TEST_F(ByHand, PageSizesThatDiffer) {
  start_prefill({"--page-size", "16"});
  start_decode({"--page-size", "64"});
  expect_failure(run(generate()), {"baton generate: decode: ", "page", "16", "64"});
}

TEST_F(ByHand, KvTypesThatDiffer) {
  start_prefill({"--kv-dtype", "float8_e4m3"});
  start_decode();
  expect_failure(run(generate()), {"baton generate: decode: ", "float8_e4m3", "bfloat16"});
}

TEST_F(ByHand, ARequestThatDoesNotFitIsRefusedByBothSides) {
  start_prefill();
  start_decode();
  expect_failure(run(generate({"--tokens", "600"})), {"600 more", "context is 512"});
  expect_works();
}

TEST_F(ByHand, ANewPrefillTakesOverAfterAKill) {
  start_prefill({"--chunk", "1", "--transport", "mooncake_tcp"});
  start_decode({"--transport", "mooncake_tcp"});
  Process client(generate({"--prompt", long_prompt(), "--tokens", "4"}));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  prefill_->signal(SIGKILL);
  EXPECT_EQ(client.wait(), 1) << client.out();
  EXPECT_NE(client.err().find("baton generate: "), std::string::npos) << client.err();
  start_prefill({"--transport", "mooncake_tcp"});
  expect_works();
}

TEST_F(ByHand, ANewDecodeTakesOverAfterAKill) {
  for (const char* transport : {"local", "mooncake_tcp"}) {
    start_prefill({"--chunk", "1", "--transport", transport});
    start_decode({"--transport", transport});
    Process client(generate({"--prompt", long_prompt(), "--tokens", "4"}));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    decode_->signal(SIGKILL);
    EXPECT_EQ(client.wait(), 1) << client.out();
    EXPECT_NE(client.err().find("decode"), std::string::npos) << client.err();
    start_decode({"--transport", transport});
    expect_works();
  }
}

// Both sides give up a request whose client went away, and go on with the next one.
TEST_F(ByHand, AClientThatGoesAway) {
  start_prefill({"--chunk", "1"});
  start_decode();
  {
    Process client(generate({"--prompt", long_prompt(), "--tokens", "4"}));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    client.signal(SIGINT);
    EXPECT_EQ(client.wait(), 130) << client.err();
  }
  expect_works();
}

}  // namespace
}  // namespace baton::e2e
