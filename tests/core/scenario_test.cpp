// Every file in tests/scenario is one story; the nodes must do exactly what it says.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/golden_file.hpp"
#include "support/scenario_runner.hpp"

namespace {

const std::filesystem::path kFolder = std::filesystem::path(BATON_SOURCE_DIR) / "tests/scenario";

std::vector<std::string> story_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class Scenario : public testing::TestWithParam<std::string> {};

TEST_P(Scenario, GoesAsWritten) {
  const std::filesystem::path path = kFolder / (GetParam() + ".txt");
  const std::string story = baton::test::read_text(path);
  EXPECT_EQ(story.substr(0, 2), "# ") << "a story opens by saying what it shows";
  const std::string told = baton::test::run_scenario(story);
  EXPECT_EQ(told.find("BROKEN INVARIANT"), std::string::npos) << told;
  EXPECT_EQ(told.find("\nerror: "), std::string::npos) << told;
  baton::test::expect_golden(path, told);
}

INSTANTIATE_TEST_SUITE_P(Stories, Scenario, testing::ValuesIn(story_names()),
                         [](const auto& story) { return story.param; });

// The runner itself: a command that makes no sense must not pass unnoticed.
TEST(ScenarioRunner, ReportsNonsense) {
  const std::string told = baton::test::run_scenario("fly P 7\n----\n\nabort P 7\n----\n");
  EXPECT_NE(told.find("error: no command fly"), std::string::npos) << told;
  EXPECT_NE(told.find("error: no node P"), std::string::npos) << told;
}

TEST(ScenarioRunner, ReplacesTheExpectedOutputByTheActual) {
  const std::string told = baton::test::run_scenario("# c\nprefill P\nopen P 7\n----\nwrong\n");
  EXPECT_EQ(told,
            "# c\nprefill P\nopen P 7\n----\n"
            "P: count rooms_opened\nP: status 7#1 Bootstrapping\n");
}

}  // namespace
