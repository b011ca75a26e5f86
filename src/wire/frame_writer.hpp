// FrameWriter: appends the fields of one message as frames and remembers the first that misfits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.hpp"
#include "base/frames.hpp"
#include "baton/result.hpp"
#include "baton/types.hpp"
#include "wire/lists.hpp"
#include "wire/numbers.hpp"
#include "wire/text.hpp"

namespace baton::wire {

// Holds what we send to the rules of FrameReader, so that everything we send decodes again.
class FrameWriter {
 public:
  // `message` names the message in errors and must outlive the writer.
  FrameWriter(std::string_view message, std::size_t frames_count);

  // A tag, a raw payload, or nothing: no rule applies.
  void bytes(std::string_view frame) { frames_.emplace_back(frame); }
  void empty() { frames_.emplace_back(); }

  void room(RoomId room);
  void decimal(const char* name, std::uint64_t value, DecimalRange range = {});
  void signed_decimal(std::int64_t value) { frames_.push_back(std::to_string(value)); }
  void endpoint(const Endpoint& endpoint);
  void name(const char* name, std::string_view value, Emptiness emptiness);
  template <class T>
  void array(const char* name, const std::vector<T>& values, std::size_t values_max);
  template <class T>
  void lists(const char* name, const Lists<T>& lists, ListLimits limits);

  // What only the encoder can see. The first one stays.
  void fail(const char* name, const std::string& what);

  Result<Frames> finish();

 private:
  std::string_view message_;
  Frames frames_;
  bool failed_ = false;
  Error error_;
};

}  // namespace baton::wire
