// PrefillScheduler: the one thread that computes prompts and hands their KV over.
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

// First come, first served: one chunk of the oldest prompt is computed at a time, while the chunks
// before it travel. A request waits until decode has published its pages, and then until there are
// pages for it here.
class PrefillScheduler {
 public:
  // `chunk_tokens` 0: the whole prompt at once. Rank and manager must outlive it.
  PrefillScheduler(Rank& rank, PrefillManager& manager, std::size_t chunk_tokens);
  ~PrefillScheduler();  // drops what is unfinished

  // From any thread. False: too many wait.
  bool submit(ServeRequest request, net::HttpResponder responder);

 private:
  enum class Phase : std::uint8_t {
    waiting,    // opened; for decode's metadata, then for pages and an aux row
    computing,  // has pages; chunks are computed and sent
    sending,    // every chunk is sent; for Success
    draining,   // answered; for the last write to end, before the pages are given back
  };
  struct Job {
    ServeRequest request;
    net::HttpResponder responder;
    KvSender sender;
    Phase phase = Phase::waiting;
    std::vector<PageIndex> pages;    // of the whole prompt
    std::vector<PageIndex> aux_row;  // one, once there are pages
    std::optional<refengine::Sequence> sequence;
    std::size_t pages_sent = 0;
    PrefillReply reply;
  };
  struct Arrival {
    ServeRequest request;
    net::HttpResponder responder;
  };

  void run();
  void admit();
  void advance(Job& job);
  void allocate(Job& job);
  bool compute_oldest();
  Result<void> compute_chunk(Job& job);
  void fill_aux(Job& job);
  void succeed(Job& job);
  void fail(Job& job, int status, const std::string& text);
  bool is_over(Job& job);

  Rank& rank_;
  PrefillManager& manager_;
  std::size_t chunk_tokens_;
  Intake<Arrival> intake_;
  std::atomic<bool> stopping_{false};
  // The rest belongs to the thread.
  std::list<Job> jobs_;
  bool is_short_ = false;  // of pages: nobody may overtake the oldest that waits for some
  std::thread thread_;
};

}  // namespace baton::cli
