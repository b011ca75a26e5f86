// Raises the number of file descriptors that this process may open.
#pragma once

#include <cstdint>

namespace baton::net {

// Lifts the soft limit to the hard one (what a user may do without rights) and returns it. For
// programs to call once at their start: it is a property of the whole process.
std::uint64_t raise_descriptor_limit();

}  // namespace baton::net
