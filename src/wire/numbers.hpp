// ASCII decimals: digits only, no sign, space, underscore or other form that int() would take.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "baton/result.hpp"

namespace baton::wire {

struct DecimalRange {
  std::uint64_t min = 0;
  std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
};

// The errors of these say only "expected ..., found ..."; callers add where.
// Leading zeros are accepted, as the reference does.
Result<std::uint64_t> parse_decimal(std::string_view text, DecimalRange range);
// May start with one '-'. Used where the protocol has negative numbers.
Result<std::int64_t> parse_signed_decimal(std::string_view text);

// Is a value that we are about to send inside the range that decoding would accept?
Result<void> check_range(std::uint64_t value, DecimalRange range);

}  // namespace baton::wire
