// Parsing of ASCII decimals.
#include "wire/numbers.hpp"

#include <charconv>
#include <string>
#include <system_error>

#include "wire/limits.hpp"
#include "wire/text.hpp"

namespace baton::wire {

namespace {

std::string describe(DecimalRange range) {
  return "a decimal in " + std::to_string(range.min) + ".." + std::to_string(range.max);
}

// std::from_chars is strict: no space, no plus, and a minus only for signed types.
template <class Integer>
bool parse_all(std::string_view text, Integer& value) {
  if (text.empty() || text.size() > kDecimalCharactersMax) return false;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  return fault == std::errc() && stop == end;
}

}  // namespace

Result<std::uint64_t> parse_decimal(std::string_view text, DecimalRange range) {
  std::uint64_t value = 0;
  if (parse_all(text, value) && value >= range.min && value <= range.max) return value;
  return Error{Errc::malformed, "expected " + describe(range) + ", found " + quote(text)};
}

Result<std::int64_t> parse_signed_decimal(std::string_view text) {
  std::int64_t value = 0;
  if (parse_all(text, value)) return value;
  return Error{Errc::malformed, "expected a signed 64 bit decimal, found " + quote(text)};
}

Result<void> check_range(std::uint64_t value, DecimalRange range) {
  if (value >= range.min && value <= range.max) return {};
  return Error{Errc::invalid_argument,
               "expected " + describe(range) + ", found " + std::to_string(value)};
}

}  // namespace baton::wire
