// PrefillNode: one prefill rank as a value. Events in, an ordered list of actions out.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "baton/result.hpp"
#include "core/actions.hpp"
#include "core/deadlines.hpp"
#include "core/events.hpp"
#include "core/prefill_room.hpp"

namespace baton::core {

class PrefillNode {
 public:
  // Rooms that decode announced and no one opened here: beyond this, metadata is dropped.
  static constexpr std::size_t kAnnouncedRoomsMax = 65536;
  static constexpr std::size_t kSessionsMax = 65536;

  explicit PrefillNode(PrefillConfig config) { shared_.config = config; }

  // Runs to completion; never blocks, never throws. An Error means that the event was refused and
  // changed nothing. The key is that of the room concerned, if there is one.
  Result<RoomKey> step(Instant now, PrefillEvent event, Actions& out);

  std::optional<Instant> next_deadline() const { return deadlines_.next(); }
  // nullptr when the room, or this life of it, is gone.
  const PrefillRoom* find(RoomKey key) const;
  const std::map<RoomId, PrefillRoom>& rooms() const { return rooms_; }
  const PrefillShared& shared() const { return shared_; }

  friend bool operator==(const PrefillNode&, const PrefillNode&) = default;

 private:
  Result<RoomKey> on_open(Instant now, RoomId room, Actions& out);
  void on_message(Instant now, const Message& message, Actions& out);
  void on_registration(const Registration& registration, Actions& out);
  void on_metadata(Instant now, const Metadata& metadata, Actions& out);
  void on_abort_message(Instant now, const Abort& message, Actions& out);
  void on_write_done(Instant now, const WriteDone& done, Actions& out);
  void on_tick(Instant now, Actions& out);
  PrefillRoom* find_live(RoomKey key);
  Life take_life();
  // Brings timers and the room table up to date after an event touched the room.
  void settle(RoomId room, Actions& out);

  PrefillShared shared_;
  std::map<RoomId, PrefillRoom> rooms_;
  Deadlines<RoomId> deadlines_;
  Life next_life_{1};
  std::size_t announced_count_ = 0;
};

}  // namespace baton::core
