// FrameReader: reads the fields of one message out of its frames and remembers the first fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/address.hpp"
#include "base/frames.hpp"
#include "baton/result.hpp"
#include "core/messages.hpp"
#include "wire/lists.hpp"
#include "wire/numbers.hpp"
#include "wire/text.hpp"

namespace baton::wire {

// Where a value lies and what it is called in errors.
struct Field {
  std::size_t index = 0;
  const char* name = "";
};

// Readers keep going after a fault and answer defaults; finish() then answers the first fault. So
// a decoder is one straight list of fields. The frames must outlive the reader.
class FrameReader {
 public:
  // A message with fewer than `frames_min` frames, or more than kFramesMax, is a fault. Frames
  // beyond the ones that are read are ignored: newer peers append.
  FrameReader(std::string_view message, const Frames& frames, std::size_t frames_min);

  bool ok() const { return !failed_; }
  // Is the frame there and not empty? Both mean "not said" for most optional fields.
  bool has(std::size_t index) const { return index < frames_.size() && !frames_[index].empty(); }
  bool exists(std::size_t index) const { return index < frames_.size(); }

  RoomId room(Field field);
  std::uint64_t decimal(Field field, DecimalRange range = {});
  std::uint32_t u32(Field field, std::uint32_t min = 0);
  std::int64_t signed_decimal(Field field);
  // The host frame is at `index`, the port frame follows.
  Endpoint endpoint(std::size_t index);
  std::string name(Field field, Emptiness emptiness);
  // The frame as it is; empty if it is missing.
  std::string_view bytes(Field field);
  template <class T>
  std::vector<T> array(Field field, std::size_t values_max);
  template <class T>
  Lists<T> lists(Field field, ListLimits limits);

  // Faults that only the decoder can see. The first one stays.
  void fail(Field field, const std::string& what);

  template <class T>
  Result<Message> finish(T message) {
    if (failed_) return std::move(error_);
    return Message(std::move(message));
  }

 private:
  // Unwraps what a parser answered, or records its fault.
  template <class T>
  T take(Field field, Result<T> parsed);

  std::string_view message_;
  const Frames& frames_;
  bool failed_ = false;
  Error error_;
};

}  // namespace baton::wire
