// Report: what a run moved, how long it took, and whether it equals a run in one process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "baton/result.hpp"
#include "cli/hand_off.hpp"
#include "refengine/engine.hpp"

namespace baton::cli {

// Is every request identical, in each respect, to the same request in one process?
struct Comparison {
  bool tokens = true;
  bool logits_bits = true;
  bool kv_bytes = true;
  bool aux_bytes = true;

  bool all() const { return tokens && logits_bits && kv_bytes && aux_bytes; }
};

struct Report {
  std::size_t requests = 0;
  std::size_t prompt_tokens = 0, generated_tokens = 0;
  std::uint64_t pages = 0, chunks = 0, bytes = 0;
  double transfer_seconds = 0;  // summed over requests
  // Last byte written to decode seeing Success: the median of the requests; only if both processes
  // run on this host, because only then they have the same clock.
  std::optional<double> notice_seconds;
  std::optional<Comparison> comparison;
  std::vector<std::string> texts;  // of each request
};

// Runs every request again in this process.
Result<Comparison> compare_with_one_process(const refengine::Model& model,
                                            const std::vector<ServeRequest>& requests,
                                            const std::vector<HandOffOutcome>& outcomes);

Report make_report(const std::vector<ServeRequest>& requests,
                   const std::vector<HandOffOutcome>& outcomes, bool is_one_host);

std::string table(const Report& report);
std::string json(const Report& report);

}  // namespace baton::cli
