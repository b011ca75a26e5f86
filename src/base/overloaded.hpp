// overloaded: builds one visitor out of several lambdas, for std::visit.
#pragma once

namespace baton {

template <class... Functions>
struct overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
overloaded(Functions...) -> overloaded<Functions...>;

}  // namespace baton
