// Byte-level BPE and UTF-8 streaming.
#include "refengine/tokenizer.hpp"

#include <charconv>
#include <limits>

#include "refengine/files.hpp"

namespace baton::refengine {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_newline(char c) { return c == '\n'; }
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_other(char c) { return !is_letter(c) && !is_digit(c) && !is_blank(c); }

std::size_t run_length(std::string_view text, std::size_t from, bool (*in_class)(char)) {
  std::size_t end = from;
  while (end < text.size() && in_class(text[end])) ++end;
  return end - from;
}

// Length of the first pre-token of a text that is not empty. The order of the alternatives is part
// of the rule: a space belongs to the word that follows it, and stands alone otherwise.
std::size_t pre_token_length(std::string_view text) {
  const std::size_t space = text[0] == ' ' ? 1 : 0;
  if (const std::size_t run = run_length(text, space, is_letter)) return space + run;
  if (const std::size_t run = run_length(text, space, is_digit)) return space + run;
  if (const std::size_t run = run_length(text, 0, is_newline)) return run;
  if (const std::size_t run = run_length(text, space, is_other)) return space + run;
  return 1;
}

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U |
         static_cast<std::uint32_t>(right);
}

// Bytes of the character that a lead byte begins; 0: not a lead byte.
std::size_t character_bytes(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// May `byte` stand at `offset` of the character that `lead` begins? The second byte is restricted
// further: overlong forms, surrogates and code points above U+10FFFF are not UTF-8.
bool continues(unsigned char lead, std::size_t offset, unsigned char byte) {
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (offset == 1) {
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  }
  return byte >= low && byte <= high;
}

}  // namespace

Result<Tokenizer> Tokenizer::load(const std::string& merges_path) {
  const Result<std::string> text = read_file(merges_path);
  if (!text) return text.error();
  Tokenizer tokenizer;
  for (int byte = 0; byte < 256; ++byte) {
    tokenizer.pieces_.emplace_back(1, static_cast<char>(byte));
  }
  tokenizer.pieces_.resize(kEos + 1);
  std::string_view rest = *text;
  for (std::size_t line = 1; !rest.empty(); ++line) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      return Error{Errc::malformed, merges_path + " is truncated: line " + std::to_string(line) +
                                        " has no end; copy the file again"};
    }
    if (Result<void> added = tokenizer.add_merge(rest.substr(0, end)); !added) {
      return Error{added.error().code,
                   merges_path + ", line " + std::to_string(line) + ": " + added.error().text};
    }
    rest.remove_prefix(end + 1);
  }
  return tokenizer;
}

Result<void> Tokenizer::add_merge(std::string_view line) {
  std::int32_t left = -1;
  std::int32_t right = -1;
  const char* end = line.data() + line.size();
  const auto first = std::from_chars(line.data(), end, left);
  const bool separated = first.ec == std::errc{} && first.ptr != end && *first.ptr == ' ';
  const auto second = separated ? std::from_chars(first.ptr + 1, end, right) : first;
  const auto known = [this](std::int32_t id) {
    return id >= 0 && static_cast<std::size_t>(id) < pieces_.size() && id != kBos && id != kEos;
  };
  if (!separated || second.ec != std::errc{} || second.ptr != end || !known(left) ||
      !known(right)) {
    return Error{Errc::malformed,
                 "expected two ids of earlier tokens, found \"" + std::string(line) + "\""};
  }
  merges_.emplace(pair_key(left, right), static_cast<std::int32_t>(pieces_.size()));
  pieces_.push_back(std::string(bytes(left)) + std::string(bytes(right)));
  return {};
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> tokens{kBos};
  while (!text.empty()) {
    const std::size_t length = pre_token_length(text);
    encode_word(text.substr(0, length), tokens);
    text.remove_prefix(length);
  }
  return tokens;
}

// Applies the earliest merge that fits anywhere, everywhere it fits, until none fits.
void Tokenizer::encode_word(std::string_view word, std::vector<std::int32_t>& out) const {
  std::vector<std::int32_t> ids;
  for (const char c : word) ids.push_back(static_cast<unsigned char>(c));
  for (;;) {
    std::int32_t best = std::numeric_limits<std::int32_t>::max();
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = merges_.find(pair_key(ids[i], ids[i + 1]));
      if (found != merges_.end() && found->second < best) best = found->second;
    }
    if (best == std::numeric_limits<std::int32_t>::max()) break;
    std::vector<std::int32_t> merged;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto found =
          i + 1 < ids.size() ? merges_.find(pair_key(ids[i], ids[i + 1])) : merges_.end();
      const bool hit = found != merges_.end() && found->second == best;
      merged.push_back(hit ? best : ids[i]);
      if (hit) ++i;
    }
    ids = std::move(merged);
  }
  out.insert(out.end(), ids.begin(), ids.end());
}

std::string_view Tokenizer::bytes(std::int32_t token) const {
  if (token < 0 || static_cast<std::size_t>(token) >= pieces_.size()) return {};
  return pieces_[static_cast<std::size_t>(token)];
}

std::string Utf8Stream::push(std::string_view bytes) {
  pending_ += bytes;
  std::string out;
  std::size_t at = 0;
  while (at < pending_.size()) {
    const auto lead = static_cast<unsigned char>(pending_[at]);
    const std::size_t wanted = character_bytes(lead);
    std::size_t have = wanted == 0 ? 0 : 1;
    while (have < wanted && at + have < pending_.size() &&
           continues(lead, have, static_cast<unsigned char>(pending_[at + have]))) {
      ++have;
    }
    if (have < wanted && at + have == pending_.size()) break;
    if (wanted > 0 && have == wanted) {
      out += pending_.substr(at, have);
    } else {
      out += kReplacement;
    }
    at += have == 0 ? 1 : have;
  }
  pending_.erase(0, at);
  return out;
}

std::string Utf8Stream::finish() {
  const bool cut = !pending_.empty();
  pending_.clear();
  return cut ? std::string(kReplacement) : std::string();
}

}  // namespace baton::refengine
