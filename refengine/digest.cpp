// FNV-1a and XXH3 digests.
#include "refengine/digest.hpp"

#include <algorithm>
#include <bit>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace baton::refengine {

void LogitsDigest::add(std::span<const float> logits) {
  for (const float logit : logits) {
    // Byte by byte from the lowest, so that the digest does not depend on the machine's byte order.
    const auto bits = std::bit_cast<std::uint32_t>(logit);
    for (unsigned shift = 0; shift < 32; shift += 8) {
      state_ = (state_ ^ (bits >> shift & 0xffU)) * 0x100000001b3U;
    }
  }
}

std::uint64_t logits_digest(std::span<const float> logits) {
  LogitsDigest digest;
  digest.add(logits);
  return digest.value();
}

std::uint64_t bytes_digest(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::vector<std::uint64_t> kv_digests(const KvPool& pool, std::span<const PageIndex> pages,
                                      std::size_t tokens_count) {
  const PoolShape& shape = pool.shape();
  std::vector<std::uint16_t> values(tokens_count * shape.token_values());
  std::vector<std::uint64_t> digests;
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    for (const KvPart part : {KvPart::k, KvPart::v}) {
      for (std::size_t token = 0; token < tokens_count; ++token) {
        const auto to = static_cast<std::ptrdiff_t>(token * shape.token_values());
        std::copy_n(pool.token(layer, part, pages, token), shape.token_values(),
                    values.begin() + to);
      }
      digests.push_back(XXH3_64bits(values.data(), values.size() * sizeof(std::uint16_t)));
    }
  }
  return digests;
}

std::string hex(std::uint64_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) {
    text += kDigits[static_cast<std::size_t>(value >> static_cast<unsigned>(shift) & 0xfU)];
  }
  return text;
}

}  // namespace baton::refengine
