// Core invariants: what must hold after every single step of a node, whatever happened before.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/decode_node.hpp"
#include "core/prefill_node.hpp"

namespace baton::test {

using Problems = std::vector<std::string>;

// What a node has said about its rooms, compared with what the rooms answer.
class RoomWatch {
 public:
  // Nothing after the end, no way back from a terminal status, no quiet said twice.
  void listen(const core::Actions& actions, Problems& problems);
  void compare(core::RoomKey key, KvPoll status, bool quiet, Problems& problems);
  // Rooms that the node forgot: those that were opened must have been closed aloud.
  void forget_missing(const std::set<core::RoomKey>& tracked, Problems& problems);

 private:
  struct Said {
    std::optional<KvPoll> status;  // nullopt: never opened
    bool quiet = true;
    bool closed = false;
  };
  Said* find_live(core::RoomKey key, const std::string& text, Problems& problems);

  std::map<core::RoomKey, Said> live_;
  std::set<core::RoomKey> gone_;
};

class PrefillWatch {
 public:
  void check(const core::PrefillNode& node, const core::Actions& actions, Problems& problems);

 private:
  RoomWatch rooms_;
  Ticket last_ticket_{0};
};

class DecodeWatch {
 public:
  explicit DecodeWatch(core::DecodeConfig config) : config_(std::move(config)) {}
  void check(const core::DecodeNode& node, const core::Actions& actions, Problems& problems);

 private:
  core::DecodeConfig config_;
  RoomWatch rooms_;
  std::uint64_t last_generation_ = 0;
};

// Who owns which destination pages, seen from outside: the point of all the state machines.
//  - When decode calls a room's pages quiet by proof, no write to them is open.
//  - No write is ever submitted to pages that decode got back by proof.
//  - When decode reports Success, the aux row and every page that prefill announced have landed.
// Pages that were given back by time-out are exempt, and so is the next use of that room number:
// the wire carries no life.
class PageLedger {
 public:
  void on_init(const std::string& prefill, const core::InitSender& init);
  void on_publish(const std::string& session, const core::Publish& publish);
  void on_submit(const std::string& prefill, const core::SubmitWrite& write, Problems& problems);
  void on_write_done(const std::string& prefill, Ticket ticket, Outcome outcome);
  void on_success(const std::string& session, core::RoomKey key, Problems& problems) const;
  void on_quiet(const std::string& session, core::RoomKey key, bool proven, Problems& problems);

 private:
  // One page or one aux row of one decode rank.
  struct Cell {
    std::string session;
    bool is_aux = false;
    std::int64_t index = 0;
    friend auto operator<=>(const Cell&, const Cell&) = default;
  };
  struct State {
    bool landed = false;
    bool released = false;              // by proof
    std::uint32_t announced_pages = 0;  // of an aux row: by the sender that wrote it
  };
  using Owner = std::pair<std::string, core::RoomKey>;

  static std::vector<Cell> cells_of(const core::SubmitWrite& write);

  std::map<Cell, State> cells_;
  std::map<Owner, std::vector<Cell>> published_;  // the aux row first, then the pages in order
  std::map<Owner, std::uint32_t> announced_;      // by init()
  std::map<std::pair<std::string, Ticket>, std::vector<Cell>> writes_;
  std::set<std::pair<std::string, RoomId>> released_by_timeout_;
};

}  // namespace baton::test
