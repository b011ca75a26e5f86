// KvSender: calls become events.
#include "baton/sender.hpp"

#include <utility>

#include "runtime/prefill_runtime.hpp"

namespace baton {

KvSender::KvSender(std::shared_ptr<runtime::PrefillRuntime> runtime,
                   std::shared_ptr<runtime::RoomSlot> slot)
    : runtime_(std::move(runtime)), slot_(std::move(slot)) {}

KvSender::KvSender(KvSender&&) noexcept = default;

KvSender& KvSender::operator=(KvSender&& other) noexcept {
  if (this == &other) return *this;
  if (slot_) clear();
  runtime_ = std::move(other.runtime_);
  slot_ = std::move(other.slot_);
  return *this;
}

KvSender::~KvSender() {
  if (slot_) clear();
}

RoomId KvSender::room() const { return slot_->key.room; }
KvPoll KvSender::poll() const { return runtime_->poll(*slot_); }
std::uint64_t KvSender::prefix_tokens() const { return slot_->prefix_tokens.load(); }

Result<void> KvSender::init(std::uint32_t pages_count, std::uint32_t aux_index) {
  return runtime_->ask(*slot_, core::InitSender{slot_->key, pages_count, aux_index});
}

Result<void> KvSender::send(const Chunk& chunk) {
  return runtime_->ask(
      *slot_, core::SendChunk{
                  slot_->key, {chunk.pages.begin(), chunk.pages.end()}, chunk.state, chunk.last});
}

void KvSender::abort() { runtime_->tell(*slot_, core::AbortRoom{slot_->key}); }
void KvSender::clear() { runtime_->tell(*slot_, core::ClearRoom{slot_->key}); }
bool KvSender::quiesced() const { return slot_->quiet.load(std::memory_order_acquire); }
std::optional<Failure> KvSender::failure() const { return runtime_->failure(*slot_); }
TransferMetric KvSender::metric() const { return runtime_->metric(*slot_); }

}  // namespace baton
