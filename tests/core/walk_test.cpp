// A seeded random walk of a prefill and three decode ranks: valid and invalid calls, late, lost and
// failing messages, writes that fail or hang, and time. The invariants hold after every step, and
// when the trouble ends everything ends.
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/core_printer.hpp"
#include "support/core_world.hpp"

namespace {

using namespace baton;
using namespace baton::core;
using test::World;

constexpr int kSeeds = 50;
constexpr int kSteps = 20'000;

// D serves rooms 1..3 alone; E and F share rooms 4..5, as two ranks of a wider decode.
const std::string kPrefill = "P";
const std::vector<std::string> kDecodes = {"D", "E", "F"};
const std::string kBootstrap = "boot:80";

class Walk {
 public:
  explicit Walk(std::uint64_t seed) : random_(seed) {
    world_.keep_log(false);
    world_.add_prefill(kPrefill, PrefillConfig{});
    for (const std::string& name : kDecodes) {
      world_.add_decode(name, DecodeConfig{}, name == "D" ? 1 : 2);
    }
  }

  World& world() { return world_; }
  void step();
  // The trouble ends: everything is delivered, answered and completed, and time passes.
  void settle();
  // What has not ended although it could have. Rooms that wait for their application are excused.
  std::vector<std::string> unfinished();
  // The applications let go of everything.
  void clear_all();
  // What is left in the nodes when nobody needs them any more.
  std::vector<std::string> leftovers();

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& values) {
    return values[below(values.size())];
  }

  RoomId random_room(const std::string& name);
  RoomKey random_key(const std::string& name);
  void open();
  void init();
  void send();
  void publish();
  template <class Event>
  void end(const std::string& name);
  void move_message();
  void finish_write();
  void answer_bootstrap(bool may_fail);
  void pass_time();
  void say_nonsense();

  std::mt19937_64 random_;
  World world_;
  std::map<RoomId, std::uint32_t> published_pages_;
  std::map<RoomKey, std::uint32_t> announced_pages_;
  std::vector<RoomKey> old_keys_;
  std::set<Ticket> unsettled_;
  PageIndex next_page_ = 0;
  std::uint32_t next_aux_ = 0;
};

RoomId Walk::random_room(const std::string& name) {
  if (name == kPrefill) return RoomId{1 + below(5)};
  return name == "D" ? RoomId{1 + below(3)} : RoomId{4 + below(2)};
}

// Mostly the handle that the application holds; now and then one of an earlier life.
RoomKey Walk::random_key(const std::string& name) {
  if (!old_keys_.empty() && chance(3)) return pick(old_keys_);
  const RoomId room = random_room(name);
  const auto& keys =
      name == kPrefill ? world_.prefills().at(name).keys : world_.decodes().at(name).keys;
  const auto found = keys.find(room);
  if (found == keys.end()) return {room, Life{0}};
  if (chance(1)) old_keys_.push_back(found->second);
  return found->second;
}

void Walk::open() {
  if (chance(50)) {
    (void)world_.apply(kPrefill, OpenSender{random_room(kPrefill)});
    return;
  }
  const std::string& name = pick(kDecodes);
  (void)world_.apply(name, OpenReceiver{random_room(name), kBootstrap, std::nullopt});
}

// Mostly when it makes sense: with the number of pages that decode has published.
void Walk::init() {
  const RoomKey key = random_key(kPrefill);
  const auto known = published_pages_.find(key.room);
  const std::uint32_t pages = known != published_pages_.end() && chance(97)
                                  ? known->second
                                  : static_cast<std::uint32_t>(below(4));
  const PrefillRoom* room = world_.prefills().at(kPrefill).node.find(key);
  const bool is_ready = room != nullptr && room->phase() == PrefillRoom::Phase::ready;
  if (!is_ready && chance(95)) return;
  if (world_.apply(kPrefill, InitSender{key, pages, 0})) announced_pages_[key] = pages;
}

// Mostly what is still missing, in one or more chunks; sometimes anything.
void Walk::send() {
  SendChunk chunk;
  chunk.key = random_key(kPrefill);
  const PrefillRoom* room = world_.prefills().at(kPrefill).node.find(chunk.key);
  const auto announced = announced_pages_.find(chunk.key);
  std::uint64_t count = below(4);
  if (room != nullptr && announced != announced_pages_.end() && chance(90)) {
    const std::uint32_t missing = announced->second - room->metric().pages;
    count = chance(50) ? missing : below(missing + 1);
  }
  chunk.pages.assign(count, 0);
  if (chance(5)) chunk.last = chance(50);
  (void)world_.apply(kPrefill, std::move(chunk));
}

// Every page and aux row is used once, so that the ledger can tell whose it is.
void Walk::publish() {
  const std::string& name = pick(kDecodes);
  Publish publish;
  publish.key = random_key(name);
  const auto known = published_pages_.find(publish.key.room);
  // The ranks of one decode publish the same number of pages.
  const std::uint64_t count =
      name != "D" && known != published_pages_.end() && chance(90) ? known->second : below(4);
  for (std::uint64_t page = 0; page < count; ++page) publish.pages.push_back(next_page_++);
  publish.aux_index = next_aux_++;
  const RoomId room = publish.key.room;
  if (world_.apply(name, std::move(publish))) {
    published_pages_[room] = static_cast<std::uint32_t>(count);
  }
}

