// epoll over an eventfd, a timerfd and the engine's sockets.
#include "engine/waker.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace baton::engine {

Result<Waker> Waker::create() {
  Waker waker;
  waker.epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!waker.epoll_) return system_error("epoll_create1", errno);
  waker.work_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!waker.work_) return system_error("eventfd", errno);
  // steady_clock is CLOCK_MONOTONIC here, so deadlines can be absolute.
  waker.timer_ = Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!waker.timer_) return system_error("timerfd_create", errno);
  for (const int descriptor : {waker.work_.get(), waker.timer_.get()}) {
    if (Result<void> added = waker.watch(descriptor, EPOLLIN, kOwnKey); !added) {
      return added.error();
    }
  }
  return waker;
}

void Waker::set_work(bool has_work) {
  if (has_work == has_work_) return;
  has_work_ = has_work;
  std::uint64_t value = 1;
  // Neither call can fail: the counter is 0 before the write and 1 before the read.
  const ssize_t done = has_work ? ::write(work_.get(), &value, sizeof value)
                                : ::read(work_.get(), &value, sizeof value);
  static_cast<void>(done);
}

void Waker::set_deadline(std::optional<Instant> deadline) {
  if (deadline == deadline_) return;
  deadline_ = deadline;
  itimerspec when{};
  if (deadline) {
    const auto since =
        std::chrono::duration_cast<std::chrono::nanoseconds>(deadline->time_since_epoch()).count();
    when.it_value.tv_sec = static_cast<time_t>(since / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(since % 1'000'000'000);
  }
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

Result<void> Waker::watch(int descriptor, std::uint32_t events, std::uint64_t key) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0) return {};
  return system_error("epoll_ctl", errno);
}

void Waker::change(int descriptor, std::uint32_t events, std::uint64_t key) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event);
}

}  // namespace baton::engine
