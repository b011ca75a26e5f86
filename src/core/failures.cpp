// The failure texts. What SGLang says in a text is kept to the letter; what we add follows it.
#include "core/failures.hpp"

#include <cstdio>

namespace baton::core::failures {

namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

// Seconds with one decimal, as the reference prints them.
std::string seconds(Duration elapsed) {
  const double value = std::chrono::duration<double>(elapsed).count();
  char text[32];
  std::snprintf(text, sizeof text, "%.1fs", value);
  return text;
}

std::string with_cause(std::string text, const std::string& cause) {
  if (!cause.empty()) text += ": " + cause;
  return text;
}

}  // namespace

Failure aborted_here() { return {FailureCode::aborted_here, "Aborted by AbortReq."}; }

Failure aborted_by_decode() {
  return {FailureCode::aborted_by_peer, "Aborted by decode-side abort notification."};
}

Failure bootstrap_timeout(RoomId room, Duration elapsed) {
  return {FailureCode::bootstrap_timeout, "Request " + number(room.value) + " timed out after " +
                                              seconds(elapsed) + " in KVPoll.Bootstrapping"};
}

Failure never_opened(RoomId room, Duration elapsed) {
  return {FailureCode::bootstrap_timeout,
          "Request " + number(room.value) + " was never opened on prefill within " +
              seconds(elapsed) + " of decode's metadata"};
}

Failure waiting_timeout(RoomId room, Duration elapsed, std::size_t reports,
                        std::uint32_t expected) {
  return {FailureCode::waiting_timeout,
          "Request " + number(room.value) + " timed out after " + seconds(elapsed) +
              " waiting for KV transfer completion: " + number(reports) + " of " +
              number(expected) + " prefill ranks reported"};
}

Failure session_dead(const std::string& session_id) {
  return {FailureCode::peer_lost,
          "Decode instance could be dead, remote mooncake session " + session_id +
              " is not alive"};
}

Failure kv_write_failed(RoomId room, const Endpoint& peer, const std::string& cause) {
  return {FailureCode::write_failed,
          with_cause("Failed to send kv chunk of " + number(room.value) + " to " + to_string(peer),
                     cause)};
}

Failure state_write_failed(RoomId room, const Endpoint& peer, const std::string& cause) {
  return {FailureCode::write_failed, with_cause("Failed to send state components of " +
                                                    number(room.value) + " to " + to_string(peer),
                                                cause)};
}

Failure aux_write_failed(RoomId room, const std::string& cause) {
  return {FailureCode::write_failed,
          with_cause("Failed to send aux data of " + number(room.value), cause)};
}

Failure pages_missing(RoomId room, const Endpoint& peer, std::size_t published, IndexSlice slice) {
  return {FailureCode::bad_metadata,
          "Decode " + to_string(peer) + " published " + number(published) + " pages for request " +
              number(room.value) + ", but prefill sends pages " + number(slice.start) + " to " +
              number(slice.stop)};
}

Failure state_missing(RoomId room, const Endpoint& peer, std::size_t component, std::size_t local,
                      std::size_t remote) {
  return {FailureCode::bad_metadata,
          "Decode " + to_string(peer) + " published " + number(remote) +
              " slots of state component " + number(component) + " for request " +
              number(room.value) + ", but prefill sends " + number(local)};
}

Failure session_unregistered(RoomId room, const std::string& session_id) {
  return {FailureCode::bad_metadata,
          "Metadata of request " + number(room.value) + " names session " + session_id +
              ", which never registered with this prefill rank"};
}

Failure no_topology(const std::string& bootstrap_address, const std::string& cause) {
  return {FailureCode::unresolved,
          with_cause("Could not fetch prefill parallel info from bootstrap_addr: " +
                         bootstrap_address,
                     cause)};
}

Failure no_route(std::uint32_t dp, std::uint32_t cp, std::uint32_t tp, std::uint32_t pp,
                 const std::string& cause) {
  return {FailureCode::unresolved,
          with_cause("Could not fetch bootstrap info for: prefill_dp_rank: " + number(dp) +
                         " prefill_cp_rank: " + number(cp) + " target_tp_rank: " + number(tp) +
                         " and target_pp_rank " + number(pp),
                     cause)};
}

Failure incompatible(const std::string& bootstrap_address, const std::string& what) {
  return {FailureCode::incompatible,
          "Prefill at " + bootstrap_address + " does not fit this decode rank: " + what};
}

Failure send_failed(std::string_view operation, const Endpoint& peer, const std::string& cause) {
  return {FailureCode::send_failed,
          with_cause(std::string(operation) + " to prefill " + to_string(peer) + " failed", cause)};
}

Failure connection_lost(const std::string& bootstrap_address) {
  return {FailureCode::peer_lost,
          "Lost connection with prefill instance (bootstrap_addr: " + bootstrap_address + ")"};
}

Failure reported_by_prefill(const std::string& reason) {
  return {FailureCode::reported_by_peer,
          reason.empty() ? "Failed to get kvcache from prefill instance, it might be dead"
                         : reason};
}

}  // namespace baton::core::failures
