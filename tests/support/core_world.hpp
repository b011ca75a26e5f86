// Core world: prefill and decode nodes, the links between them, a bootstrap server's open questions
// and a virtual clock. Nothing moves by itself. Every step is checked against the invariants.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/decode_node.hpp"
#include "core/prefill_node.hpp"
#include "support/core_invariants.hpp"

namespace baton::test {

struct PrefillSite {
  core::PrefillNode node;
  PrefillWatch watch;
  std::map<RoomId, core::RoomKey> keys;  // the newest life that the application opened
};

struct DecodeSite {
  core::DecodeNode node;
  DecodeWatch watch;
  std::string session;
  // Stands for a wider decode: prefill waits for so many of its ranks. The core of this version
  // maps equal ranks only, so the world writes the number into the metadata.
  std::uint32_t metadata_required = 1;
  std::map<RoomId, core::RoomKey> keys;
  std::deque<std::string> topologies_asked;
  std::deque<RouteKey> routes_asked;
};

// A node's name is its host: node "P" listens at "P:1".
class World {
 public:
  using Link = std::pair<std::string, std::string>;  // from, to

  static Endpoint endpoint_of(const std::string& name) { return {name, 1}; }
  static std::string session_of(const std::string& name) { return name + "-engine:1"; }

  void add_prefill(const std::string& name, core::PrefillConfig config);
  // Fills in the registration.
  void add_decode(const std::string& name, core::DecodeConfig config,
                  std::uint32_t metadata_required = 1);

  // Applies one event to the node of that name.
  template <class Event>
  Result<core::RoomKey> apply(const std::string& name, Event event);

  void queue(const Link& link, Message message) { links_[link].push_back(std::move(message)); }
  // Moves one message. False: the link is empty.
  bool deliver(const Link& link);
  // Takes the first message away; the sender does not notice.
  Message take(const Link& link);
  // Until no link holds a message.
  void deliver_all();
  // Ticks every node whose deadline is due on the way.
  void advance(Duration duration);
  std::optional<Instant> next_deadline() const;

  Instant now() const { return now_; }
  std::map<std::string, PrefillSite>& prefills() { return prefills_; }
  std::map<std::string, DecodeSite>& decodes() { return decodes_; }
  std::map<Link, std::deque<Message>>& links() { return links_; }

  // What happened since the last call, one line an action: "P: status 7#1 Bootstrapping".
  std::vector<std::string> take_log() { return std::exchange(log_, {}); }
  void keep_log(bool on) { keeps_log_ = on; }
  std::uint64_t counted(core::Counter counter) const {
    const auto found = counters_.find(counter);
    return found == counters_.end() ? 0 : found->second;
  }
  // Broken invariants so far.
  const Problems& problems() const { return problems_; }

 private:
  Result<core::RoomKey> step(const std::string& name, PrefillSite& site, core::PrefillEvent event);
  Result<core::RoomKey> step(const std::string& name, DecodeSite& site, core::DecodeEvent event);
  void note(const std::string& name, const std::string& text);
  void book(const std::string& name, const core::Actions& actions);
  void report(const std::string& name, Problems problems);
  void carry_out(const std::string& name, const core::Actions& actions, Problems& problems);
  void carry_out(const std::string& name, DecodeSite& site, const core::Actions& actions,
                 Problems& problems);
  void send(const std::string& from, const core::SendMessage& message);
  void tick_due();

  Instant now_ = Instant{} + std::chrono::hours(1);
  std::map<std::string, PrefillSite> prefills_;
  std::map<std::string, DecodeSite> decodes_;
  std::map<Link, std::deque<Message>> links_;
  PageLedger ledger_;
  std::map<core::Counter, std::uint64_t> counters_;
  std::vector<std::string> log_;
  bool keeps_log_ = true;
  Problems problems_;
};

template <class Event>
Result<core::RoomKey> World::apply(const std::string& name, Event event) {
  if (const auto found = prefills_.find(name); found != prefills_.end()) {
    if constexpr (std::is_constructible_v<core::PrefillEvent, Event>) {
      return step(name, found->second, std::move(event));
    }
  } else if (const auto decode = decodes_.find(name); decode != decodes_.end()) {
    if constexpr (std::is_constructible_v<core::DecodeEvent, Event>) {
      return step(name, decode->second, std::move(event));
    }
  }
  throw std::invalid_argument("node \"" + name + "\" does not exist or has no such command");
}

}  // namespace baton::test
