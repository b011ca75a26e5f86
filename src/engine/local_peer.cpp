// Copying into a process on this host: memcpy where its memory is mapped, else process_vm_writev.
#include "engine/local_peer.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <utility>

namespace baton::engine {
namespace {

constexpr std::string_view kPrefix = "local-";
constexpr std::size_t kNonceDigits = 32;
constexpr auto kGreetingTime = std::chrono::seconds(10);
constexpr auto kRetryTime = std::chrono::milliseconds(20);
constexpr std::size_t kPacketsPerRefresh = 256;
// How long a peer's unregister_region may have to wait for us, and how long a small batch waits
// behind a huge one.
constexpr std::uint64_t kSliceBytes = 1U << 20U;
constexpr std::uint64_t kSliceRuns = 1024;
// What one run costs beside its bytes, in bytes: keeps batches of tiny runs within the budget.
constexpr std::uint64_t kRunCost = 512;
constexpr std::size_t kPartsMax = 1024;  // UIO_MAXIOV

Error not_in_region(std::uint64_t target, std::uint64_t length_bytes, pid_t pid) {
  return {Errc::invalid_argument,
          "the target " + std::to_string(target) + " of " + std::to_string(length_bytes) +
              " bytes is in no region that process " + std::to_string(pid) + " registered"};
}

}  // namespace

Result<LocalDescriptor> parse_local_descriptor(std::string_view text) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const std::size_t colon = kPrefix.size() + kNonceDigits;
  if (text.starts_with(kPrefix) && text.size() > colon + 1 && text[colon] == ':') {
    const std::string_view nonce = text.substr(kPrefix.size(), kNonceDigits);
    std::uint32_t pid = 0;
    const char* end = text.data() + text.size();
    const auto [stop, fault] = std::from_chars(text.data() + colon + 1, end, pid);
    if (fault == std::errc() && stop == end && std::all_of(nonce.begin(), nonce.end(), is_hex)) {
      return LocalDescriptor{std::string(text), "baton-" + std::string(text)};
    }
  }
  return Error{Errc::malformed,
               "descriptor \"" + std::string(text) + "\": expected local-<32 hex digits>:<pid>"};
}

LocalPeer::LocalPeer(LocalDescriptor descriptor, std::uint64_t key, Instant now)
    : descriptor_(std::move(descriptor)), key_(key), give_up_at_(now + kGreetingTime) {
  local_parts_.reserve(kPartsMax);
  remote_parts_.reserve(kPartsMax);
}

void LocalPeer::cancel(Ticket ticket) {
  for (Open& open : open_) {
    if (open.ticket == ticket) open.is_cancelled = true;
  }
}

bool LocalPeer::can_copy() const {
  if (state_ != State::ready || open_.empty()) return false;
  return gate_->generation.load(std::memory_order_relaxed) == generation_;
}

std::optional<Instant> LocalPeer::deadline() const {
  if (state_ == State::unconnected) return std::min(retry_at_, give_up_at_);
  if (state_ == State::greeting) return give_up_at_;
  return std::nullopt;
}

void LocalPeer::refresh(Waker& waker, Instant now) {
  switch (state_) {
    case State::unconnected:
      retry_at_ = now + kRetryTime;
      start(waker);
      break;
    case State::greeting:
    case State::ready: read_socket(); break;
    case State::lost: return;
  }
  if (deadline() && now >= give_up_at_) {
    lose(Errc::timeout, "it did not answer within 10 s; is it stopped?");
  }
}

void LocalPeer::start(Waker& waker) {
  Result<Fd> socket = connect_local(descriptor_.socket_name);
  if (!socket && socket.error().code == Errc::limit) return;
  if (!socket) {
    lose(Errc::unreachable, socket.error().text +
                                "; is that process alive, on this host and in this network "
                                "namespace? If not on this host, use mooncake_tcp");
    return;
  }
  socket_ = std::move(*socket);
  const Credentials listener = peer_credentials(socket_.get());
  if (!is_trusted(listener)) {
    lose(Errc::unreachable, "that process belongs to another user");
    return;
  }
  // The order proves that `process_` is the process we talk to, and not another one with the same,
  // recycled pid (test: LocalEngine.ARecycledPidIsNeverWritten):
  //  1. pidfd_open names whatever process has that pid now.
  //  2. Only then do we say hello; the answer carries the sender's pid as the kernel knows it.
  //  3. The answering process was alive after step 1 under that pid, so it is the one we hold.
  pid_ = listener.pid;
  process_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  LocalMessage hello;
  if (send_packet(socket_.get(), hello, -1) != PacketStatus::done) {
    lose(Errc::unreachable, "it closed the connection");
    return;
  }
  const Result<void> watched = waker.watch(socket_.get(), EPOLLIN, key_);
  if (!watched) {
    lose(Errc::io, watched.error().text);
    return;
  }
  if (process_) static_cast<void>(waker.watch(process_.get(), EPOLLIN, key_));
  state_ = State::greeting;
}

