// REFENGINE_CHECK: a broken promise inside the engine stops the program, in release builds too.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace baton::refengine {

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: this must hold: %s\n", file, line, condition);
  std::abort();
}

}  // namespace baton::refengine

#define REFENGINE_CHECK(condition)    \
  ((condition) ? static_cast<void>(0) \
               : ::baton::refengine::check_failed(#condition, __FILE__, __LINE__))
