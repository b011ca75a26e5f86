// parse_arguments: the command line as options, or the exit status to end with.
#pragma once

#include <variant>

#include "cli/options.hpp"

namespace baton::cli {

// Prints help and usage errors itself; then the status is 0 or kExitUsage.
std::variant<Command, int> parse_arguments(int words_count, char** words);

}  // namespace baton::cli
