// The registry behind Counters.
#include "obs/counters.hpp"

namespace baton::obs {

Counter& Counters::counter(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto found = counters_.find(name);
  return found != counters_.end() ? found->second : counters_[std::string(name)];
}

std::vector<NamedCount> Counters::snapshot() const {
  const std::lock_guard lock(mutex_);
  std::vector<NamedCount> counts;
  counts.reserve(counters_.size());
  for (const auto& [name, counter] : counters_) counts.push_back({name, counter.value()});
  return counts;
}

}  // namespace baton::obs
