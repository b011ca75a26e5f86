// DataSession: the serving end of one data connection; receives payloads straight into place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "baton/types.hpp"
#include "engine/fd.hpp"
#include "engine/regions.hpp"
#include "engine/tcp_protocol.hpp"

namespace baton::engine::tcp {

// Requests come one after another and are served in order. Belongs to the server's thread.
class DataSession {
 public:
  DataSession(Fd socket, std::string peer, const RegionTable& regions);

  int socket() const { return socket_.get(); }
  // The client's "host:port" as seen here.
  const std::string& peer() const { return peer_; }
  // Serves until the socket would block or a budget is spent. False: close the session.
  bool on_event();
  // epoll events that it waits for.
  std::uint32_t interest() const;
  // Closes a refused client that does not hang up.
  bool is_overdue(Instant now) const;

 private:
  enum class State : std::uint8_t {
    header,   // awaits the rest of a request header
    payload,  // receives the payload of a WRITE into the region
    reply,    // sends the payload of a READ out of the region
    refused,  // a request was rejected: awaits the client's hang-up, reads nothing into memory
    closed,   // the connection is over
  };
  enum class Step : std::uint8_t { moved, would_block };

  Step advance();
  Step receive_header();
  Step receive_payload();
  Step send_reply();
  Step discard();
  void on_header();
  void on_payload_done();
  void refuse();
  bool is_registered_locked();
  std::uint64_t take_staged(char* target, std::uint64_t wanted);
  std::size_t read_ahead_bytes() const;
  bool flush();
  Step after_error(std::int64_t result);

  Fd socket_;
  std::string peer_;
  const RegionTable& regions_;
  State state_ = State::header;
  Header request_;
  std::uint64_t done_bytes_ = 0;  // of the payload
  // The removal count at which `request_` was last found to be inside a region.
  std::uint64_t checked_at_ = 0;
  // Bytes received behind a payload: the next header and, for small payloads, more.
  std::vector<char> staged_;
  std::size_t staged_begin_ = 0, staged_end_ = 0;
  std::string outbox_;  // status words
  std::uint64_t budget_bytes_ = 0;
  bool is_drained_ = false;  // the last receive got less than it asked for: no need to ask again
  std::uint64_t discarded_bytes_ = 0;
  Instant refused_at_{};
};

}  // namespace baton::engine::tcp
