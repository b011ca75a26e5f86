// Bad input: one clear sentence on stderr, the right exit status, no hang.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "e2e/process.hpp"

namespace baton::e2e {
namespace {

namespace fs = std::filesystem;

// Exactly one line on stderr, which contains all of `parts`.
void expect_sentence(const Output& output, int status, const Arguments& parts) {
  EXPECT_EQ(output.status, status) << output.out << output.err;
  EXPECT_EQ(std::count(output.err.begin(), output.err.end(), '\n'), 1) << output.err;
  for (const std::string& part : parts) {
    EXPECT_NE(output.err.find(part), std::string::npos)
        << "no \"" << part << "\" in: " << output.err;
  }
}

TEST(Usage, WrongCommandLines) {
  expect_sentence(run({}), 2, {"baton: ", "subcommand", "baton --help"});
  expect_sentence(run({"dance"}), 2, {"baton: "});
  expect_sentence(run({"demo", "--sparkle"}), 2, {"baton demo: ", "--sparkle", "demo --help"});
  expect_sentence(run({"demo", "--tokens", "many"}), 2, {"--tokens", "many"});
  expect_sentence(run({"demo", "--tokens", "0"}), 2, {"--tokens"});
  expect_sentence(run({"demo", "--tokens", "-5"}), 2, {"--tokens"});
  expect_sentence(run({"demo", "--page-size", "0"}), 2, {"--page-size"});
  expect_sentence(run({"demo", "--transport", "pigeon"}), 2,
                  {"--transport", "pigeon", "local", "mooncake_tcp"});
  expect_sentence(run({"demo", "--tamper", "wish"}), 2, {"--tamper", "wish", "flip-bit"});
  expect_sentence(run({"prefill"}), 2, {"baton prefill: ", "--bootstrap"});
  expect_sentence(run({"prefill", "--bootstrap", "here"}), 2, {"--bootstrap", "here"});
  expect_sentence(run({"bootstrap", "--port", "70000"}), 2, {"--port", "70000"});
  expect_sentence(run({"generate", "--prefill", "x", "--decode", "a:1", "--bootstrap", "b:2"}), 2,
                  {"--prefill"});
}

TEST(Usage, HelpIsThereForEveryCommand) {
  const Output help = run({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* command : {"demo", "bootstrap", "prefill", "decode", "generate"}) {
    EXPECT_NE(help.out.find(command), std::string::npos);
    const Output one = run({command, "--help"});
    EXPECT_EQ(one.status, 0) << command;
    EXPECT_NE(one.out.find(std::string(command) == "bootstrap" ? "--port" : "--model"),
              std::string::npos)
        << one.out;
    EXPECT_EQ(one.err, "");
  }
  const Output version = run({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out.rfind("baton ", 0), 0U);
}

TEST(Usage, APromptBeyondTheContext) {
  std::string prompt;
  for (int i = 0; i < 600; ++i) prompt += " word";
  expect_sentence(run({"demo", "--prompt", prompt}), 1,
                  {"baton demo: ", "context is 512", "shorten the prompt"});
  expect_sentence(run({"demo", "--tokens", "1000"}), 1, {"1000 more", "context is 512"});
}

TEST(Usage, APoolThatIsTooSmall) {
  const Output output = run({"demo", "--pages", "2"});
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.err.find("--pages"), std::string::npos) << output.err;
}

class DamagedModel : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("baton_e2e_model_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    const fs::path source = fs::path(BATON_SOURCE_DIR) / "refengine/data/dense";
    for (const char* name : {"config.json", "merges.txt", "model.safetensors"}) {
      fs::copy_file(source / name, folder_ / name, fs::copy_options::overwrite_existing);
      fs::permissions(folder_ / name, fs::perms::owner_write, fs::perm_options::add);
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(DamagedModel, IsNamed) {
  fs::resize_file(folder_ / "model.safetensors", 1000000);
  const std::string folder = folder_.string();
  for (const char* command : {"demo", "decode"}) {
    expect_sentence(run({command, "--model", folder}), 1,
                    {std::string("baton ") + command, "model.safetensors", "truncated"});
  }
  expect_sentence(run({"prefill", "--bootstrap", "127.0.0.1:1", "--model", folder}), 1,
                  {"model.safetensors", "truncated"});
  fs::remove(folder_ / "merges.txt");
  expect_sentence(run({"generate", "--model", folder, "--prefill", "127.0.0.1:1", "--decode",
                       "127.0.0.1:1", "--bootstrap", "127.0.0.1:1"}),
                  1, {"merges.txt"});
}

TEST(Usage, AMissingModel) {
  expect_sentence(run({"demo", "--model", "/nowhere"}), 1,
                  {"baton demo: ", "/nowhere/config.json", "No such file", "--model"});
}

TEST(Usage, APortInUse) {
  Process first({"bootstrap"});
  const std::string address = first.ready_address();
  ASSERT_FALSE(address.empty()) << first.err();
  const std::string port = address.substr(address.rfind(':') + 1);
  expect_sentence(run({"bootstrap", "--port", port}), 1, {"baton bootstrap: ", port, "in use"});
  expect_sentence(run({"decode", "--http-port", port}), 1, {"baton decode: ", port, "in use"});
  expect_sentence(run({"prefill", "--bootstrap", address, "--http-port", port}), 1,
                  {"baton prefill: ", port, "in use"});
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait(), 0);
}

TEST(Usage, AnAddressThatIsNotOurs) {
  expect_sentence(run({"bootstrap", "--host", "192.0.2.1"}), 1, {"192.0.2.1"});
  expect_sentence(run({"decode", "--host", "192.0.2.1"}), 1, {"192.0.2.1"});
}

TEST(Usage, NobodyListens) {
  expect_sentence(run({"generate", "--prefill", "127.0.0.1:1", "--decode", "127.0.0.1:2",
                       "--bootstrap", "127.0.0.1:3", "--json"}),
                  1, {"baton generate: ", "cannot connect to 127.0.0.1:", "running there?"});
}

TEST(Usage, NoBootstrapServerToRegisterWith) {
  const Output output = run({"prefill", "--bootstrap", "127.0.0.1:1"});
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.err.find("127.0.0.1:1"), std::string::npos) << output.err;
}

}  // namespace
}  // namespace baton::e2e
