// LocalPeer: one process on this host whose memory we write, seen from the worker thread.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "baton/engine.hpp"
#include "engine/fd.hpp"
#include "engine/local_gate.hpp"
#include "engine/local_socket.hpp"
#include "engine/mapping.hpp"
#include "engine/regions.hpp"
#include "engine/waker.hpp"

namespace baton::engine {

// Where the sockets of local engines live: "local-<nonce>:<pid>".
struct LocalDescriptor {
  std::string text;
  std::string socket_name;
};
Result<LocalDescriptor> parse_local_descriptor(std::string_view text);

// Copies batches into the peer, a slice at a time. Copies are synchronous: between two calls no
// byte is in flight, so a batch can fail at any time and is quiesced (E3).
class LocalPeer {
 public:
  LocalPeer(LocalDescriptor descriptor, std::uint64_t key, Instant now);

  void submit(Ticket ticket, WriteBatch batch) { open_.push_back({ticket, batch}); }
  void cancel(Ticket ticket);
  // Reads the socket, connects, gives up. `waker` watches the sockets under the peer's key.
  void refresh(Waker& waker, Instant now);
  // Copies one slice of the next batch (round robin) and appends completions. Returns the bytes
  // and runs spent, in bytes.
  std::uint64_t copy_slice(std::vector<Completion>& out);
  // Every open ticket fails.
  void fail_all(const Error& error, bool peer_lost, std::vector<Completion>& out);

  bool is_lost() const { return state_ == State::lost; }
  const Error& loss() const { return loss_; }
  bool has_open() const { return !open_.empty(); }
  // Something could be copied right now.
  bool can_copy() const;
  std::optional<Instant> deadline() const;

 private:
  enum class State : std::uint8_t {
    unconnected,  // the peer's backlog was full; tried again on every refresh
    greeting,     // hello is sent; awaits the whole table
    ready,        // the table is here
    lost,         // gone for good; awaits nothing
  };
  struct Open {
    Ticket ticket;
    WriteBatch batch;
    std::size_t next_run = 0;
    std::uint64_t done_bytes = 0;  // of that run
    bool is_cancelled = false;
  };
  // The region that the last run fell into; most runs fall into the same one.
  struct Target {
    AddressRange range;
    std::byte* base = nullptr;  // null: not mapped, use process_vm_writev
  };

  void start(Waker& waker);
  void read_socket();
  void on_packet(Packet& packet);
  void lose(Errc code, const std::string& cause);
  bool enter();
  void leave();
  bool locate(std::uint64_t address, std::uint64_t length_bytes);
  std::uint64_t copy_runs(Open& open, std::optional<Error>& fault);
  void queue_remote(std::uint64_t source, std::uint64_t target, std::uint64_t length_bytes);
  std::optional<Error> write_remote();
  Error explain(std::int64_t written, int cause);
  bool is_alive() const;

  LocalDescriptor descriptor_;
  std::uint64_t key_;
  State state_ = State::unconnected;
  Error loss_;
  Instant give_up_at_, retry_at_;
  Fd socket_, process_;
  pid_t pid_ = 0;
  Mapping page_;
  LocalGate* gate_ = nullptr;
  std::uint64_t generation_ = 0;
  RegionIndex regions_;
  std::unordered_map<RegionId, Mapping> mappings_;
  Target last_;
  std::deque<Open> open_;
  std::vector<iovec> local_parts_, remote_parts_;
  std::uint64_t remote_bytes_ = 0;
};

}  // namespace baton::engine
