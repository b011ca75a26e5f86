// Reports one difference, with its line number: the whole text would hide it.
#include "support/golden_file.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace baton::test {

namespace {

bool is_rewriting() {
  const char* value = std::getenv("BATON_REWRITE");
  return value != nullptr && std::string(value) == "1";
}

}  // namespace

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void expect_golden(const std::filesystem::path& path, const std::string& actual) {
  const std::string expected = read_text(path);
  if (actual == expected) return;
  if (is_rewriting()) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << actual;
    return;
  }
  std::istringstream want(expected), have(actual);
  std::string want_line, have_line;
  for (int line = 1;; ++line) {
    const bool more_want = static_cast<bool>(std::getline(want, want_line));
    const bool more_have = static_cast<bool>(std::getline(have, have_line));
    if (more_want && more_have && want_line == have_line) continue;
    ADD_FAILURE() << path.string() << ":" << line
                  << "\n  expected: " << (more_want ? want_line : "(end of file)")
                  << "\n  actual:   " << (more_have ? have_line : "(end of text)")
                  << "\nBATON_REWRITE=1 accepts what the code does now.";
    return;
  }
}

}  // namespace baton::test
