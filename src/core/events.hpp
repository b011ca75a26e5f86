// Events: everything that can happen to a node. A node's behaviour depends on nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "baton/engine.hpp"
#include "baton/types.hpp"
#include "core/messages.hpp"

namespace baton::core {

// The identity of a room: its number, and which use of that number. Whatever can arrive late
// (completions, timers, calls on an old handle) carries the life.
struct RoomKey {
  RoomId room;
  Life life;

  friend auto operator<=>(const RoomKey&, const RoomKey&) = default;
};

// --- from the application -----------------------------------------------------------------------

struct OpenSender {
  RoomId room;
};

// How many pages will be sent in all, and the local aux row.
struct InitSender {
  RoomKey key;
  std::uint32_t pages_count = 0;
  std::uint32_t aux_index = 0;
};

struct SendChunk {
  RoomKey key;
  std::vector<PageIndex> pages;
  // One entry per state component; nullopt: nothing for that component.
  std::vector<std::optional<std::vector<std::int32_t>>> state;
  std::optional<bool> last;  // the caller's claim, checked if given
};

struct OpenReceiver {
  RoomId room;
  std::string bootstrap_address;
  std::optional<std::uint32_t> dp_rank;
};

struct Publish {
  RoomKey key;
  std::vector<PageIndex> pages;
  std::uint32_t aux_index = 0;
  std::vector<std::vector<std::int32_t>> state;
  std::uint64_t prefix_tokens = 0;
};

struct AbortRoom {
  RoomKey key;
};

struct ClearRoom {
  RoomKey key;
};

// poll() saw a terminal status for the first time: stamps the latency, as the reference does at
// the *poll* that sees Success. [spec 2.7]
struct Observe {
  RoomKey key;
};

// --- from the wire ------------------------------------------------------------------------------

struct MessageReceived {
  Message message;
};

// The hub gave up on a message; it was not delivered.
struct SendFailed {
  Endpoint to;
  Message message;
  std::string reason;
};

// The control connection to a prefill rank broke: its process is gone, or the network is.
struct PeerDisconnected {
  Endpoint peer;
};

// --- from the data plane ------------------------------------------------------------------------

struct WriteDone {
  Ticket ticket;
  Outcome outcome = Outcome::ok;
  std::string reason;           // why, unless ok
  bool session_broken = false;  // the session itself is suspect, not just this write
  std::uint64_t bytes = 0;      // moved by this ticket, if ok
};

// --- from the bootstrap server ------------------------------------------------------------------

struct TopologyReply {
  std::string bootstrap_address;
  Result<PrefillInfo> info;
};

struct RouteReply {
  RouteKey route;
  Result<Endpoint> endpoint;
};

// --- from the clock -----------------------------------------------------------------------------

// Nothing happened but time; due deadlines fire.
struct Tick {};

using PrefillEvent = std::variant<OpenSender, InitSender, SendChunk, AbortRoom, ClearRoom, Observe,
                                  MessageReceived, SendFailed, WriteDone, Tick>;
using DecodeEvent = std::variant<OpenReceiver, Publish, AbortRoom, ClearRoom, Observe,
                                 MessageReceived, SendFailed, PeerDisconnected, TopologyReply,
                                 RouteReply, Tick>;

}  // namespace baton::core