// Mostly when the room is over.
template <class Event>
void Walk::end(const std::string& name) {
  const RoomKey key = random_key(name);
  const auto is_over = [&](const auto& node) {
    const auto* room = node.find(key);
    return room != nullptr && is_terminal(room->status());
  };
  const bool over = name == kPrefill ? is_over(world_.prefills().at(name).node)
                                     : is_over(world_.decodes().at(name).node);
  if (over || chance(5)) (void)world_.apply(name, Event{key});
}

void Walk::move_message() {
  std::vector<World::Link> full;
  for (const auto& [link, queue] : world_.links()) {
    if (!queue.empty()) full.push_back(link);
  }
  if (full.empty()) return;
  const World::Link link = pick(full);
  const std::uint64_t fate = below(100);
  if (fate < 96) {
    (void)world_.deliver(link);
    return;
  }
  Message message = world_.take(link);
  if (fate < 98) return;  // lost without a word
  (void)world_.apply(link.first,
                     SendFailed{World::endpoint_of(link.second), std::move(message), "lost"});
}

void Walk::finish_write() {
  std::vector<Ticket> open;
  for (const auto& [ticket, owner] : world_.prefills().at(kPrefill).node.shared().tickets) {
    open.push_back(ticket);
  }
  if (open.empty()) return;
  WriteDone done;
  done.ticket = pick(open);
  const std::uint64_t fate = below(100);
  if (unsettled_.contains(done.ticket)) {
    done.outcome = fate < 80 ? Outcome::settled : Outcome::unsettled;
  } else {
    done.outcome = fate < 90 ? Outcome::ok : fate < 97 ? Outcome::failed : Outcome::unsettled;
  }
  done.session_broken = done.outcome == Outcome::failed && chance(30);
  if (done.outcome == Outcome::unsettled) {
    unsettled_.insert(done.ticket);
  } else {
    unsettled_.erase(done.ticket);
  }
  (void)world_.apply(kPrefill, done);
}

void Walk::answer_bootstrap(bool may_fail) {
  const Error error{Errc::unreachable, "not ready"};
  for (auto& [name, site] : world_.decodes()) {
    if (!site.topologies_asked.empty()) {
      const std::string address = site.topologies_asked.front();
      site.topologies_asked.pop_front();
      const bool fails = may_fail && chance(20);
      (void)world_.apply(
          name, fails ? TopologyReply{address, error} : TopologyReply{address, PrefillInfo{}});
    }
    if (!site.routes_asked.empty()) {
      const RouteKey route = site.routes_asked.front();
      site.routes_asked.pop_front();
      const bool fails = may_fail && chance(20);
      (void)world_.apply(
          name, fails ? RouteReply{route, error} : RouteReply{route, World::endpoint_of(kPrefill)});
    }
  }
}

void Walk::pass_time() {
  const std::uint64_t kind = below(100);
  const std::uint64_t seconds = kind < 90 ? below(3) : kind < 98 ? below(40) : below(400);
  world_.advance(std::chrono::seconds(seconds));
}

