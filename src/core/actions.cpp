// Names of the counters.
#include "core/actions.hpp"

#include "base/assert.hpp"

namespace baton::core {

std::string_view to_string(Counter counter) {
  switch (counter) {
    case Counter::rooms_opened: return "rooms_opened";
    case Counter::rooms_succeeded: return "rooms_succeeded";
    case Counter::rooms_failed: return "rooms_failed";
    case Counter::rooms_aborted: return "rooms_aborted";
    case Counter::drop_unknown_room: return "drop_unknown_room";
    case Counter::drop_duplicate: return "drop_duplicate";
    case Counter::drop_wrong_side: return "drop_wrong_side";
    case Counter::drop_not_terminal: return "drop_not_terminal";
    case Counter::drop_stale_generation: return "drop_stale_generation";
    case Counter::drop_unknown_ticket: return "drop_unknown_ticket";
    case Counter::drop_limit: return "drop_limit";
    case Counter::drop_unexpected_reply: return "drop_unexpected_reply";
    case Counter::metadata_unregistered: return "metadata_unregistered";
    case Counter::metadata_late: return "metadata_late";
    case Counter::released_by_timeout: return "released_by_timeout";
    case Counter::sends_failed: return "sends_failed";
    case Counter::count: break;
  }
  BATON_UNREACHABLE();
}

Counter counter_of(const Failure& failure) {
  const bool aborted = failure.code == FailureCode::aborted_here ||
                       failure.code == FailureCode::aborted_by_peer;
  return aborted ? Counter::rooms_aborted : Counter::rooms_failed;
}

}  // namespace baton::core
