// Writing into memory on behalf of a peer, as a network card would: unseen by the thread sanitizer.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>

namespace baton::engine {

// Whoever reads the memory learns through a message of the peer that it may; the sanitizer cannot
// follow that path through sockets and would report a race for every byte. Without the sanitizer
// these are memmove and recvmsg.
void remote_copy(void* target, const void* source, std::size_t length_bytes);
ssize_t remote_receive(int socket, msghdr* message, int flags);

}  // namespace baton::engine
