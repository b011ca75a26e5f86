// Fd: an owned file descriptor, and the sentence for a failed system call.
#pragma once

#include <string_view>
#include <utility>

#include "baton/result.hpp"

namespace baton::engine {

// Closes its descriptor; -1 owns nothing.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int descriptor) : descriptor_(descriptor) {}
  Fd(Fd&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      descriptor_ = std::exchange(other.descriptor_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }
  void reset();
  // Gives the descriptor away.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

// "<what>: <strerror(errno_value)>", as Errc::io.
Error system_error(std::string_view what, int errno_value);

}  // namespace baton::engine
