// Tamper: seeded damage to a batch in transit, for negative controls of byte checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "baton/engine.hpp"

namespace baton::engine {

// What an evil network does. Each must be caught by whoever checks bytes.
enum class TamperMode : std::uint8_t {
  none,
  flip_bit,          // one bit of one run
  swap_targets,      // two equally long runs of one batch change places
  drop_run,          // one run is never written
  early_completion,  // `ok` before the last run is written; it lands later
};

// A damaged copy of a batch. Owns what the damage needs, so source memory stays as it is; must live
// until the writes have ended.
struct TamperedBatch {
  std::vector<WriteRun> runs;
  std::vector<WriteRun> late_runs;  // early_completion: to be written afterwards
  std::vector<std::byte> scratch;   // the changed or kept bytes
};

// Empty if the batch offers nothing to damage (no bytes, no two equal lengths with different
// sources and targets).
std::optional<TamperedBatch> tamper(TamperMode mode, WriteBatch batch, std::mt19937_64& random);

}  // namespace baton::engine