// Events that no healthy world produces; none of them may be believed.
void Walk::say_nonsense() {
  const std::string& name = pick(kDecodes);
  const RoomId room = random_room(name);
  WriteDone unknown;
  unknown.ticket = Ticket{1'000'000'000 + below(10)};
  switch (below(8)) {
    case 0: (void)world_.apply(kPrefill, unknown); break;
    case 1: (void)world_.apply(name, MessageReceived{Status{room, 3, 0, ""}}); break;
    case 2: (void)world_.apply(name, MessageReceived{AbortAck{room, 0, 0}}); break;
    case 3: (void)world_.apply(name, MessageReceived{AbortAck{room, 0, std::nullopt}}); break;
    case 4: (void)world_.apply(name, MessageReceived{Abort{room, std::nullopt, 1}}); break;
    case 5: (void)world_.apply(kPrefill, MessageReceived{Status{room, 4, 0, ""}}); break;
    case 6: (void)world_.apply(name, TopologyReply{"elsewhere:80", PrefillInfo{}}); break;
    case 7: (void)world_.apply(name, PeerDisconnected{World::endpoint_of(kPrefill)}); break;
  }
}

void Walk::step() {
  const std::uint64_t kind = below(1000);
  if (kind < 80) return open();
  if (kind < 130) return init();
  if (kind < 230) return send();
  if (kind < 310) return publish();
  if (kind < 320) return end<AbortRoom>(kPrefill);
  if (kind < 330) return end<AbortRoom>(pick(kDecodes));
  if (kind < 380) return end<ClearRoom>(kPrefill);
  if (kind < 420) return end<ClearRoom>(pick(kDecodes));
  if (kind < 430) return end<Observe>(kPrefill);
  if (kind < 440) return end<Observe>(pick(kDecodes));
  if (kind < 700) return move_message();
  if (kind < 880) return finish_write();
  if (kind < 970) return answer_bootstrap(true);
  if (kind < 990) return pass_time();
  say_nonsense();
}

// --- the end ------------------------------------------------------------------------------------

void Walk::settle() {
  for (int round = 0; round < 100; ++round) {
    const auto& node = world_.prefills().at(kPrefill).node;
    while (!node.shared().tickets.empty()) {
      WriteDone done;
      done.ticket = node.shared().tickets.begin()->first;
      done.outcome = unsettled_.contains(done.ticket) ? Outcome::settled : Outcome::ok;
      (void)world_.apply(kPrefill, done);
    }
    answer_bootstrap(false);
    world_.deliver_all();
    if (const auto due = world_.next_deadline()) world_.advance(*due - world_.now());
  }
}

std::vector<std::string> Walk::unfinished() {
  std::vector<std::string> rooms;
  const auto add = [&](const std::string& name, const auto& room) {
    rooms.push_back(name + ": " + test::print_key(room.key()) + " " +
                    std::string(to_string(room.phase())));
  };
  for (const auto& [id, room] : world_.prefills().at(kPrefill).node.rooms()) {
    switch (room.phase()) {
      case PrefillRoom::Phase::ready:
      case PrefillRoom::Phase::sending:  // the application's turn
      case PrefillRoom::Phase::concluded_success:
      case PrefillRoom::Phase::concluded_failed: break;
      default: add(kPrefill, room);
    }
  }
  for (const auto& [name, site] : world_.decodes()) {
    for (const auto& [id, room] : site.node.rooms()) {
      switch (room.phase()) {
        case DecodeRoom::Phase::bootstrapped:  // the application's turn
        case DecodeRoom::Phase::concluded_success:
        case DecodeRoom::Phase::concluded_failed: break;
        default: add(name, room);
      }
    }
  }
  return rooms;
}

void Walk::clear_all() {
  for (const auto& [room, key] : world_.prefills().at(kPrefill).keys) {
    (void)world_.apply(kPrefill, ClearRoom{key});
  }
  for (const auto& [name, site] : world_.decodes()) {
    for (const auto& [room, key] : site.keys) (void)world_.apply(name, ClearRoom{key});
  }
}

std::vector<std::string> Walk::leftovers() {
  std::vector<std::string> left;
  const auto& prefill = world_.prefills().at(kPrefill).node;
  if (!prefill.rooms().empty()) left.push_back("P: rooms");
  if (!prefill.shared().tickets.empty()) left.push_back("P: tickets");
  if (prefill.next_deadline()) left.push_back("P: a deadline");
  for (const auto& [name, site] : world_.decodes()) {
    if (!site.node.rooms().empty()) left.push_back(name + ": rooms");
    if (site.node.next_deadline()) left.push_back(name + ": a deadline");
  }
  return left;
}

// Walks the same way again, with the log on: what led to the broken invariant.
std::string story_of(std::uint64_t seed, int steps) {
  Walk walk(seed);
  for (int step = 0; step < steps; ++step) {
    walk.world().keep_log(step + 200 > steps);
    walk.step();
  }
  std::string text;
  for (const std::string& line : walk.world().take_log()) text += line + "\n";
  return text;
}

class RandomWalk : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomWalk, KeepsTheInvariantsAndComesToAnEnd) {
  const std::uint64_t seed = GetParam();
  Walk walk(seed);
  for (int step = 1; step <= kSteps; ++step) {
    walk.step();
    ASSERT_TRUE(walk.world().problems().empty())
        << "seed " << seed << ", step " << step << ": " << walk.world().problems().front() << "\n"
        << story_of(seed, step);
  }
  walk.settle();
  EXPECT_TRUE(walk.world().problems().empty())
      << "seed " << seed << ": " << walk.world().problems().front();
  for (const std::string& room : walk.unfinished())
    ADD_FAILURE() << "seed " << seed << ": " << room;
  walk.clear_all();
  walk.settle();
  for (const std::string& what : walk.leftovers()) ADD_FAILURE() << "seed " << seed << ": " << what;
  EXPECT_TRUE(walk.world().problems().empty())
      << "seed " << seed << ": " << walk.world().problems().front();
  // A walk that never gets anywhere proves nothing.
  for (int counter = 0; counter < static_cast<int>(Counter::count); ++counter) {
    const auto which = static_cast<Counter>(counter);
    // Metadata overtakes its registration only where that was lost: not in every walk.
    if (which == Counter::drop_limit || which == Counter::metadata_unregistered) continue;
    EXPECT_GT(walk.world().counted(which), 0U) << to_string(which) << ", seed " << seed;
  }
  EXPECT_GT(walk.world().counted(Counter::rooms_succeeded), 50U) << "seed " << seed;
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomWalk, testing::Range<std::uint64_t>(1, kSeeds + 1));

}  // namespace
