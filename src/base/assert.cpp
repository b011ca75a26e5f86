// Prints the broken invariant and aborts.
#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace baton {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "baton: broken invariant: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace baton
