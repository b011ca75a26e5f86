// Signals through a signalfd.
#include "cli/signals.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "cli/options.hpp"

namespace baton::cli {

namespace {

sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGCHLD);
  return set;
}

}  // namespace

void block_stop_signals() {
  const sigset_t set = stop_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

void restore_default_signals() {
  std::signal(SIGPIPE, SIG_DFL);
  const sigset_t set = stop_set();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

Error interrupted() { return {Errc::closed, "interrupted"}; }

bool is_interrupted(const Error& error) { return error == interrupted(); }

Result<StopSignals> StopSignals::create() {
  const sigset_t set = stop_set();
  const int descriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor < 0) return Error{Errc::io, std::string("signalfd: ") + std::strerror(errno)};
  return StopSignals(descriptor);
}

StopSignals::StopSignals(StopSignals&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

StopSignals& StopSignals::operator=(StopSignals&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

StopSignals::~StopSignals() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::optional<int> StopSignals::take() const {
  signalfd_siginfo info{};
  if (read(descriptor_, &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

void StopSignals::wait_for_stop() const {
  for (;;) {
    pollfd entry{descriptor_, POLLIN, 0};
    if (poll(&entry, 1, -1) < 0 && errno != EINTR) return;
    const std::optional<int> signal = take();
    if (signal == SIGINT || signal == SIGTERM) return;
  }
}

ExitOnStop::ExitOnStop(const StopSignals& signals)
    : thread_([this, &signals] {
        pollfd entries[2] = {{signals.descriptor(), POLLIN, 0}, {over_.descriptor(), POLLIN, 0}};
        for (;;) {
          poll(entries, 2, -1);
          if (entries[1].revents != 0) return;
          const std::optional<int> signal = signals.take();
          if (signal == SIGINT || signal == SIGTERM) std::_Exit(kExitInterrupted);
        }
      }) {}

ExitOnStop::~ExitOnStop() {
  over_.raise();
  thread_.join();
}

}  // namespace baton::cli
