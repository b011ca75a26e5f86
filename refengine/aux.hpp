// AuxPool: the row of small facts that travels beside the KV of a request, ten buffers wide.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "baton/types.hpp"

namespace baton::refengine {

constexpr std::size_t kAuxTop = 128;
constexpr std::size_t kAuxHidden = 128;

// One request's row, in the order in which its buffers are registered. [spec 4.12]
// Of the 16 values of a small buffer only the named ones are used; 16 make a transfer of 64 bytes.
struct AuxRow {
  std::array<std::int32_t, 16> output_ids{};        // [0]: the first generated token
  std::array<std::int32_t, 16> cached_tokens{};     // [0]: prompt tokens, [1]: taken from a cache
  std::array<float, 16> logprob_values{};           // [0]: log probability of that token
  std::array<std::int32_t, 16> logprob_ids{};       // [0]: its id
  std::array<float, kAuxTop> top_logprob_values{};  // the most likely tokens, best first
  std::array<std::int32_t, kAuxTop> top_logprob_ids{};
  std::array<float, 16> topk_p{};  // probabilities of the 16 most likely
  std::array<std::int64_t, 16> topk_index{};
  std::array<float, kAuxHidden> hidden_states{};  // the state that the logits came from
  std::array<std::uint64_t, 8> bootstrap_room{};  // [0]: the room; written last

  friend bool operator==(const AuxRow&, const AuxRow&) = default;
};

// Fills a row from the last prompt token's hidden state and logits. The room word stays 0.
AuxRow make_aux_row(std::span<const float> hidden, std::span<const float> logits,
                    std::int32_t first_token, std::int32_t prompt_tokens);

// The row's bytes in buffer order, the room word as 0: it differs between any two requests.
std::string aux_bytes(AuxRow row);

// What the room word of a row says about the transfer. Zero: the row has not arrived yet. Any other
// room's number: the row was overwritten or misdirected, and must not be used.
enum class RoomWord : std::uint8_t { not_yet, arrived, corrupt };

// A view: the caller owns the memory (aligned to 8) and keeps it mapped for the life of the pool.
class AuxPool {
 public:
  static std::size_t total_bytes(std::size_t rows_count);
  AuxPool(std::size_t rows_count, std::span<std::byte> memory);

  std::vector<KvBuffer> buffers() const;

  void write(std::uint32_t index, const AuxRow& row);
  AuxRow read(std::uint32_t index) const;
  // Zeroes the row. Must come before its next use, or an old room word would look like an arrival.
  void clear(std::uint32_t index);
  // Reads the word that a peer may be writing at this moment.
  std::uint64_t room_word(std::uint32_t index) const;
  RoomWord check(std::uint32_t index, RoomId room) const;

 private:
  std::byte* item(std::size_t buffer, std::uint32_t index) const;

  std::size_t rows_count_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace baton::refengine
