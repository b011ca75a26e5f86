// Names of the public enumerations.
#include "baton/types.hpp"

#include <array>

#include "base/assert.hpp"
#include "baton/engine.hpp"

namespace baton {

std::string_view to_string(KvPoll status) {
  switch (status) {
    case KvPoll::failed: return "Failed";
    case KvPoll::bootstrapping: return "Bootstrapping";
    case KvPoll::waiting_for_input: return "WaitingForInput";
    case KvPoll::transferring: return "Transferring";
    case KvPoll::success: return "Success";
  }
  BATON_UNREACHABLE();
}

std::string_view to_string(FailureCode code) {
  switch (code) {
    case FailureCode::aborted_here: return "aborted_here";
    case FailureCode::aborted_by_peer: return "aborted_by_peer";
    case FailureCode::bootstrap_timeout: return "bootstrap_timeout";
    case FailureCode::waiting_timeout: return "waiting_timeout";
    case FailureCode::peer_lost: return "peer_lost";
    case FailureCode::write_failed: return "write_failed";
    case FailureCode::reported_by_peer: return "reported_by_peer";
    case FailureCode::unresolved: return "unresolved";
    case FailureCode::incompatible: return "incompatible";
    case FailureCode::send_failed: return "send_failed";
    case FailureCode::bad_metadata: return "bad_metadata";
    case FailureCode::unknown: return "unknown";
  }
  BATON_UNREACHABLE();
}

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok: return "ok";
    case Outcome::failed: return "failed";
    case Outcome::unsettled: return "unsettled";
    case Outcome::settled: return "settled";
  }
  BATON_UNREACHABLE();
}

namespace {
constexpr std::array<std::string_view, 12> kStateKindNames = {
    "mamba",           "qsa_pending",      "qsa_compressed", "swa",
    "dsa",             "dsa_tail",         "minimax_index_k", "minimax_dense_kv",
    "swa_ring",        "c128_state",       "block_scale",    "block_scale_swa"};
}  // namespace

std::string_view to_string(StateKind kind) {
  return kStateKindNames.at(static_cast<std::size_t>(kind));
}

std::optional<StateKind> parse_state_kind(std::string_view text) {
  for (std::size_t index = 0; index < kStateKindNames.size(); ++index) {
    if (kStateKindNames[index] == text) return static_cast<StateKind>(index);
  }
  return std::nullopt;
}

}  // namespace baton
