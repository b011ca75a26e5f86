// Named limits of the wire: a message beyond one of them is malformed, and we never send one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace baton::wire {

// Rooms are below 2^63. [spec 0.2]
inline constexpr std::uint64_t kRoomMax = (std::uint64_t{1} << 63) - 1;

// Frames in one message. The longest one today has 20; newer peers may append a few.
inline constexpr std::size_t kFramesMax = 64;

// Digits (and a sign) of a number. 2^64-1 has 20 digits; more can only be padding.
inline constexpr std::size_t kDecimalCharactersMax = 20;

// A host name or IP literal, and a session id or another peer-chosen name.
inline constexpr std::size_t kHostBytesMax = 255;
inline constexpr std::size_t kNameBytesMax = 4096;

// A failure reason; what is longer is cut, because losing the status would be worse.
inline constexpr std::size_t kReasonBytesMax = 1024;

// Pages of one request: 4 million tokens at page size 1.
inline constexpr std::size_t kPagesMax = std::size_t{1} << 22;

// Registered tensors of one kind, in one registration.
inline constexpr std::size_t kBuffersMax = std::size_t{1} << 16;

// State components: there are a dozen kinds, and each is listed once.
inline constexpr std::size_t kComponentsMax = 256;

// One row of an aux array.
inline constexpr std::size_t kAuxPayloadBytesMax = std::size_t{16} << 20;

}  // namespace baton::wire
