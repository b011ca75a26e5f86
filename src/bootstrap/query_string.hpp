// Targets of requests: the path, decoded parameters, and integers as Python's int() reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::bootstrap {

struct Target {
  std::string_view path;
  std::string_view query;  // without the '?'
};

Target split_target(std::string_view target);
// The first value of that name, percent-decoded; empty if there is none.
std::string query_parameter(std::string_view query, std::string_view name);
// White space around, a sign, and single underscores between digits are allowed; nullopt for
// anything else and for what does not fit 64 bits.
std::optional<std::int64_t> parse_integer(std::string_view text);

}  // namespace baton::bootstrap
