// Cutting batches into pieces, and the end of every ticket.
#include "engine/tcp_tickets.hpp"

#include <algorithm>
#include <chrono>
#include <string>

#include "base/assert.hpp"

namespace baton::engine::tcp {
namespace {

// Given out at one turn, so that a huge batch leaves room for others between its pieces.
constexpr std::size_t kPiecesPerTurn = 64;
// A doomed ticket that is not quiet after this long is reported, and watched on.
constexpr auto kSettleTime = std::chrono::seconds(1);

}  // namespace

void TicketBook::add(Ticket ticket, WriteBatch batch) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  slots_[slot] = Open{};
  slots_[slot].ticket = ticket;
  slots_[slot].batch = batch;
  slots_[slot].is_used = true;
  queue_.push_back(slot);
  ++open_count_;
}

void TicketBook::skip_empty(Open& open) {
  while (open.next_run < open.batch.size() && open.batch[open.next_run].length_bytes == 0) {
    ++open.next_run;
  }
}

void TicketBook::feed(Lane& lane, Instant now, std::vector<Completion>& out) {
  bool has_fed = false;
  for (; !retries_.empty() && lane.wants_pieces(); has_fed = true) {
    lane.push(retries_.front());
    retries_.pop_front();
  }
  if (!queue_.empty() && lane.wants_pieces()) {
    const std::uint32_t slot = queue_.front();
    queue_.pop_front();
    Open& open = slots_[slot];
    skip_empty(open);
    for (std::size_t i = 0; i < kPiecesPerTurn && lane.wants_pieces(); ++i) {
      if (!feed_one(open, slot, lane, now)) break;
      has_fed = true;
    }
    const bool has_more = !open.is_doomed && open.next_run < open.batch.size();
    if (has_more) queue_.push_back(slot);
    finish_if_done(slot, out);
  }
  if (has_fed) lane.end_burst();
}

// False if there is nothing more to give.
bool TicketBook::feed_one(Open& open, std::uint32_t slot, Lane& lane, Instant now) {
  if (open.is_doomed || open.next_run == open.batch.size()) return false;
  const WriteRun& run = open.batch[open.next_run];
  AddressRange target;
  if (!make_range(run.target, run.length_bytes, target)) {
    // Its slices would wrap around to low addresses, where the server might have a region.
    mark(open,
         {Errc::invalid_argument, "the target " + std::to_string(run.target) + " of " +
                                      std::to_string(run.length_bytes) + " bytes wraps around"},
         now);
    return false;
  }
  Piece piece;
  const std::uint64_t length = std::min(run.length_bytes - open.done_bytes, slice_bytes_);
  piece.source = run.source + open.done_bytes;
  piece.target = run.target + open.done_bytes;
  piece.length_bytes = static_cast<std::uint32_t>(length);
  piece.slot = slot;
  piece.header = encode_header({length, piece.target, Opcode::write, has_status_});
  lane.push(piece);
  ++open.pieces_count;
  open.done_bytes += length;
  if (open.done_bytes == run.length_bytes) {
    open.done_bytes = 0;
    ++open.next_run;
    skip_empty(open);
  }
  return true;
}

void TicketBook::settle_piece(std::uint32_t slot, std::vector<Completion>& out) {
  BATON_ASSERT(slots_[slot].pieces_count > 0);
  --slots_[slot].pieces_count;
  finish_if_done(slot, out);
}

void TicketBook::retry(const Piece& piece, std::vector<Completion>& out) {
  if (slots_[piece.slot].is_doomed) {
    settle_piece(piece.slot, out);
  } else {
    retries_.push_back(piece);
  }
}

void TicketBook::drop_unsent(std::uint32_t slot) {
  std::erase(queue_, slot);
  const auto dropped =
      std::erase_if(retries_, [&](const Piece& piece) { return piece.slot == slot; });
  slots_[slot].pieces_count -= static_cast<std::uint32_t>(dropped);
}

void TicketBook::mark(Open& open, const Error& error, Instant now) {
  if (open.is_doomed) return;
  ++doomed_count_;
  open.is_doomed = true;
  open.error = error;
  open.doomed_at = now;
}

void TicketBook::doom(std::uint32_t slot, const Error& error, bool peer_lost, Instant now,
                      std::vector<Completion>& out) {
  Open& open = slots_[slot];
  mark(open, error, now);
  open.peer_lost = open.peer_lost || peer_lost;
  drop_unsent(slot);
  finish_if_done(slot, out);
}

void TicketBook::doom_ticket(Ticket ticket, const Error& error, Instant now,
                             std::vector<Completion>& out) {
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].is_used && slots_[slot].ticket == ticket) doom(slot, error, false, now, out);
  }
}

void TicketBook::doom_all(const Error& error, bool peer_lost, Instant now,
                          std::vector<Completion>& out) {
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].is_used) doom(slot, error, peer_lost, now, out);
  }
}

void TicketBook::settle_all(std::vector<Completion>& out) {
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (!slots_[slot].is_used) continue;
    BATON_ASSERT(slots_[slot].is_doomed);
    slots_[slot].pieces_count = 0;
    finish_if_done(slot, out);
  }
}

void TicketBook::finish_if_done(std::uint32_t slot, std::vector<Completion>& out) {
  Open& open = slots_[slot];
  if (open.pieces_count > 0) return;
  const bool is_complete = open.next_run == open.batch.size();
  if (!open.is_doomed && !is_complete) return;
  Outcome outcome = open.is_doomed ? Outcome::failed : Outcome::ok;
  if (open.is_told_unsettled) outcome = Outcome::settled;
  // An ok ticket has an empty error. A doomed one is never ok, even if all of it was given out:
  // some of its pieces may have been settled without landing.
  out.push_back({open.ticket, outcome, open.error, open.peer_lost});
  if (open.is_doomed) --doomed_count_;
  --open_count_;
  open.is_used = false;
  free_.push_back(slot);
}

void TicketBook::report_unsettled(Instant now, std::vector<Completion>& out) {
  if (doomed_count_ == 0) return;
  for (Open& open : slots_) {
    const bool is_due = open.is_used && open.is_doomed && !open.is_told_unsettled &&
                        now >= open.doomed_at + kSettleTime;
    if (!is_due) continue;
    open.is_told_unsettled = true;
    out.push_back({open.ticket, Outcome::unsettled, open.error, open.peer_lost});
  }
}

std::optional<Instant> TicketBook::deadline() const {
  if (doomed_count_ == 0) return std::nullopt;
  std::optional<Instant> earliest;
  for (const Open& open : slots_) {
    if (!open.is_used || !open.is_doomed || open.is_told_unsettled) continue;
    const Instant due = open.doomed_at + kSettleTime;
    if (!earliest || due < *earliest) earliest = due;
  }
  return earliest;
}

}  // namespace baton::engine::tcp
