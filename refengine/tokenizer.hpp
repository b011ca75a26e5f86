// Tokenizer: byte-level BPE, and a decoder that streams whole UTF-8 characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "baton/result.hpp"

namespace baton::refengine {

// Ids 0..255 are bytes, 256 <bos>, 257 <eos>; merge k (line k of merges.txt) makes id 258 + k.
class Tokenizer {
 public:
  static constexpr std::int32_t kBos = 256;
  static constexpr std::int32_t kEos = 257;

  static Result<Tokenizer> load(const std::string& merges_path);

  // <bos> and then the tokens of the text. Any bytes are accepted.
  std::vector<std::int32_t> encode(std::string_view text) const;
  // The bytes of one token; empty for <bos>, <eos> and ids that do not exist.
  std::string_view bytes(std::int32_t token) const;
  std::size_t vocabulary_size() const { return pieces_.size(); }

 private:
  Result<void> add_merge(std::string_view line);
  void encode_word(std::string_view word, std::vector<std::int32_t>& out) const;

  std::vector<std::string> pieces_;                         // bytes by id
  std::unordered_map<std::uint64_t, std::int32_t> merges_;  // (left, right) -> id; lower wins
};

// Turns a stream of bytes into a stream of whole characters: a character whose last bytes have not
// come yet is held back, and bytes that cannot be UTF-8 become U+FFFD.
class Utf8Stream {
 public:
  std::string push(std::string_view bytes);
  // What is left when the stream ends; U+FFFD if it ends inside a character.
  std::string finish();

 private:
  std::string pending_;
};

}  // namespace baton::refengine
