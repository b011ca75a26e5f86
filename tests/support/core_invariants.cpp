// Each broken invariant becomes one sentence; an empty list means that all hold.
#include "support/core_invariants.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/assert.hpp"
#include "support/core_printer.hpp"

namespace baton::test {

using namespace core;

namespace {

// Which room an action speaks about, if it needs that room to be alive.
std::optional<RoomKey> subject(const Action& action) {
  if (const auto* write = std::get_if<SubmitWrite>(&action)) return write->key;
  if (const auto* change = std::get_if<StatusChanged>(&action)) return change->key;
  if (const auto* change = std::get_if<QuietChanged>(&action)) return change->key;
  if (const auto* closed = std::get_if<RoomClosed>(&action)) return closed->key;
  if (const auto* known = std::get_if<PrefixKnown>(&action)) return known->key;
  return std::nullopt;
}

bool has_deadline(PrefillRoom::Phase phase) {
  return phase == PrefillRoom::Phase::announced || phase == PrefillRoom::Phase::awaiting_metadata;
}

bool has_deadline(DecodeRoom::Phase phase) {
  return phase == DecodeRoom::Phase::resolving || phase == DecodeRoom::Phase::published ||
         phase == DecodeRoom::Phase::holding || phase == DecodeRoom::Phase::quarantined;
}

bool holds_pages(DecodeRoom::Phase phase) {
  return phase == DecodeRoom::Phase::published || phase == DecodeRoom::Phase::holding ||
         phase == DecodeRoom::Phase::quarantined;
}

// May, must or must not a room in this phase have open tickets?
bool tickets_fit(PrefillRoom::Phase phase, std::size_t open) {
  switch (phase) {
    case PrefillRoom::Phase::sending: return true;
    case PrefillRoom::Phase::draining:
    case PrefillRoom::Phase::failed_draining:
    case PrefillRoom::Phase::closed_draining: return open > 0;
    case PrefillRoom::Phase::announced:
    case PrefillRoom::Phase::awaiting_metadata:
    case PrefillRoom::Phase::ready:
    case PrefillRoom::Phase::concluded_success:
    case PrefillRoom::Phase::concluded_failed: return open == 0;
  }
  BATON_UNREACHABLE();
}

template <class Phase>
void check_deadline(RoomKey key, Phase phase, const std::optional<Instant>& deadline,
                    std::optional<Instant>& earliest, Problems& problems) {
  if (deadline.has_value() != has_deadline(phase)) {
    problems.push_back(print_key(key) + ": wrong deadline in phase " +
                       std::string(to_string(phase)));
  }
  if (deadline) earliest = std::min(*deadline, earliest.value_or(*deadline));
}

// Decode may reuse its pages, or is told that it will, only when nothing can land any more. [I18]
void check_drained(const PrefillNode& node, const SendMessage& send, Problems& problems) {
  const auto* ack = std::get_if<AbortAck>(&send.message);
  const auto* status = std::get_if<Status>(&send.message);
  if (ack == nullptr && status == nullptr) return;
  const RoomId room = ack != nullptr ? ack->room : status->room;
  for (const auto& [ticket, open] : node.shared().tickets) {
    if (open.key.room != room) continue;
    if (ack == nullptr && open.peer != send.to) continue;
    problems.push_back("ticket " + std::to_string(ticket.value) + " is open, yet it says " +
                       print_message(send.message));
  }
}

}  // namespace

// --- what was said ------------------------------------------------------------------------------

RoomWatch::Said* RoomWatch::find_live(RoomKey key, const std::string& text, Problems& problems) {
  Said& said = live_[key];
  if (!gone_.contains(key) && !said.closed) return &said;
  problems.push_back("about a closed life: " + text);
  return nullptr;
}

void RoomWatch::listen(const Actions& actions, Problems& problems) {
  for (const Action& action : actions) {
    const std::optional<RoomKey> key = subject(action);
    if (!key) continue;
    const std::string text = print_action(action);
    Said* said = find_live(*key, text, problems);
    if (said == nullptr) continue;
    if (const auto* change = std::get_if<StatusChanged>(&action)) {
      if (said->status && is_terminal(*said->status)) problems.push_back("after the end: " + text);
      if (said->status == change->status) problems.push_back("said before: " + text);
      if ((change->status == KvPoll::failed) != change->failure.has_value()) {
        problems.push_back("a failure belongs to Failed, and only to it: " + text);
      }
      said->status = change->status;
    } else if (const auto* quiet = std::get_if<QuietChanged>(&action)) {
      if (said->quiet == quiet->quiet) problems.push_back("said before: " + text);
      said->quiet = quiet->quiet;
    } else if (std::holds_alternative<SubmitWrite>(action)) {
      if (said->quiet) problems.push_back("writes while quiet: " + text);
      if (said->status != KvPoll::transferring) problems.push_back("may not write: " + text);
    } else if (std::holds_alternative<RoomClosed>(action)) {
      if (!said->quiet) problems.push_back("not quiet: " + text);
      if (!said->status || !is_terminal(*said->status)) problems.push_back("not over: " + text);
      said->closed = true;
    }
  }
}

void RoomWatch::compare(RoomKey key, KvPoll status, bool quiet, Problems& problems) {
  const Said& said = live_[key];
  if (said.status && *said.status != status) {
    problems.push_back(print_key(key) + " is " + std::string(to_string(status)) + ", but said " +
                       std::string(to_string(*said.status)));
  }
  if (said.quiet != quiet) {
    problems.push_back(print_key(key) + " is " + (quiet ? "quiet" : "not quiet") +
                       ", but said otherwise");
  }
}

void RoomWatch::forget_missing(const std::set<RoomKey>& tracked, Problems& problems) {
  for (auto it = live_.begin(); it != live_.end();) {
    if (tracked.contains(it->first)) {
      ++it;
      continue;
    }
    const bool was_opened = it->second.status && *it->second.status != KvPoll::failed;
    if (was_opened && !it->second.closed) {
      problems.push_back(print_key(it->first) + " vanished without a word");
    }
    gone_.insert(it->first);
    it = live_.erase(it);
  }
}

// --- prefill ------------------------------------------------------------------------------------

void PrefillWatch::check(const PrefillNode& node, const Actions& actions, Problems& problems) {
  rooms_.listen(actions, problems);
  for (const Action& action : actions) {
    if (const auto* send = std::get_if<SendMessage>(&action)) check_drained(node, *send, problems);
    if (const auto* write = std::get_if<SubmitWrite>(&action)) {
      if (write->ticket <= last_ticket_) problems.push_back("old ticket: " + print_action(action));
      last_ticket_ = write->ticket;
    }
  }
  std::map<RoomKey, std::size_t> open;
  for (const auto& [ticket, owner] : node.shared().tickets) {
    ++open[owner.key];
    if (node.find(owner.key) == nullptr) {
      problems.push_back("ticket " + std::to_string(ticket.value) + " of a room that is gone");
    }
  }
  std::optional<Instant> earliest;
  std::set<RoomKey> tracked;
  for (const auto& [id, room] : node.rooms()) {
    tracked.insert(room.key());
    if (id != room.key().room) problems.push_back("filed under a wrong number");
    rooms_.compare(room.key(), room.status(), open[room.key()] == 0, problems);
    check_deadline(room.key(), room.phase(), room.deadline(node.shared()), earliest, problems);
    if (!tickets_fit(room.phase(), open[room.key()])) {
      problems.push_back(print_key(room.key()) + ": " + std::to_string(open[room.key()]) +
                         " open tickets in phase " + std::string(to_string(room.phase())));
    }
    if (room.is_finished()) problems.push_back(print_key(room.key()) + " is finished, yet tracked");
  }
  if (node.next_deadline() != earliest) problems.push_back("wrong next_deadline");
  rooms_.forget_missing(tracked, problems);
}

// --- decode -------------------------------------------------------------------------------------

void DecodeWatch::check(const DecodeNode& node, const Actions& actions, Problems& problems) {
  rooms_.listen(actions, problems);
  for (const Action& action : actions) {
    const auto* send = std::get_if<SendMessage>(&action);
    const auto* abort = send == nullptr ? nullptr : std::get_if<Abort>(&send->message);
    if (abort == nullptr || !abort->generation) continue;
    if (*abort->generation < last_generation_) problems.push_back("generation runs backwards");
    last_generation_ = *abort->generation;
  }
  std::optional<Instant> earliest;
  std::set<RoomKey> tracked;
  for (const auto& [id, room] : node.rooms()) {
    tracked.insert(room.key());
    if (id != room.key().room) problems.push_back("filed under a wrong number");
    rooms_.compare(room.key(), room.status(), !holds_pages(room.phase()), problems);
    check_deadline(room.key(), room.phase(), room.deadline(config_), earliest, problems);
    if (room.is_finished()) problems.push_back(print_key(room.key()) + " is finished, yet tracked");
  }
  // The directory's retries are deadlines too: the node may be due earlier than its rooms.
  if (earliest && (!node.next_deadline() || *node.next_deadline() > *earliest)) {
    problems.push_back("next_deadline is too late");
  }
  rooms_.forget_missing(tracked, problems);
}

// --- pages --------------------------------------------------------------------------------------

std::vector<PageLedger::Cell> PageLedger::cells_of(const SubmitWrite& write) {
  const std::string& session = write.target->session_id;
  std::vector<Cell> cells;
  for (const PageIndex page : write.target_pages) cells.push_back({session, false, page});
  if (write.part == WritePart::aux) cells.push_back({session, true, write.target_aux});
  return cells;
}

void PageLedger::on_init(const std::string& prefill, const InitSender& init) {
  announced_[{prefill, init.key}] = init.pages_count;
}

void PageLedger::on_publish(const std::string& session, const Publish& publish) {
  std::vector<Cell>& mine = published_[{session, publish.key}];
  mine.push_back({session, true, publish.aux_index});
  for (const PageIndex page : publish.pages) mine.push_back({session, false, page});
  for (const Cell& cell : mine) cells_[cell] = State{};
}

void PageLedger::on_submit(const std::string& prefill, const SubmitWrite& write,
                           Problems& problems) {
  std::vector<Cell> cells = cells_of(write);
  for (const Cell& cell : cells) {
    State& state = cells_[cell];
    state.announced_pages = announced_[{prefill, write.key}];
    if (state.released) {
      problems.push_back("into released page " + std::to_string(cell.index) + ": " +
                         print_action(write));
    }
  }
  writes_[{prefill, write.ticket}] = std::move(cells);
}

void PageLedger::on_write_done(const std::string& prefill, Ticket ticket, Outcome outcome) {
  const auto found = writes_.find({prefill, ticket});
  if (found == writes_.end() || outcome == Outcome::unsettled) return;
  if (outcome == Outcome::ok) {
    for (const Cell& cell : found->second) cells_[cell].landed = true;
  }
  writes_.erase(found);
}

void PageLedger::on_success(const std::string& session, RoomKey key, Problems& problems) const {
  if (released_by_timeout_.contains({session, key.room})) return;
  const auto mine = published_.find({session, key});
  if (mine == published_.end()) {
    problems.push_back(print_key(key) + " succeeded without publishing");
    return;
  }
  const std::uint32_t announced = cells_.at(mine->second.front()).announced_pages;
  for (std::size_t index = 0; index < mine->second.size() && index <= announced; ++index) {
    const Cell& cell = mine->second[index];
    if (cells_.at(cell).landed) continue;
    problems.push_back(print_key(key) + " succeeded, but " + (cell.is_aux ? "aux " : "page ") +
                       std::to_string(cell.index) + " never landed");
  }
}

void PageLedger::on_quiet(const std::string& session, RoomKey key, bool proven,
                          Problems& problems) {
  const auto mine = published_.find({session, key});
  if (mine == published_.end()) return;
  if (!proven) released_by_timeout_.insert({session, key.room});
  const std::set<Cell> released(mine->second.begin(), mine->second.end());
  for (const auto& [writer, cells] : writes_) {
    const bool hits = std::any_of(cells.begin(), cells.end(),
                                  [&](const Cell& cell) { return released.contains(cell); });
    if (hits && proven) {
      problems.push_back(print_key(key) + " is called quiet, but ticket " +
                         std::to_string(writer.second.value) + " still writes into its pages");
    }
  }
  for (const Cell& cell : released) cells_[cell].released = proven;
  published_.erase(mine);
}

}  // namespace baton::test
