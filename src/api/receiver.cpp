// KvReceiver: calls become events.
#include "baton/receiver.hpp"

#include <utility>

#include "runtime/decode_runtime.hpp"

namespace baton {

KvReceiver::KvReceiver(std::shared_ptr<runtime::DecodeRuntime> runtime,
                       std::shared_ptr<runtime::RoomSlot> slot)
    : runtime_(std::move(runtime)), slot_(std::move(slot)) {}

KvReceiver::KvReceiver(KvReceiver&&) noexcept = default;

KvReceiver& KvReceiver::operator=(KvReceiver&& other) noexcept {
  if (this == &other) return *this;
  if (slot_) clear();
  runtime_ = std::move(other.runtime_);
  slot_ = std::move(other.slot_);
  return *this;
}

KvReceiver::~KvReceiver() {
  if (slot_) clear();
}

RoomId KvReceiver::room() const { return slot_->key.room; }
KvPoll KvReceiver::poll() const { return runtime_->poll(*slot_); }

Result<void> KvReceiver::publish(const Destination& destination) {
  return runtime_->ask(*slot_, core::Publish{slot_->key,
                                             {destination.pages.begin(), destination.pages.end()},
                                             destination.aux_index,
                                             destination.state,
                                             destination.prefix_tokens});
}

void KvReceiver::abort() { runtime_->tell(*slot_, core::AbortRoom{slot_->key}); }
void KvReceiver::clear() { runtime_->tell(*slot_, core::ClearRoom{slot_->key}); }
bool KvReceiver::quiesced() const { return slot_->quiet.load(std::memory_order_acquire); }
std::optional<Failure> KvReceiver::failure() const { return runtime_->failure(*slot_); }
TransferMetric KvReceiver::metric() const { return runtime_->metric(*slot_); }

}  // namespace baton
