// memmove and recvmsg, without interception where a sanitizer would intercept them.
#include "engine/remote_write.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace baton::engine {

#if defined(__SANITIZE_THREAD__)

__attribute__((no_sanitize("thread"))) void remote_copy(void* target, const void* source,
                                                        std::size_t length_bytes) {
  // Volatile, so that the compiler does not turn the loop into a call of memcpy. The engines never
  // copy overlapping ranges except onto themselves.
  auto* to = static_cast<volatile char*>(target);
  const auto* from = static_cast<const char*>(source);
  for (std::size_t i = 0; i < length_bytes; ++i) to[i] = from[i];
}

ssize_t remote_receive(int socket, msghdr* message, int flags) {
  return ::syscall(SYS_recvmsg, socket, message, flags);
}

#else

void remote_copy(void* target, const void* source, std::size_t length_bytes) {
  std::memmove(target, source, length_bytes);
}

ssize_t remote_receive(int socket, msghdr* message, int flags) {
  return ::recvmsg(socket, message, flags);
}

#endif

}  // namespace baton::engine
