// Digests: short names for many bytes, so that two processes can compare what they computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "baton/types.hpp"
#include "refengine/pools.hpp"

namespace baton::refengine {

// FNV-1a-64 over the bits of floats; feed it step by step.
class LogitsDigest {
 public:
  void add(std::span<const float> logits);
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325U;
};

std::uint64_t logits_digest(std::span<const float> logits);

std::uint64_t bytes_digest(std::string_view bytes);

// One digest (XXH3-64) per layer and K|V, over the first `tokens_count` tokens in logical order:
// where the pages lie and how large they are does not matter. Order: K of layer 0, V of layer 0,
// ...
std::vector<std::uint64_t> kv_digests(const KvPool& pool, std::span<const PageIndex> pages,
                                      std::size_t tokens_count);

// 16 lower-case hexadecimal digits.
std::string hex(std::uint64_t value);

}  // namespace baton::refengine
