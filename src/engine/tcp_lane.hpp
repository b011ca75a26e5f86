// Lane: the writing end of one data connection; a pipeline of pieces and their acknowledgements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "baton/types.hpp"
#include "engine/fd.hpp"
#include "engine/tcp_protocol.hpp"
#include "engine/tcp_socket.hpp"
#include "engine/waker.hpp"

namespace baton::engine::tcp {

// A write that fits into one request, on its way.
struct Piece {
  HeaderBytes header{};
  std::uint64_t source = 0;
  std::uint64_t target = 0;
  std::uint32_t length_bytes = 0;  // of the payload; a barrier has none
  std::uint32_t slot = 0;          // of the ticket
  bool is_barrier = false;
};

// Sends pieces in order and matches the answers, which come in the same order. Belongs to the
// worker thread. Never blocks.
//
// Protocol 2: each write is answered when it has been applied. Protocol 1 answers no write; a READ
// of the last byte written (a barrier) on the same connection is answered after all writes before
// it, because a server handles one connection's requests in order. That holds for servers that keep
// the connection open; one that closes it after each request makes every protocol 1 ticket fail.
class Lane {
 public:
  enum class State : std::uint8_t {
    closed,      // no socket; opened when there is something to send
    connecting,  // awaits the TCP handshake
    open,        // sends and receives
  };
  // How a connection ended.
  struct Break {
    int cause = 0;                  // errno; 0: the peer closed in order (FIN)
    std::string local_name;         // our end, "host:port"; empty: was never open
    bool was_rejected = false;      // the oldest piece was refused by the server
    std::vector<Piece> unanswered;  // bytes of these were sent and may have been applied
    std::vector<Piece> unsent;      // no byte of these left this process, or the server proved
                                    // that it read none of them (after a rejection)
  };

  Lane() = default;
  Lane(Lane&&) = default;
  Lane& operator=(Lane&&) = delete;
  ~Lane();
  void open(const SocketAddress& address, Waker& waker, std::uint64_t key, Instant deadline);
  void set_protocol(std::uint32_t version) { has_status_ = version >= 2; }
  State state() const { return state_; }
  Instant deadline() const { return deadline_; }
  void on_events(std::uint32_t epoll_events);

  bool has_room() const;
  bool wants_pieces() const { return unsent_bytes_ < kUnsentBytes && has_room(); }
  void push(const Piece& piece);
  // Closes a burst: protocol 1 needs a barrier behind it.
  void end_burst();
  // Sends and receives what it can. Appends the slot of every acknowledged piece. Returns the bytes
  // sent. A broken connection shows in take_break().
  std::uint64_t advance(std::vector<std::uint32_t>& acknowledged);
  // Work that needs no event first.
  bool can_advance() const;
  bool is_idle() const { return head_ == tail_; }

  bool is_broken() const { return broken_.has_value(); }
  // The lane is closed afterwards and may be opened again.
  Break take_break();
  void break_off(int cause);

 private:
  static constexpr std::uint64_t kUnsentBytes = 256U << 10U;
  static constexpr std::size_t kPiecesMax = 2048;  // a power of two

  Piece& at(std::size_t index) { return ring_[index % kPiecesMax]; }
  std::uint64_t send_some();
  void advance_sent(std::uint64_t bytes);
  void receive(std::vector<std::uint32_t>& acknowledged);
  void on_status(std::uint64_t word, std::vector<std::uint32_t>& acknowledged);
  void on_barrier(std::vector<std::uint32_t>& acknowledged);

  State state_ = State::closed;
  Fd socket_;
  bool has_status_ = true;
  bool is_readable_ = false, is_writable_ = false, is_ending_ = false;
  Instant deadline_{};
  std::string local_name_;
  std::vector<Piece> ring_;  // kPiecesMax, once opened
  // Pieces [head, sent) await answers, [sent, tail) await sending. They only grow.
  std::size_t head_ = 0, sent_ = 0, tail_ = 0;
  std::uint64_t sent_of_piece_ = 0;  // bytes of header and payload of at(sent_)
  std::uint64_t unsent_bytes_ = 0;
  std::array<char, 8> partial_{};
  std::size_t partial_bytes_ = 0;
  bool was_rejected_ = false;
  bool answers_are_over_ = false;  // what follows on this connection means nothing
  std::optional<Break> broken_;
};

}  // namespace baton::engine::tcp
