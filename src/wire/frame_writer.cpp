// Writing of fields, with errors that name the message and the field.
#include "wire/frame_writer.hpp"

#include <utility>

#include "wire/limits.hpp"

namespace baton::wire {

FrameWriter::FrameWriter(std::string_view message, std::size_t frames_count) : message_(message) {
  frames_.reserve(frames_count);
}

void FrameWriter::fail(const char* name, const std::string& what) {
  if (failed_) return;
  failed_ = true;
  error_ = {Errc::invalid_argument, std::string(message_) + " frame " +
                                        std::to_string(frames_.size()) + " (" + name +
                                        "): " + what};
}

void FrameWriter::decimal(const char* name, std::uint64_t value, DecimalRange range) {
  if (const Result<void> checked = check_range(value, range); !checked) {
    fail(name, checked.error().text);
  }
  frames_.push_back(std::to_string(value));
}

void FrameWriter::room(RoomId room) { decimal("room", room.value, {0, kRoomMax}); }

void FrameWriter::endpoint(const Endpoint& endpoint) {
  if (const Result<void> checked = check_host(endpoint.host); !checked) {
    fail("host", checked.error().text);
  }
  frames_.push_back(endpoint.host);
  decimal("port", endpoint.port, {1, 65535});
}

void FrameWriter::name(const char* name, std::string_view value, Emptiness emptiness) {
  if (const Result<void> checked = check_name(value, emptiness); !checked) {
    fail(name, checked.error().text);
  }
  frames_.emplace_back(value);
}

template <class T>
void FrameWriter::array(const char* name, const std::vector<T>& values, std::size_t values_max) {
  Result<std::string> frame = pack(values, values_max);
  if (!frame) return fail(name, frame.error().text);
  frames_.push_back(std::move(*frame));
}

template <class T>
void FrameWriter::lists(const char* name, const Lists<T>& lists, ListLimits limits) {
  Result<std::string> frame = pack_lists(lists, limits);
  if (!frame) return fail(name, frame.error().text);
  frames_.push_back(std::move(*frame));
}

Result<Frames> FrameWriter::finish() {
  if (failed_) return std::move(error_);
  return std::move(frames_);
}

template void FrameWriter::array(const char*, const std::vector<std::uint64_t>&, std::size_t);
template void FrameWriter::array(const char*, const std::vector<std::uint32_t>&, std::size_t);
template void FrameWriter::array(const char*, const std::vector<std::int32_t>&, std::size_t);
template void FrameWriter::lists(const char*, const Lists<std::uint64_t>&, ListLimits);
template void FrameWriter::lists(const char*, const Lists<std::uint32_t>&, ListLimits);
template void FrameWriter::lists(const char*, const Lists<std::int32_t>&, ListLimits);

}  // namespace baton::wire
