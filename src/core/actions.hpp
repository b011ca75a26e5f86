// Actions: everything a node can ask for. The order of the list is part of the contract.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/events.hpp"
#include "core/messages.hpp"

namespace baton::core {

// Messages to one endpoint must leave in this order.
struct SendMessage {
  Endpoint to;
  Message message;
};

// Which part of a chunk a ticket carries; decides the failure text.
enum class WritePart : std::uint8_t { kv, state, aux };

// One state component's slots, here and there.
struct StateSlots {
  std::uint32_t component = 0;
  std::vector<std::int32_t> source;
  std::vector<std::int32_t> target;

  friend bool operator==(const StateSlots&, const StateSlots&) = default;
};

// The *what* of one write; plan/ turns it into addresses. Exactly one WriteDone must follow, or
// `unsettled` and later `settled`.
struct SubmitWrite {
  Ticket ticket;
  RoomKey key;
  WritePart part = WritePart::kv;
  std::shared_ptr<const Registration> target;
  std::vector<PageIndex> source_pages;  // kv
  std::vector<PageIndex> target_pages;
  std::vector<StateSlots> state;        // state
  std::uint32_t source_aux = 0;         // aux
  std::uint32_t target_aux = 0;
};

// poll() of this room answers `status` from now on; `failure` is set with Failed.
struct StatusChanged {
  RoomKey key;
  KvPoll status = KvPoll::bootstrapping;
  std::optional<Failure> failure;
};

// quiesced() of this room answers `quiet` from now on.
struct QuietChanged {
  RoomKey key;
  bool quiet = true;
};

// The room object is gone; its number may be opened again.
struct RoomClosed {
  RoomKey key;
};

// Decode's metadata is complete: prefix_tokens() is known.
struct PrefixKnown {
  RoomKey key;
  std::uint64_t prefix_tokens = 0;
};

struct RequestTopology {
  std::string bootstrap_address;
};

struct RequestRoute {
  RouteKey route;
};

// What the node counts. Dropped messages are counted by reason.
enum class Counter : std::uint8_t {
  rooms_opened,
  rooms_succeeded,
  rooms_failed,
  rooms_aborted,
  drop_unknown_room,        // a status or ack for a room that is not tracked
  drop_duplicate,           // said before, or said after the end
  drop_wrong_side,          // a message that this side never receives
  drop_not_terminal,        // a status that is neither Success nor Failed
  drop_stale_generation,    // an ack of an earlier abort, or without generation
  drop_unknown_ticket,      // a completion nobody waits for
  drop_limit,               // a named limit was reached
  drop_unexpected_reply,    // a bootstrap answer nobody asked for
  metadata_unregistered,    // metadata of a session that never registered
  metadata_late,            // metadata for a room that has ended
  released_by_timeout,      // pages given back without proof
  sends_failed,
  count,                    // not a counter: how many there are
};

std::string_view to_string(Counter counter);

// Aborts are counted apart from failures: one is the user's wish, the other is trouble.
Counter counter_of(const Failure& failure);

struct Count {
  Counter counter = Counter::rooms_opened;
};

using Action = std::variant<SendMessage, SubmitWrite, StatusChanged, QuietChanged, RoomClosed,
                            PrefixKnown, RequestTopology, RequestRoute, Count>;
using Actions = std::vector<Action>;

}  // namespace baton::core
