// EventFlag: a descriptor that becomes readable when somebody raises it. Raising twice costs once.
#pragma once

#include <atomic>

namespace baton::runtime {

// Threads: any. raise() makes a system call only when the flag was down.
class EventFlag {
 public:
  EventFlag();
  ~EventFlag();
  EventFlag(const EventFlag&) = delete;
  EventFlag& operator=(const EventFlag&) = delete;

  int descriptor() const { return descriptor_; }
  void raise();
  // Takes the flag down; what was raised before is seen by a look after this call.
  void lower();

 private:
  int descriptor_ = -1;
  std::atomic<bool> raised_{false};
};

}  // namespace baton::runtime
