// DecodeScheduler: the one thread that receives KV and goes on generating from it.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <optional>
#include <thread>
#include <vector>

#include "baton/manager.hpp"
#include "cli/messages.hpp"
#include "cli/rank.hpp"
#include "cli/wakeup.hpp"
#include "net/http_exchange.hpp"
#include "refengine/engine.hpp"

namespace baton::cli {

// All requests that have their KV take turns, one token each. A request waits until its prefill
// ranks are known and there are pages for all of its tokens.
class DecodeScheduler {
 public:
  // Rank and manager must outlive it.
  DecodeScheduler(Rank& rank, DecodeManager& manager);
  ~DecodeScheduler();  // drops what is unfinished

  // From any thread. False: too many wait.
  bool submit(ServeRequest request, net::HttpResponder responder);

 private:
  enum class Phase : std::uint8_t {
    waiting,     // opened; for prefill to be found, then for pages and an aux row
    receiving,   // published; for Success and for the aux row's room word
    generating,  // has its KV
    draining,    // answered; until nobody can write into the pages, before they are given back
  };
  struct Job {
    ServeRequest request;
    net::HttpResponder responder;
    KvReceiver receiver;
    Phase phase = Phase::waiting;
    std::vector<PageIndex> pages;    // of the prompt and of what will be generated
    std::vector<PageIndex> aux_row;  // one, once there are pages
    std::optional<Instant> succeeded_at;
    std::optional<refengine::Sequence> sequence;
    std::int32_t token = 0;        // the last one generated
    std::size_t tokens_count = 0;  // generated so far
    refengine::Utf8Stream text;
    DoneLine done;
  };
  struct Arrival {
    ServeRequest request;
    net::HttpResponder responder;
  };

  void run();
  void admit();
  void advance(Job& job);
  void allocate(Job& job);
  void on_success(Job& job);
  void commit(Job& job);
  bool generate_one(Job& job);
  void emit(Job& job, std::int32_t token);
  void finish(Job& job);
  void fail(Job& job, const std::string& text);
  bool is_over(Job& job);

  Rank& rank_;
  DecodeManager& manager_;
  Intake<Arrival> intake_;
  std::atomic<bool> stopping_{false};
  // The rest belongs to the thread.
  std::list<Job> jobs_;
  bool is_short_ = false;  // of pages: nobody may overtake the oldest that waits for some
  std::thread thread_;
};

}  // namespace baton::cli
