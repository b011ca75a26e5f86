// Dialect: turns core messages into frames and back. Stateless; malformed input is an Error.
#pragma once

#include <string_view>

#include "base/frames.hpp"
#include "baton/result.hpp"
#include "core/messages.hpp"

namespace baton::wire {

// Whose PULL socket the frames arrived at: the same bytes mean different messages there.
enum class Side : unsigned char { prefill, decode };

// Threads: any; a dialect has no state.
class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual std::string_view name() const = 0;
  // Errors: unsupported (this dialect cannot express the message), invalid_argument (a value does
  // not fit its field). Nothing is sent then.
  virtual Result<Frames> encode(const Message& message) const = 0;
  // Errors: malformed, with what was expected and what was found. Never throws.
  virtual Result<Message> decode(Side at, const Frames& frames) const = 0;
};

// The Mooncake frames of the reference, state R2, R1 accepted.
const Dialect& mooncake();

}  // namespace baton::wire
