// LocalService: tells peers on this host which memory they may write, and takes it back.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/fd.hpp"
#include "engine/local_gate.hpp"
#include "engine/local_socket.hpp"
#include "engine/mapping.hpp"
#include "engine/regions.hpp"

namespace baton::engine {

// Owns a listening socket and one thread that greets peers and notices their death. Registering
// and unregistering pushes the news to every peer from the calling thread.
class LocalService {
 public:
  static Result<std::unique_ptr<LocalService>> start(const std::string& socket_name);
  ~LocalService();

  Result<RegionId> add(const Region& region);
  // Returns when no peer can write there any more. Errc::timeout: a peer is stuck inside a copy;
  // the memory must stay mapped, call again.
  Result<void> remove(RegionId region);

 private:
  using SharedFd = std::shared_ptr<Fd>;  // null: none
  struct Connection {
    Fd socket, process;  // `process` is a pidfd
    pid_t pid = 0;
    Mapping page;
    SharedFd page_file;
    bool is_greeted = false;
    std::deque<std::pair<LocalMessage, SharedFd>> outbox;

    LocalGate& gate() const { return *reinterpret_cast<LocalGate*>(page.data()); }
  };
  using ConnectionPtr = std::shared_ptr<Connection>;
  // A copy that was under way when a region was taken back.
  struct Passage {
    std::weak_ptr<Connection> connection;
    std::uint64_t passages_seen = 0;
  };
  using Closing = std::vector<Passage>;

  LocalService() = default;
  void serve();
  void accept_peers();
  void greet(Connection& connection);
  void on_event(std::uint64_t key);
  bool read_hello(Connection& connection);
  bool flush(Connection& connection);
  void tell_all(const LocalMessage& message, const SharedFd& file);
  void close_gates(RegionId region);
  bool passages_ended(RegionId region, pid_t& stuck);

  Fd listener_, epoll_, stop_;
  std::thread thread_;
  std::mutex mutex_;  // guards everything below
  RegionIndex regions_;
  std::map<RegionId, SharedFd> files_;
  std::map<RegionId, Closing> closing_;
  std::map<std::uint64_t, ConnectionPtr> connections_;
  std::uint64_t next_connection_ = 1;
  std::uint64_t generation_ = 0;
  std::uint32_t next_region_ = 1;
};

}  // namespace baton::engine
