// TcpPeer: one peer of mooncake_tcp, seen from the worker thread: its lanes, tickets and doubts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/address.hpp"
#include "baton/engine.hpp"
#include "engine/tcp_fence.hpp"
#include "engine/tcp_lane.hpp"
#include "engine/tcp_resolver.hpp"
#include "engine/tcp_rpc_call.hpp"
#include "engine/tcp_tickets.hpp"
#include "engine/waker.hpp"

namespace baton::engine::tcp {

// Reaches the peer in the background, writes to it, and finds out how failed writes ended.
class TcpPeer {
 public:
  // `metadata` is what we say about ourselves.
  TcpPeer(Endpoint rpc, std::uint32_t number, std::uint32_t lanes_count, std::string metadata,
          Instant now);

  void submit(Ticket ticket, WriteBatch batch) { book_.add(ticket, batch); }
  void cancel(Ticket ticket, Instant now, std::vector<Completion>& out);
  // Nothing more is submitted. What is on the way is drained.
  void leave(Instant now, std::vector<Completion>& out);
  // Events of a socket that was watched under key(channel).
  void on_events(std::uint32_t channel, std::uint32_t epoll_events);
  static std::uint32_t number_of(std::uint64_t key) {
    return static_cast<std::uint32_t>(key >> 8U);
  }
  static std::uint32_t channel_of(std::uint64_t key) {
    return static_cast<std::uint32_t>(key & 255U);
  }

  // One turn of everything. Returns the bytes sent (or 1 if something else moved).
  std::uint64_t advance(Waker& waker, Instant now, std::vector<Completion>& out);
  bool can_advance() const;
  std::optional<Instant> deadline() const;
  bool is_lost() const { return state_ == State::lost; }
  bool has_left() const { return has_left_; }
  // Left, and nothing open.
  bool is_over() const { return has_left_ && book_.open_count() == 0; }

  static constexpr std::uint32_t kLanesMax = 64;

 private:
  enum class State : std::uint8_t {
    resolving,  // awaits the address of a host name
    asking,     // awaits the peer's metadata
    ready,      // lanes are opened when there is something to send
    lost,       // gone or given up; awaits only the settling of doubtful writes
  };
  // Writes of a broken connection that may still land.
  struct Doubt {
    std::string connection;            // our end
    bool is_quiet = false;             // proven already; only the peer's fate is asked
    std::vector<std::uint32_t> slots;  // one per piece
  };

  std::uint64_t key(std::uint32_t channel) const {
    return (std::uint64_t{number_} << 8U) | channel;
  }
  void resolve(Waker& waker, Instant now, std::vector<Completion>& out);
  void ask(Instant now, std::vector<Completion>& out);
  std::uint64_t run_lanes(Waker& waker, Instant now, std::vector<Completion>& out);
  void open_lanes(Waker& waker, Instant now);
  void on_break(Lane& lane, Instant now, std::vector<Completion>& out);
  void question(Waker& waker, Instant now, std::vector<Completion>& out);
  void settle_doubts(bool only_quiet, std::vector<Completion>& out);
  void start_fence(Instant now);
  // Nothing can land any more.
  void end(const Error& error, Instant now, std::vector<Completion>& out);
  // Nothing is known; doubts remain.
  void give_up(const Error& error, Instant now, std::vector<Completion>& out);
  bool has_open_lane() const;
  std::string name() const { return "peer " + to_string(rpc_); }

  Endpoint rpc_;
  std::uint32_t number_;
  std::string metadata_;
  State state_ = State::resolving;
  bool has_left_ = false;
  Instant give_up_at_;
  std::optional<Resolver> resolver_;
  std::optional<RpcCall> call_;
  SocketAddress address_;
  Fence::Target target_;
  Error loss_;
  TicketBook book_;
  std::vector<Lane> lanes_;
  Instant reopen_at_{};
  std::vector<std::uint32_t> acknowledged_;
  std::vector<Doubt> doubts_;
  std::optional<Fence> fence_;
  Instant fence_give_up_at_{};
};

}  // namespace baton::engine::tcp
