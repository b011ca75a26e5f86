// Decoding of request targets.
#include "bootstrap/query_string.hpp"

#include <charconv>

namespace baton::bootstrap {

namespace {

constexpr std::string_view kWhiteSpace = " \t\n\r\f\v";

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decode(std::string_view text) {
  std::string out;
  for (std::size_t index = 0; index < text.size(); ++index) {
    const bool has_two_more = text[index] == '%' && index + 2 < text.size();
    const int high = has_two_more ? hex_digit(text[index + 1]) : -1;
    const int low = has_two_more ? hex_digit(text[index + 2]) : -1;
    if (high >= 0 && low >= 0) {
      out += static_cast<char>(high * 16 + low);
      index += 2;
    } else {
      out += text[index] == '+' ? ' ' : text[index];
    }
  }
  return out;
}

}  // namespace

Target split_target(std::string_view target) {
  target = target.substr(0, target.find('#'));
  const std::size_t mark = target.find('?');
  if (mark == std::string_view::npos) return {target, {}};
  return {target.substr(0, mark), target.substr(mark + 1)};
}

std::string query_parameter(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (decode(pair.substr(0, equals)) == name && equals < pair.size()) {
      return decode(pair.substr(equals + 1));
    }
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return {};
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kWhiteSpace);
  if (first == std::string_view::npos) return std::nullopt;
  text = text.substr(first, text.find_last_not_of(kWhiteSpace) - first + 1);
  std::string digits;
  if (text.front() == '+' || text.front() == '-') {
    if (text.front() == '-') digits = "-";
    text.remove_prefix(1);
  }
  bool may_skip = false;  // an underscore may only stand between two digits
  for (const char c : text) {
    if (c == '_' && may_skip) {
      may_skip = false;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;
    digits += c;
    may_skip = true;
  }
  if (!may_skip) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (fault != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace baton::bootstrap
