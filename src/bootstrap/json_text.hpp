// The few things about JSON as text that registry and client share, without a JSON header.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton::bootstrap {

// Deeper bodies are refused unread: comparing and printing a value recurses.
inline constexpr int kJsonDepthMax = 64;
bool is_shallow_json(std::string_view text);

// Compact JSON with a space after each ',' and ':', as Python's json.dumps writes it.
std::string space_json(std::string_view compact);
// A JSON string literal, all of it ASCII.
std::string quote_json(std::string_view text);
// The same value always as the same text: no spaces, keys sorted. nullopt: not JSON.
std::optional<std::string> canonical_json(std::string_view text);

}  // namespace baton::bootstrap
