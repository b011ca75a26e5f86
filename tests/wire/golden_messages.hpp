// Golden messages: core messages built from what a recording's sender was given or its parser read.
#pragma once

#include <optional>

#include "core/messages.hpp"
#include "wire/golden_data.hpp"

namespace baton::wire::test {

// From `config`: what our encoder would be asked to send.
Message message_to_send(const GoldenEntry& entry);
// From `parsed`: what our decoder should answer; nullopt if the reference has no message.
std::optional<Message> message_received(const GoldenEntry& entry);

}  // namespace baton::wire::test
