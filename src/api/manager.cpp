// The managers: thin shells around the runtimes.
#include "baton/manager.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "runtime/decode_runtime.hpp"
#include "runtime/prefill_runtime.hpp"

namespace baton {

PrefillManager::PrefillManager(std::shared_ptr<runtime::PrefillRuntime> runtime)
    : runtime_(std::move(runtime)) {}

PrefillManager::~PrefillManager() { runtime_->shutdown(); }

Result<std::unique_ptr<PrefillManager>> PrefillManager::create(
    PrefillConfig config, std::unique_ptr<TransferEngine> engine) {
  auto runtime = runtime::PrefillRuntime::create(std::move(config), std::move(engine));
  if (!runtime) return runtime.error();
  return std::unique_ptr<PrefillManager>(new PrefillManager(std::move(*runtime)));
}

Result<KvSender> PrefillManager::open(RoomId room) {
  Result<std::shared_ptr<runtime::RoomSlot>> slot = runtime_->open(core::OpenSender{room});
  if (!slot) return slot.error();
  return KvSender(runtime_, std::move(*slot));
}

void PrefillManager::poll(std::span<const KvSender> senders, std::span<KvPoll> out) {
  BATON_ASSERT(senders.size() == out.size());
  std::transform(senders.begin(), senders.end(), out.begin(),
                 [](const KvSender& sender) { return sender.poll(); });
}

int PrefillManager::event_descriptor() const { return runtime_->changed().descriptor(); }
void PrefillManager::clear_event() { runtime_->changed().lower(); }
std::vector<CounterValue> PrefillManager::counters() const { return runtime_->counters(); }

DecodeManager::DecodeManager(std::shared_ptr<runtime::DecodeRuntime> runtime)
    : runtime_(std::move(runtime)) {}

DecodeManager::~DecodeManager() { runtime_->shutdown(); }

Result<std::unique_ptr<DecodeManager>> DecodeManager::create(
    DecodeConfig config, std::unique_ptr<TransferEngine> engine) {
  auto runtime = runtime::DecodeRuntime::create(std::move(config), std::move(engine));
  if (!runtime) return runtime.error();
  return std::unique_ptr<DecodeManager>(new DecodeManager(std::move(*runtime)));
}

Result<KvReceiver> DecodeManager::open(RoomId room, std::string bootstrap_address,
                                       std::optional<std::uint32_t> dp_rank) {
  Result<std::shared_ptr<runtime::RoomSlot>> slot =
      runtime_->open(core::OpenReceiver{room, std::move(bootstrap_address), dp_rank});
  if (!slot) return slot.error();
  return KvReceiver(runtime_, std::move(*slot));
}

void DecodeManager::poll(std::span<const KvReceiver> receivers, std::span<KvPoll> out) {
  BATON_ASSERT(receivers.size() == out.size());
  std::transform(receivers.begin(), receivers.end(), out.begin(),
                 [](const KvReceiver& receiver) { return receiver.poll(); });
}

int DecodeManager::event_descriptor() const { return runtime_->changed().descriptor(); }
void DecodeManager::clear_event() { runtime_->changed().lower(); }
std::vector<CounterValue> DecodeManager::counters() const { return runtime_->counters(); }

}  // namespace baton
