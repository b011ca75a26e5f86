// Reading of fields, with errors that name the message, the frame and the field.
#include "wire/frame_reader.hpp"

#include <limits>

#include "wire/limits.hpp"

namespace baton::wire {

FrameReader::FrameReader(std::string_view message, const Frames& frames, std::size_t frames_min)
    : message_(message), frames_(frames) {
  if (frames.size() >= frames_min && frames.size() <= kFramesMax) return;
  failed_ = true;
  error_ = {Errc::malformed, std::string(message) + ": expected " + std::to_string(frames_min) +
                                 " to " + std::to_string(kFramesMax) + " frames, found " +
                                 std::to_string(frames.size())};
}

void FrameReader::fail(Field field, const std::string& what) {
  if (failed_) return;
  failed_ = true;
  error_ = {Errc::malformed, std::string(message_) + " frame " + std::to_string(field.index) +
                                 " (" + field.name + "): " + what};
}

template <class T>
T FrameReader::take(Field field, Result<T> parsed) {
  if (parsed) return std::move(*parsed);
  fail(field, parsed.error().text);
  return T{};
}

std::string_view FrameReader::bytes(Field field) {
  if (failed_) return {};
  if (field.index < frames_.size()) return frames_[field.index];
  fail(field, "expected a frame, found the end of the message");
  return {};
}

std::uint64_t FrameReader::decimal(Field field, DecimalRange range) {
  const std::string_view text = bytes(field);
  if (failed_) return 0;
  return take(field, parse_decimal(text, range));
}

RoomId FrameReader::room(Field field) { return {decimal(field, {0, kRoomMax})}; }

std::uint32_t FrameReader::u32(Field field, std::uint32_t min) {
  const DecimalRange range{min, std::numeric_limits<std::uint32_t>::max()};
  return static_cast<std::uint32_t>(decimal(field, range));
}

std::int64_t FrameReader::signed_decimal(Field field) {
  const std::string_view text = bytes(field);
  if (failed_) return 0;
  return take(field, parse_signed_decimal(text));
}

Endpoint FrameReader::endpoint(std::size_t index) {
  const Field host_field{index, "host"};
  const std::string_view host = bytes(host_field);
  if (failed_) return {};
  if (const Result<void> checked = check_host(host); !checked) {
    fail(host_field, checked.error().text);
  }
  const std::uint64_t port = decimal({index + 1, "port"}, {1, 65535});
  return {std::string(host), static_cast<std::uint16_t>(port)};
}

std::string FrameReader::name(Field field, Emptiness emptiness) {
  const std::string_view text = bytes(field);
  if (failed_) return {};
  if (const Result<void> checked = check_name(text, emptiness); !checked) {
    fail(field, checked.error().text);
  }
  return std::string(text);
}

template <class T>
std::vector<T> FrameReader::array(Field field, std::size_t values_max) {
  const std::string_view frame = bytes(field);
  if (failed_) return {};
  return take(field, unpack<T>(frame, values_max));
}

template <class T>
Lists<T> FrameReader::lists(Field field, ListLimits limits) {
  const std::string_view frame = bytes(field);
  if (failed_) return {};
  return take(field, unpack_lists<T>(frame, limits));
}

template std::vector<std::uint64_t> FrameReader::array(Field, std::size_t);
template std::vector<std::uint32_t> FrameReader::array(Field, std::size_t);
template std::vector<std::int32_t> FrameReader::array(Field, std::size_t);
template Lists<std::uint64_t> FrameReader::lists(Field, ListLimits);
template Lists<std::uint32_t> FrameReader::lists(Field, ListLimits);
template Lists<std::int32_t> FrameReader::lists(Field, ListLimits);

}  // namespace baton::wire
