// Choosing the run to damage, and damaging it.
#include "engine/tamper.hpp"

#include <cstring>
#include <utility>

namespace baton::engine {
namespace {

std::uint64_t below(std::mt19937_64& random, std::uint64_t limit) { return random() % limit; }

// The index of a run that has bytes; empty if none has.
std::optional<std::size_t> pick_run(WriteBatch batch, std::mt19937_64& random) {
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].length_bytes > 0) candidates.push_back(i);
  }
  if (candidates.empty()) return std::nullopt;
  return candidates[below(random, candidates.size())];
}

std::optional<std::pair<std::size_t, std::size_t>> pick_pair(WriteBatch batch,
                                                             std::mt19937_64& random) {
  if (batch.size() < 2) return std::nullopt;
  const std::size_t start = below(random, batch.size());
  for (std::size_t step = 0; step < batch.size(); ++step) {
    const std::size_t first = (start + step) % batch.size();
    for (std::size_t second = 0; second < batch.size(); ++second) {
      const WriteRun& a = batch[first];
      const WriteRun& b = batch[second];
      const bool differs = a.source != b.source && a.target != b.target;
      if (differs && a.length_bytes == b.length_bytes && a.length_bytes > 0) {
        return std::pair{first, second};
      }
    }
  }
  return std::nullopt;
}

// Keeps a copy of the run's bytes and points the run at it.
void copy_to_scratch(WriteRun& run, std::vector<std::byte>& scratch) {
  scratch.resize(run.length_bytes);
  std::memcpy(scratch.data(), reinterpret_cast<const void*>(run.source), run.length_bytes);
  run.source = reinterpret_cast<std::uint64_t>(scratch.data());
}

}  // namespace

std::optional<TamperedBatch> tamper(TamperMode mode, WriteBatch batch, std::mt19937_64& random) {
  TamperedBatch result;
  result.runs.assign(batch.begin(), batch.end());
  if (mode == TamperMode::none) return std::nullopt;
  if (mode == TamperMode::swap_targets) {
    const auto pair = pick_pair(batch, random);
    if (!pair) return std::nullopt;
    std::swap(result.runs[pair->first].target, result.runs[pair->second].target);
    return result;
  }
  const std::optional<std::size_t> index = pick_run(batch, random);
  if (!index) return std::nullopt;
  const auto chosen = result.runs.begin() + static_cast<std::ptrdiff_t>(*index);
  if (mode == TamperMode::flip_bit) {
    copy_to_scratch(*chosen, result.scratch);
    const std::uint64_t bit = below(random, result.scratch.size() * 8);
    result.scratch[bit / 8] ^= std::byte{1} << (bit % 8);
    return result;
  }
  if (mode == TamperMode::early_completion) {
    // After the completion the source may be reused, so the late run brings its own bytes.
    result.late_runs.push_back(*chosen);
    copy_to_scratch(result.late_runs.back(), result.scratch);
  }
  result.runs.erase(chosen);
  return result;
}

}  // namespace baton::engine
