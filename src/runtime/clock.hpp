// clock: the only place of the runtime that asks what time it is.
#pragma once

#include "baton/types.hpp"

namespace baton::runtime {

inline Instant now() { return Clock::now(); }

}  // namespace baton::runtime
