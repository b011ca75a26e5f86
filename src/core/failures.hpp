// Failures: the one table of all room failure texts. [spec 2.12, 3.13]
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/address.hpp"
#include "baton/types.hpp"

namespace baton::core::failures {

Failure aborted_here();
Failure aborted_by_decode();
Failure bootstrap_timeout(RoomId room, Duration elapsed);
Failure never_opened(RoomId room, Duration elapsed);
Failure waiting_timeout(RoomId room, Duration elapsed, std::size_t reports, std::uint32_t expected);
Failure session_dead(const std::string& session_id);
Failure kv_write_failed(RoomId room, const Endpoint& peer, const std::string& cause);
Failure state_write_failed(RoomId room, const Endpoint& peer, const std::string& cause);
Failure aux_write_failed(RoomId room, const std::string& cause);
Failure pages_missing(RoomId room, const Endpoint& peer, std::size_t published, IndexSlice slice);
Failure state_missing(RoomId room, const Endpoint& peer, std::size_t component, std::size_t local,
                      std::size_t remote);
Failure session_unregistered(RoomId room, const std::string& session_id);
Failure no_topology(const std::string& bootstrap_address, const std::string& cause);
Failure no_route(std::uint32_t dp, std::uint32_t cp, std::uint32_t tp, std::uint32_t pp,
                 const std::string& cause);
Failure incompatible(const std::string& bootstrap_address, const std::string& what);
Failure send_failed(std::string_view operation, const Endpoint& peer, const std::string& cause);
Failure connection_lost(const std::string& bootstrap_address);
Failure reported_by_prefill(const std::string& reason);

}  // namespace baton::core::failures
