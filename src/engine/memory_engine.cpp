// In-process copies: each progress() performs whole batches, oldest first, up to a byte budget.
#include "engine/memory_engine.hpp"

#include <charconv>
#include <string>
#include <utility>

#include "engine/remote_write.hpp"

namespace baton::engine {
namespace {

constexpr std::string_view kPrefix = "memory:";
constexpr std::uint64_t kBudgetBytes = 8U << 20U;

Result<std::uint64_t> parse_descriptor(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto begin = text.data() + kPrefix.size();
  if (text.starts_with(kPrefix)) {
    const auto [stop, fault] = std::from_chars(begin, end, number);
    if (fault == std::errc() && stop == end && begin != end) return number;
  }
  return Error{Errc::malformed,
               "descriptor \"" + std::string(text) + "\": expected memory:<number>"};
}

std::uint64_t batch_bytes(WriteBatch batch) {
  std::uint64_t sum = 0;
  for (const WriteRun& run : batch) sum += run.length_bytes;
  return sum;
}

// All runs are checked before the first byte is written.
Result<void> copy_batch(const RegionTable& table, WriteBatch batch) {
  const std::lock_guard lock(table.mutex());
  for (const WriteRun& run : batch) {
    if (run.length_bytes == 0) continue;
    if (table.index_locked().find(run.target, run.length_bytes) != nullptr) continue;
    return Error{Errc::invalid_argument, "the target " + std::to_string(run.target) + " of " +
                                             std::to_string(run.length_bytes) +
                                             " bytes is in no region of the peer"};
  }
  for (const WriteRun& run : batch) {
    if (run.length_bytes == 0) continue;
    remote_copy(reinterpret_cast<void*>(run.target), reinterpret_cast<const void*>(run.source),
                run.length_bytes);
  }
  return {};
}

}  // namespace

std::uint64_t MemoryHub::join(std::shared_ptr<RegionTable> table) {
  const std::lock_guard lock(mutex_);
  tables_.emplace(next_, std::move(table));
  return next_++;
}

void MemoryHub::leave(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  tables_.erase(number);
}

std::shared_ptr<RegionTable> MemoryHub::find(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto entry = tables_.find(number);
  return entry == tables_.end() ? nullptr : entry->second;
}

MemoryEngine::MemoryEngine(std::shared_ptr<MemoryHub> hub)
    : hub_(std::move(hub)), regions_(std::make_shared<RegionTable>()) {
  capabilities_.name = "memory";
  number_ = hub_->join(regions_);
}

MemoryEngine::~MemoryEngine() {
  hub_->leave(number_);
  // A peer that found the table before leave() may still be copying: emptying it waits for that and
  // makes every later find fail.
  for (const RegionEntry& entry : regions_->snapshot()) {
    const Result<Region> removed = regions_->remove(entry.id);
    static_cast<void>(removed);
  }
}

Result<RegionId> MemoryEngine::register_region(const Region& region) {
  return regions_->add(region);
}

Result<void> MemoryEngine::unregister_region(RegionId region) {
  const Result<Region> removed = regions_->remove(region);
  if (!removed) return removed.error();
  return {};
}

Result<std::string> MemoryEngine::local_descriptor() const {
  return std::string(kPrefix) + std::to_string(number_);
}

Result<EnginePeer> MemoryEngine::connect(std::string_view descriptor) {
  if (const auto number = parse_descriptor(descriptor); !number) return number.error();
  return directory_.connect(descriptor);
}

void MemoryEngine::disconnect(EnginePeer peer) { directory_.disconnect(peer); }

void MemoryEngine::read_news() {
  if (!directory_.has_news()) return;
  for (const PeerDirectory::News& news : directory_.take_news()) {
    if (news.is_connect()) {
      peers_[news.peer] = parse_descriptor(news.descriptor).value();
    } else {
      peers_.erase(news.peer);  // its open tickets fail at the next progress()
    }
  }
}

Result<Admission> MemoryEngine::submit(Ticket ticket, EnginePeer peer, WriteBatch batch) {
  read_news();
  if (!peers_.contains(peer)) {
    return Error{Errc::not_found, "peer " + std::to_string(peer.value) + " is not connected"};
  }
  if (Result<void> usable = check_runs(batch); !usable) return usable.error();
  open_.push_back({ticket, peer, batch});
  return Admission::accepted;
}

void MemoryEngine::cancel(Ticket ticket) {
  for (Open& open : open_) {
    if (open.ticket == ticket) open.is_cancelled = true;
  }
}

Completion MemoryEngine::finish(const Open& open) {
  const auto failed = [&](Error error, bool peer_lost) {
    return Completion{open.ticket, Outcome::failed, std::move(error), peer_lost};
  };
  const auto peer = peers_.find(open.peer);
  if (peer == peers_.end()) return failed({Errc::closed, "the peer was disconnected"}, false);
  if (open.is_cancelled) return failed({Errc::closed, "the write was cancelled"}, false);
  const std::shared_ptr<RegionTable> table = hub_->find(peer->second);
  if (table != nullptr) {
    const Result<void> copied = copy_batch(*table, open.batch);
    if (copied) return Completion{open.ticket, Outcome::ok, {}, false};
    // An engine that is being destroyed unregisters its regions last.
    if (hub_->find(peer->second) != nullptr) return failed(copied.error(), false);
  }
  directory_.forget(open.peer);
  return failed({Errc::unreachable, "engine memory:" + std::to_string(peer->second) + " is gone"},
                true);
}

std::size_t MemoryEngine::progress(std::vector<Completion>& out) {
  read_news();
  std::size_t count = 0;
  for (std::uint64_t bytes = 0; !open_.empty() && bytes < kBudgetBytes; ++count) {
    const Open open = open_.front();
    open_.pop_front();
    bytes += batch_bytes(open.batch);
    out.push_back(finish(open));
  }
  return count;
}

}  // namespace baton::engine
