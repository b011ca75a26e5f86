// PeerDirectory: hands out peer ids to any thread and queues the news for the worker thread.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "baton/engine.hpp"

namespace baton::engine {

// connect() and disconnect() may come from any thread; everything else about a peer belongs to the
// worker thread. Only these few words are shared, so progress() takes no lock while nothing is new.
class PeerDirectory {
 public:
  // A peer was connected, or (with an empty descriptor) disconnected.
  struct News {
    EnginePeer peer;
    std::string descriptor;
    bool is_connect() const { return !descriptor.empty(); }
  };

  // The same descriptor gives the same peer until forget().
  EnginePeer connect(std::string_view descriptor);
  void disconnect(EnginePeer peer);
  // The peer is lost: connect() gives a fresh one from now on.
  void forget(EnginePeer peer);
  // Worker thread: what happened since the last call, in order.
  bool has_news() const { return has_news_.load(std::memory_order_acquire); }
  std::vector<News> take_news();

 private:
  void erase_locked(EnginePeer peer);
  std::mutex mutex_;
  std::unordered_map<std::string, EnginePeer> by_descriptor_;
  std::vector<News> news_;
  std::uint32_t next_ = 1;
  std::atomic<bool> has_news_{false};
};

}  // namespace baton::engine
