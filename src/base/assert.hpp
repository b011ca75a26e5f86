// BATON_ASSERT: broken invariants stop the program, in release builds too. Never for peer input.
#pragma once

namespace baton {

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace baton

#define BATON_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::baton::assertion_failed(#condition, __FILE__, __LINE__))
#define BATON_UNREACHABLE() ::baton::assertion_failed("unreachable", __FILE__, __LINE__)
