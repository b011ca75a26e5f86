// The aux row: filling it, its place in memory, and the check of its room word.
#include "refengine/aux.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "refengine/check.hpp"
#include "refengine/math.hpp"
#include "refengine/sampler.hpp"

namespace baton::refengine {

namespace {

// Bytes of one row in each buffer, in the order of AuxRow.
constexpr std::array<std::size_t, 10> kItemBytes = {
    sizeof AuxRow::output_ids,    sizeof AuxRow::cached_tokens,      sizeof AuxRow::logprob_values,
    sizeof AuxRow::logprob_ids,   sizeof AuxRow::top_logprob_values, sizeof AuxRow::top_logprob_ids,
    sizeof AuxRow::topk_p,        sizeof AuxRow::topk_index,         sizeof AuxRow::hidden_states,
    sizeof AuxRow::bootstrap_room};
constexpr std::size_t kRoomBuffer = kItemBytes.size() - 1;

constexpr std::size_t row_bytes() {
  std::size_t total = 0;
  for (const std::size_t bytes : kItemBytes) total += bytes;
  return total;
}
// Without padding, the struct's bytes are its buffers' bytes one after the other.
static_assert(row_bytes() == sizeof(AuxRow));

}  // namespace

AuxRow make_aux_row(std::span<const float> hidden, std::span<const float> logits,
                    std::int32_t first_token, std::int32_t prompt_tokens) {
  AuxRow row;
  row.output_ids[0] = first_token;
  row.cached_tokens[0] = prompt_tokens;
  const float normaliser = log_sum_exp(logits);
  row.logprob_values[0] = logits[static_cast<std::size_t>(first_token)] - normaliser;
  row.logprob_ids[0] = first_token;
  const std::vector<Candidate> top = top_candidates(logits, kAuxTop);
  for (std::size_t i = 0; i < top.size(); ++i) {
    row.top_logprob_values[i] = top[i].value - normaliser;
    row.top_logprob_ids[i] = top[i].token;
  }
  for (std::size_t i = 0; i < std::min(top.size(), row.topk_p.size()); ++i) {
    row.topk_p[i] = exponential(row.top_logprob_values[i]);
    row.topk_index[i] = top[i].token;
  }
  const std::size_t kept = std::min(hidden.size(), kAuxHidden);
  std::copy_n(hidden.begin(), kept, row.hidden_states.begin());
  return row;
}

std::string aux_bytes(AuxRow row) {
  row.bootstrap_room[0] = 0;
  std::string bytes(sizeof row, '\0');
  std::memcpy(bytes.data(), &row, bytes.size());
  return bytes;
}

std::size_t AuxPool::total_bytes(std::size_t rows_count) { return rows_count * sizeof(AuxRow); }

AuxPool::AuxPool(std::size_t rows_count, std::span<std::byte> memory)
    : rows_count_(rows_count), data_(memory.data()) {
  REFENGINE_CHECK(memory.size() >= total_bytes(rows_count));
  REFENGINE_CHECK(reinterpret_cast<std::uintptr_t>(data_) % alignof(std::uint64_t) == 0);
}

std::byte* AuxPool::item(std::size_t buffer, std::uint32_t index) const {
  REFENGINE_CHECK(index < rows_count_);
  std::size_t before = 0;
  for (std::size_t i = 0; i < buffer; ++i) before += kItemBytes[i];
  return data_ + before * rows_count_ + index * kItemBytes[buffer];
}

std::vector<KvBuffer> AuxPool::buffers() const {
  std::vector<KvBuffer> result;
  for (std::size_t i = 0; i < kItemBytes.size(); ++i) {
    result.push_back(
        {reinterpret_cast<std::uintptr_t>(item(i, 0)), kItemBytes[i] * rows_count_, kItemBytes[i]});
  }
  return result;
}

void AuxPool::write(std::uint32_t index, const AuxRow& row) {
  const auto* from = reinterpret_cast<const std::byte*>(&row);
  for (std::size_t i = 0; i < kItemBytes.size(); ++i) {
    std::memcpy(item(i, index), from, kItemBytes[i]);
    from += kItemBytes[i];
  }
}

AuxRow AuxPool::read(std::uint32_t index) const {
  AuxRow row;
  auto* to = reinterpret_cast<std::byte*>(&row);
  for (std::size_t i = 0; i < kItemBytes.size(); ++i) {
    std::memcpy(to, item(i, index), kItemBytes[i]);
    to += kItemBytes[i];
  }
  return row;
}

void AuxPool::clear(std::uint32_t index) { write(index, AuxRow{}); }

std::uint64_t AuxPool::room_word(std::uint32_t index) const {
  auto* word = reinterpret_cast<std::uint64_t*>(item(kRoomBuffer, index));
  return std::atomic_ref<std::uint64_t>(*word).load(std::memory_order_acquire);
}

RoomWord AuxPool::check(std::uint32_t index, RoomId room) const {
  const std::uint64_t word = room_word(index);
  if (word == 0) return RoomWord::not_yet;
  return word == room.value ? RoomWord::arrived : RoomWord::corrupt;
}

}  // namespace baton::refengine
