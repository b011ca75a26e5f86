// Wakeup: lets one thread end another one's sleep; Intake: a queue that does so.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "baton/types.hpp"

namespace baton::cli {

class Wakeup {
 public:
  Wakeup();
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  int descriptor() const { return descriptor_; }
  void raise();
  void clear();

 private:
  int descriptor_ = -1;
};

// Sleeps until one of the descriptors is readable or the time is over.
void sleep_on(int first, int second, Duration longest);

// Any thread puts in, one takes out.
template <class T>
class Intake {
 public:
  // False: `limit` items wait already.
  bool put(T item, std::size_t limit) {
    {
      const std::lock_guard lock(mutex_);
      if (items_.size() >= limit) return false;
      items_.push_back(std::move(item));
    }
    wakeup_.raise();
    return true;
  }

  std::optional<T> take() {
    const std::lock_guard lock(mutex_);
    if (items_.empty()) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  Wakeup& wakeup() { return wakeup_; }

 private:
  std::mutex mutex_;
  std::deque<T> items_;  // guarded by mutex_
  Wakeup wakeup_;
};

}  // namespace baton::cli
