// Text transformations of JSON.
#include "bootstrap/json_text.hpp"

#include <nlohmann/json.hpp>

namespace baton::bootstrap {

namespace {

// Calls visit(character, is_outside) where is_outside says: not inside a string literal.
template <class Visit>
void walk(std::string_view text, Visit&& visit) {
  bool is_in_string = false;
  bool is_escaped = false;
  for (const char c : text) {
    visit(c, !is_in_string);
    if (is_escaped) {
      is_escaped = false;
    } else if (is_in_string && c == '\\') {
      is_escaped = true;
    } else if (c == '"') {
      is_in_string = !is_in_string;
    }
  }
}

}  // namespace

bool is_shallow_json(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  walk(text, [&](char c, bool is_outside) {
    if (!is_outside) return;
    if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
    if (c == '}' || c == ']') --depth;
  });
  return deepest <= kJsonDepthMax;
}

std::string space_json(std::string_view compact) {
  std::string spaced;
  walk(compact, [&](char c, bool is_outside) {
    spaced += c;
    if (is_outside && (c == ',' || c == ':')) spaced += ' ';
  });
  return spaced;
}

std::string quote_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::optional<std::string> canonical_json(std::string_view text) {
  if (!is_shallow_json(text)) return std::nullopt;
  const nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  return value.dump(-1, ' ', true);
}

}  // namespace baton::bootstrap