void LocalPeer::read_socket() {
  if (!is_alive()) {
    lose(Errc::unreachable, "it has exited");
    return;
  }
  for (std::size_t i = 0; i < kPacketsPerRefresh; ++i) {
    Packet packet;
    switch (receive_packet(socket_.get(), packet)) {
      case PacketStatus::would_block: return;
      case PacketStatus::closed: lose(Errc::unreachable, "it closed the connection"); return;
      case PacketStatus::done: on_packet(packet); break;
    }
    if (state_ == State::lost) return;
  }
}

void LocalPeer::on_packet(Packet& packet) {
  const LocalMessage& message = packet.message;
  last_ = {};
  switch (message.kind) {
    case LocalMessage::Kind::hello: return;
    case LocalMessage::Kind::gate: {
      if (packet.sender.pid != pid_) process_.reset();  // see start(): not proven to be the same
      Result<Mapping> page = Mapping::map_file(packet.descriptor.get(), 0, sizeof(LocalGate));
      if (!page) return lose(Errc::malformed, page.error().text);
      page_ = std::move(*page);
      gate_ = reinterpret_cast<LocalGate*>(page_.data());
      generation_ = message.generation;
      return;
    }
    case LocalMessage::Kind::added: {
      const RegionId id{static_cast<std::uint32_t>(message.region)};
      Region region;
      region.address = message.address;
      region.length_bytes = message.length_bytes;
      if (!check_region(region)) return lose(Errc::malformed, "it announced an impossible region");
      regions_.insert({id, region});
      if (!packet.descriptor) return;
      // A file that cannot be mapped safely is no failure: process_vm_writev remains.
      Result<Mapping> mapping =
          Mapping::map_file(packet.descriptor.get(), message.offset_bytes, message.length_bytes);
      if (mapping) mappings_[id] = std::move(*mapping);
      return;
    }
    case LocalMessage::Kind::removed: {
      const RegionId id{static_cast<std::uint32_t>(message.region)};
      regions_.erase(id);
      mappings_.erase(id);
      generation_ = message.generation;
      return;
    }
    case LocalMessage::Kind::ready:
      if (gate_ == nullptr) return lose(Errc::malformed, "it sent no gate");
      state_ = State::ready;
      return;
  }
  lose(Errc::malformed, "it sent an unknown message");
}

void LocalPeer::lose(Errc code, const std::string& cause) {
  state_ = State::lost;
  loss_ = {code, "peer " + descriptor_.text + ": " + cause};
  socket_.reset();
  process_.reset();
  last_ = {};
  mappings_.clear();
}

void LocalPeer::fail_all(const Error& error, bool peer_lost, std::vector<Completion>& out) {
  for (const Open& open : open_) {
    out.push_back({open.ticket, Outcome::failed, error, peer_lost});
  }
  open_.clear();
}

// False: the peer took a region back and its message about that has not been read yet. See
// local_gate.hpp for the order of these accesses.
bool LocalPeer::enter() {
  gate_->passages.fetch_add(1);
  if (gate_->generation.load() == generation_) return true;
  gate_->passages.fetch_add(1);
  return false;
}

void LocalPeer::leave() { gate_->passages.fetch_add(1); }

std::uint64_t LocalPeer::copy_slice(std::vector<Completion>& out) {
  Open open = open_.front();
  open_.pop_front();
  if (open.is_cancelled) {
    out.push_back({open.ticket, Outcome::failed, {Errc::closed, "the write was cancelled"}, false});
    return kRunCost;
  }
  if (!enter()) {
    open_.push_front(open);
    return kRunCost;
  }
  std::optional<Error> fault;
  const std::uint64_t cost = copy_runs(open, fault);
  leave();
  if (fault) {
    out.push_back({open.ticket, Outcome::failed, *fault, is_lost()});
  } else if (open.next_run == open.batch.size()) {
    out.push_back({open.ticket, Outcome::ok, {}, false});
  } else {
    open_.push_back(open);
  }
  return cost + kRunCost;
}

