// Golden files: compare a text with the committed one, or rewrite it under BATON_REWRITE=1.
#pragma once

#include <filesystem>
#include <string>

namespace baton::test {

// "" if there is no such file.
std::string read_text(const std::filesystem::path& path);
// Fails the running test at the first line that differs. With BATON_REWRITE=1 writes the file
// instead: read the diff, it is the change.
void expect_golden(const std::filesystem::path& path, const std::string& actual);

}  // namespace baton::test
