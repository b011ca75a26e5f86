// TicketBook: the open tickets of one TCP peer, cut into pieces, and how each of them ends.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "baton/engine.hpp"
#include "engine/tcp_lane.hpp"

namespace baton::engine::tcp {

// Knows nothing about sockets. A ticket ends when all of it is acknowledged, or when it is doomed
// and none of its pieces can land any more. Belongs to the worker thread.
class TicketBook {
 public:
  explicit TicketBook(std::uint64_t slice_bytes, bool has_status)
      : slice_bytes_(slice_bytes), has_status_(has_status) {}
  void set_protocol(std::uint32_t version) { has_status_ = version >= 2; }

  void add(Ticket ticket, WriteBatch batch);
  std::size_t open_count() const { return open_count_; }
  bool has_pieces() const { return !queue_.empty() || !retries_.empty(); }
  // Gives pieces of one ticket to the lane, then it is the next ticket's turn.
  void feed(Lane& lane, Instant now, std::vector<Completion>& out);

  // The piece has landed, or is proven never to land.
  void settle_piece(std::uint32_t slot, std::vector<Completion>& out);
  // No byte of the piece has left: it goes to another lane.
  void retry(const Piece& piece, std::vector<Completion>& out);
  // The ticket fails, with the first reason that was given, once its pieces are settled.
  void doom(std::uint32_t slot, const Error& error, bool peer_lost, Instant now,
            std::vector<Completion>& out);
  void doom_ticket(Ticket ticket, const Error& error, Instant now, std::vector<Completion>& out);
  void doom_all(const Error& error, bool peer_lost, Instant now, std::vector<Completion>& out);
  // After doom_all: everything is proven quiet, whatever is on the way never lands.
  void settle_all(std::vector<Completion>& out);

  // Doomed tickets that could not be settled for a while are reported as unsettled. (E4)
  void report_unsettled(Instant now, std::vector<Completion>& out);
  std::optional<Instant> deadline() const;

 private:
  struct Open {
    Ticket ticket;
    WriteBatch batch;
    std::size_t next_run = 0;
    std::uint64_t done_bytes = 0;    // of that run
    std::uint32_t pieces_count = 0;  // given out and not settled
    bool is_used = false;
    bool is_doomed = false;
    bool peer_lost = false;
    bool is_told_unsettled = false;
    Error error;
    Instant doomed_at{};
  };

  bool feed_one(Open& open, std::uint32_t slot, Lane& lane, Instant now);
  void mark(Open& open, const Error& error, Instant now);
  void skip_empty(Open& open);
  void drop_unsent(std::uint32_t slot);
  void finish_if_done(std::uint32_t slot, std::vector<Completion>& out);

  std::uint64_t slice_bytes_;
  bool has_status_;
  std::deque<Open> slots_;  // a deque: references stay good
  std::vector<std::uint32_t> free_;
  std::deque<std::uint32_t> queue_;  // slots with runs to give out, in turn
  std::deque<Piece> retries_;
  std::size_t open_count_ = 0, doomed_count_ = 0;
};

}  // namespace baton::engine::tcp
