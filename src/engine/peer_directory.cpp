// Peer ids by descriptor, and the queue of news for the worker.
#include "engine/peer_directory.hpp"

#include <utility>

namespace baton::engine {

EnginePeer PeerDirectory::connect(std::string_view descriptor) {
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = by_descriptor_.try_emplace(std::string(descriptor));
  if (!is_new) return entry->second;
  entry->second = EnginePeer{next_++};
  news_.push_back({entry->second, entry->first});
  has_news_.store(true, std::memory_order_release);
  return entry->second;
}

void PeerDirectory::disconnect(EnginePeer peer) {
  const std::lock_guard lock(mutex_);
  erase_locked(peer);
  news_.push_back({peer, {}});
  has_news_.store(true, std::memory_order_release);
}

void PeerDirectory::forget(EnginePeer peer) {
  const std::lock_guard lock(mutex_);
  erase_locked(peer);
}

void PeerDirectory::erase_locked(EnginePeer peer) {
  std::erase_if(by_descriptor_, [&](const auto& entry) { return entry.second == peer; });
}

std::vector<PeerDirectory::News> PeerDirectory::take_news() {
  const std::lock_guard lock(mutex_);
  has_news_.store(false, std::memory_order_relaxed);
  return std::exchange(news_, {});
}

}  // namespace baton::engine
