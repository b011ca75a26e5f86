// Random messages: seeded generators of everything that the protocol can say, and its normal form.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "core/messages.hpp"
#include "wire/dialect.hpp"

namespace baton::wire::test {

using Random = std::mt19937_64;

// A message of the given kind (an index into Message) that every peer could send.
Message random_message(Random& random, std::size_t kind);

// One message of each kind and form, R1 and R2.
std::vector<Message> sample_messages();

Side receiver_of(const Message& message);

// What remains of a message after Mooncake frames: a status has no reason, and "no prefix" is 0.
Message after_mooncake(Message message);

}  // namespace baton::wire::test
