// TransferQueue: the transfer worker. Plans writes, submits them, and reports every end.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "baton/engine.hpp"
#include "baton/result.hpp"
#include "baton/types.hpp"
#include "core/actions.hpp"
#include "plan/geometry.hpp"
#include "plan/page_runs.hpp"
#include "runtime/event_flag.hpp"

namespace baton::runtime {

// One thread ("baton-transfer") owns submit() and progress() of the engine. Writes are submitted in
// the order in which the node asked for them; `busy` waits, nothing overtakes it. It decides
// nothing about a room: a write that cannot be planned or submitted is reported as failed.
class TransferQueue {
 public:
  struct Handlers {
    // Takes what the node asked for since the last call.
    std::function<void(std::vector<core::SubmitWrite>&)> collect;
    std::function<void(core::WriteDone)> on_done;
  };

  // `local` and `engine` must outlive the queue.
  TransferQueue(const KvArgs& local, TransferEngine& engine, Handlers handlers);
  ~TransferQueue();  // stop(): open writes get a bounded time to end

  void wake() { wake_.raise(); }
  void stop();

 private:
  // What is known of one decode rank: where its buffers are and how they pair with ours.
  struct Peer {
    std::shared_ptr<const Registration> registration;
    EnginePeer engine_peer;
    std::vector<plan::BufferPair> kv, aux;
    std::vector<std::vector<plan::BufferPair>> state;
  };
  // A planned write; its runs stay in place until the engine has done with them. [E6]
  struct Write {
    Ticket ticket;
    std::string session_id;
    EnginePeer engine_peer;
    std::vector<WriteRun> runs;
    std::uint64_t bytes = 0;
  };

  void run();
  void plan_new();
  void submit_planned();
  bool report_ended();
  void sleep() const;

  Result<Write> plan(const core::SubmitWrite& write);
  Result<void> plan_runs(const core::SubmitWrite& write, const Peer& peer,
                         std::vector<WriteRun>& runs);
  Result<const Peer*> peer_for(const std::shared_ptr<const Registration>& registration);
  Result<Peer> pair_with(const std::shared_ptr<const Registration>& registration) const;
  void fail(Ticket ticket, const std::string& reason, bool session_broken);

  const KvArgs& local_;
  TransferEngine& engine_;
  Handlers handlers_;
  EventFlag wake_;
  std::atomic<bool> stopping_{false};
  // The rest belongs to the thread.
  std::map<std::string, Peer> peers_;
  std::vector<core::SubmitWrite> incoming_;
  std::deque<std::unique_ptr<Write>> planned_;
  std::unordered_map<Ticket, std::unique_ptr<Write>> open_;
  std::vector<std::unique_ptr<Write>> spare_;  // keeps the capacity of `runs`
  std::vector<plan::PageRun> page_runs_;
  std::vector<Completion> completions_;
  std::thread thread_;
};

}  // namespace baton::runtime