std::uint64_t LocalPeer::copy_runs(Open& open, std::optional<Error>& fault) {
  std::uint64_t bytes = 0, runs = 0;
  while (open.next_run < open.batch.size() && bytes < kSliceBytes && runs < kSliceRuns) {
    const WriteRun& run = open.batch[open.next_run];
    const std::uint64_t length = std::min(run.length_bytes - open.done_bytes, kSliceBytes - bytes);
    if (length > 0) {
      // The whole run is checked, so that a bad one writes nothing at all.
      if (!locate(run.target, run.length_bytes)) {
        fault = not_in_region(run.target, run.length_bytes, pid_);
        break;
      }
      const std::uint64_t source = run.source + open.done_bytes;
      const std::uint64_t target = run.target + open.done_bytes;
      if (last_.base != nullptr) {
        std::memcpy(last_.base + (target - last_.range.begin),
                    reinterpret_cast<const void*>(source), length);
      } else {
        queue_remote(source, target, length);
      }
    }
    bytes += length;
    ++runs;
    open.done_bytes += length;
    if (open.done_bytes < run.length_bytes) break;
    open.done_bytes = 0;
    ++open.next_run;
  }
  if (std::optional<Error> refused = write_remote(); refused && !fault) fault = refused;
  return bytes + runs * kRunCost;
}

bool LocalPeer::locate(std::uint64_t address, std::uint64_t length_bytes) {
  AddressRange wanted;
  if (!make_range(address, length_bytes, wanted)) return false;
  if (last_.range.contains(wanted)) return true;
  const RegionEntry* entry = regions_.find(wanted);
  if (entry == nullptr) return false;
  const auto mapping = mappings_.find(entry->id);
  last_ = {entry->range(), mapping == mappings_.end() ? nullptr : mapping->second.data()};
  return true;
}

void LocalPeer::queue_remote(std::uint64_t source, std::uint64_t target,
                             std::uint64_t length_bytes) {
  const auto append = [&](std::vector<iovec>& parts, std::uint64_t address) {
    if (!parts.empty()) {
      iovec& back = parts.back();
      if (reinterpret_cast<std::uint64_t>(back.iov_base) + back.iov_len == address) {
        back.iov_len += length_bytes;
        return;
      }
    }
    parts.push_back({reinterpret_cast<void*>(address), length_bytes});
  };
  append(local_parts_, source);
  append(remote_parts_, target);
  remote_bytes_ += length_bytes;
}

std::optional<Error> LocalPeer::write_remote() {
  if (remote_parts_.empty()) return std::nullopt;
  const std::uint64_t wanted = std::exchange(remote_bytes_, 0);
  ssize_t written = -1;
  int cause = ESRCH;
  // process_vm_writev takes a number, not a handle. The check just before it leaves a window of a
  // few instructions, in which the process would have to die, be reaped, and its number come round
  // again through the whole pid space.
  if (!process_) {
    cause = EPERM;  // the pid was not proven to be the peer's
  } else if (is_alive()) {
    written = ::process_vm_writev(pid_, local_parts_.data(), local_parts_.size(),
                                  remote_parts_.data(), remote_parts_.size(), 0);
    cause = errno;
  }
  local_parts_.clear();
  remote_parts_.clear();
  if (written == static_cast<ssize_t>(wanted)) return std::nullopt;
  return explain(written, cause);
}

Error LocalPeer::explain(std::int64_t written, int cause) {
  const std::string who = "writing into process " + std::to_string(pid_) + ": ";
  if (written >= 0 || cause == EFAULT) {
    return {Errc::io, who +
                          "source or target memory is not mapped (was a region freed before it "
                          "was unregistered?)"};
  }
  if (cause == ESRCH) {
    lose(Errc::unreachable, "it has exited");
    return loss_;
  }
  if (cause == EPERM || cause == ENOSYS || cause == EACCES) {
    const char* what = process_ ? "the kernel forbids process_vm_writev" : "its pid is not proven";
    return {Errc::unsupported,
            system_error(who + what, cause).text +
                "; let it register a pool made with SharedMemory, or use mooncake_tcp"};
  }
  return system_error(who + "process_vm_writev", cause);
}

bool LocalPeer::is_alive() const {
  if (!process_) return true;
  pollfd watched{process_.get(), POLLIN, 0};
  return ::poll(&watched, 1, 0) == 0;
}

}  // namespace baton::engine
