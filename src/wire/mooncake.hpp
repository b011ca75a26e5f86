// The two messages whose frames are Mooncake's own: registration and metadata. [spec 5.2, 5.3]
#pragma once

#include <string_view>

#include "base/frames.hpp"
#include "baton/result.hpp"
#include "core/messages.hpp"

namespace baton::wire {

// Frame 0 of a registration; other messages have a room or another tag there.
inline constexpr std::string_view kRegistrationTag = "None";

// Always 20 frames. Peers that know fewer ignore the rest.
Result<Frames> encode_registration(const Registration& registration);
// Frames 10 to 19 are optional: older peers send 18, and what is absent has its default.
Result<Message> decode_registration(const Frames& frames);

// Always 10 frames. A dummy carries no pages, aux index, state or device pages, and nothing else
// may go without an aux index.
Result<Frames> encode_metadata(const Metadata& metadata);
// Frames 8 and 9 are optional. A dummy is what has neither pages nor an aux index; its other lists
// are not read.
Result<Message> decode_metadata(const Frames& frames);

}  // namespace baton::wire
