// Text in frames: what is allowed, how bytes are shown in errors, how UTF-8 is repaired.
#pragma once

#include <string>
#include <string_view>

#include "baton/result.hpp"

namespace baton::wire {

// The first bytes, quoted and printable, and the size: `"No\xff" (3 bytes)`. Never long.
std::string quote(std::string_view bytes);

enum class Emptiness : unsigned char { allowed, refused };

// The errors of these say only "expected ..., found ..."; callers add where.

// An IP literal without brackets, or a name.
Result<void> check_host(std::string_view host);
// A session id or another name that a peer chose: ASCII without control characters.
Result<void> check_name(std::string_view name, Emptiness emptiness);

// Replaces each sequence that is not UTF-8 with U+FFFD, as the reference does.
std::string repair_utf8(std::string_view bytes);

}  // namespace baton::wire
