// `baton demo`: identical to one process over every transport, page size and chunk; damage shows.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "e2e/process.hpp"

namespace baton::e2e {
namespace {

using Json = nlohmann::json;

Json demo(Arguments arguments) {
  arguments.insert(arguments.begin(), {"demo", "--json"});
  const Output output = run(arguments);
  EXPECT_EQ(output.err, "");
  EXPECT_EQ(output.status, 0) << output.out << output.err;
  const Json report = Json::parse(output.out, nullptr, false);
  EXPECT_TRUE(report.is_object()) << output.out;
  return report.is_object() ? report : Json::object();
}

void expect_identical(const Json& report) {
  const Json all = {
      {"tokens", true}, {"logits_bits", true}, {"kv_bytes", true}, {"aux_bytes", true}};
  EXPECT_EQ(report.value("identical", Json()), all) << report.dump();
}

class EachTransport : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transports, EachTransport, testing::Values("local", "mooncake_tcp"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST_P(EachTransport, IsIdenticalToOneProcess) {
  const Json report = demo({"--transport", GetParam(), "--tokens", "12"});
  expect_identical(report);
  EXPECT_EQ(report["requests"], 1);
  EXPECT_EQ(report["prompt_tokens"], 48);
  EXPECT_EQ(report["generated_tokens"], 12);
  EXPECT_EQ(report["pages"], 3);
  EXPECT_EQ(report["chunks"], 3);
  // Three pages of K and V in six layers, and one aux row.
  EXPECT_EQ(report["bytes"], 3 * 12 * 4096 + 2048);
  EXPECT_GT(report["notice_seconds"], 0.0);
  EXPECT_FALSE(report["texts"][0].get<std::string>().empty());
}

TEST_P(EachTransport, ThirtyTwoRequestsAtOnce) {
  const Json report =
      demo({"--transport", GetParam(), "--requests", "32", "--chunk", "37", "--tokens", "4"});
  expect_identical(report);
  EXPECT_EQ(report["generated_tokens"], 128);
}

// Requests must wait for pages, on both sides.
TEST_P(EachTransport, MoreRequestsThanPages) {
  const Json report =
      demo({"--transport", GetParam(), "--requests", "12", "--pages", "9", "--tokens", "6"});
  expect_identical(report);
}

TEST_P(EachTransport, AnyPageSizeAndChunk) {
  std::set<std::string> texts;
  for (const char* page_size : {"1", "16", "64"}) {
    for (const char* chunk : {"0", "64", "37", "1"}) {
      SCOPED_TRACE(std::string("page size ") + page_size + ", chunk " + chunk);
      const Json report = demo({"--transport", GetParam(), "--page-size", page_size, "--chunk",
                                chunk, "--tokens", "3", "--requests", "2"});
      expect_identical(report);
      texts.insert(report["texts"].dump());
    }
  }
  EXPECT_EQ(texts.size(), 1U);
}

TEST(Demo, StreamsTheTextAndEndsWithATable) {
  const Output output = run({"demo", "--prompt", "Emma could not help", "--tokens", "20"});
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_EQ(output.out.rfind("Emma could not help", 0), 0U) << output.out;
  for (const char* line : {"8 in prompts, 20 generated", "identical to one process",
                           "tokens        yes", "logits bits   yes", "KV bytes      yes",
                           "aux bytes     yes", "MiB", "GB/s", "from the last byte written"}) {
    EXPECT_NE(output.out.find(line), std::string::npos) << line << " is not in\n" << output.out;
  }
}

TEST(Demo, SeedsChooseTheText) {
  const auto text = [](const char* seed) {
    return demo({"--tokens", "16", "--seed", seed})["texts"][0].get<std::string>();
  };
  const std::string one = text("1");
  EXPECT_EQ(text("1"), one);
  EXPECT_NE(text("2"), one);
}

TEST(Demo, OneTokenIsPrefillsAlone) { expect_identical(demo({"--tokens", "1"})); }

class Tampered : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Modes, Tampered,
                         testing::Values("flip-bit", "swap-pages", "drop-page", "early-success"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           name[name.find('-')] = '_';
                           return name;
                         });

TEST_P(Tampered, TheComparisonCatchesIt) {
  const Output output =
      run({"demo", "--json", "--tokens", "8", "--chunk", "0", "--tamper", GetParam()});
  EXPECT_EQ(output.status, 1) << output.out << output.err;
  const Json report = Json::parse(output.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << output.out << output.err;
  EXPECT_EQ(report["identical"]["kv_bytes"], false);
  EXPECT_EQ(report["identical"]["logits_bits"], false);
}

TEST(Demo, TheTableSaysNoInCapitals) {
  const Output output = run({"demo", "--tokens", "4", "--chunk", "0", "--tamper", "flip-bit"});
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.out.find("KV bytes      NO"), std::string::npos) << output.out << output.err;
}

}  // namespace
}  // namespace baton::e2e
