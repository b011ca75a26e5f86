// Printable excerpts, checks of names, and UTF-8 repair.
#include "wire/text.hpp"

#include <algorithm>
#include <cstddef>

#include "wire/limits.hpp"

namespace baton::wire {

namespace {

constexpr std::size_t kQuotedBytesMax = 24;

bool is_printable(char character) { return character >= ' ' && character <= '~'; }

Error unexpected(const std::string& expected, std::string_view found) {
  return {Errc::malformed, "expected " + expected + ", found " + quote(found)};
}

unsigned byte_at(std::string_view bytes, std::size_t index) {
  return static_cast<unsigned char>(bytes[index]);
}

// The bytes that one UTF-8 character starting with `lead` takes, 0 if none starts so, and the
// range of its second byte (which excludes overlong forms, surrogates and values past U+10FFFF).
struct Utf8Form {
  std::size_t length_bytes = 0;
  unsigned second_min = 0x80, second_max = 0xBF;
};

Utf8Form utf8_form(unsigned lead) {
  if (lead < 0x80) return {1};
  if (lead >= 0xC2 && lead <= 0xDF) return {2};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead >= 0xE1 && lead <= 0xEF) return {3};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead >= 0xF1 && lead <= 0xF3) return {4};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

std::string quote(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "\"";
  for (const char character : bytes.substr(0, kQuotedBytesMax)) {
    const auto byte = static_cast<unsigned char>(character);
    if (is_printable(character) && character != '"' && character != '\\') {
      text += character;
    } else {
      text += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  text += bytes.size() > kQuotedBytesMax ? "...\"" : "\"";
  return text + " (" + std::to_string(bytes.size()) + (bytes.size() == 1 ? " byte)" : " bytes)");
}

Result<void> check_host(std::string_view host) {
  const bool fits = !host.empty() && host.size() <= kHostBytesMax;
  const bool clean = std::all_of(host.begin(), host.end(), [](char character) {
    return is_printable(character) && character != ' ' && character != '[' && character != ']';
  });
  if (fits && clean) return {};
  return unexpected(
      "a host without brackets of 1 to " + std::to_string(kHostBytesMax) + " ASCII characters",
      host);
}

Result<void> check_name(std::string_view name, Emptiness emptiness) {
  const std::size_t bytes_min = emptiness == Emptiness::refused ? 1 : 0;
  const bool fits = name.size() >= bytes_min && name.size() <= kNameBytesMax;
  if (fits && std::all_of(name.begin(), name.end(), is_printable)) return {};
  return unexpected(std::to_string(bytes_min) + " to " + std::to_string(kNameBytesMax) +
                        " printable ASCII characters",
                    name);
}

std::string repair_utf8(std::string_view bytes) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::string text;
  text.reserve(bytes.size());
  std::size_t index = 0;
  while (index < bytes.size()) {
    const Utf8Form form = utf8_form(byte_at(bytes, index));
    std::size_t valid_bytes = 1;  // how much of the character is there and right
    while (valid_bytes < form.length_bytes && index + valid_bytes < bytes.size()) {
      const unsigned next = byte_at(bytes, index + valid_bytes);
      const bool second = valid_bytes == 1;
      if (next < (second ? form.second_min : 0x80) || next > (second ? form.second_max : 0xBF)) {
        break;
      }
      ++valid_bytes;
    }
    text += valid_bytes == form.length_bytes ? bytes.substr(index, valid_bytes) : kReplacement;
    index += valid_bytes;
  }
  return text;
}

}  // namespace baton::wire
