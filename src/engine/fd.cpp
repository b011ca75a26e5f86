// Closing descriptors and naming failed system calls.
#include "engine/fd.hpp"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace baton::engine {

void Fd::reset() {
  if (descriptor_ < 0) return;
  const int saved = errno;
  ::close(descriptor_);
  errno = saved;
  descriptor_ = -1;
}

Error system_error(std::string_view what, int errno_value) {
  // std::strerror shares one buffer between threads; the category does not.
  return Error{Errc::io, std::string(what) + ": " + std::generic_category().message(errno_value)};
}

}  // namespace baton::engine
