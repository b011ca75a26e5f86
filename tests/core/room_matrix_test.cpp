// Every phase of both rooms meets every kind of event; the tables in tests/golden and the graphs in
// docs/diagrams are the answer. BATON_REWRITE=1 rewrites them: the diff is the change.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/decode_node.hpp"
#include "core/prefill_node.hpp"
#include "support/core_printer.hpp"
#include "support/golden_file.hpp"

namespace {

using namespace baton;
using namespace baton::core;

const std::filesystem::path kRoot = BATON_SOURCE_DIR;
const Instant kStart = Instant{} + std::chrono::hours(1);
const RoomKey kKey{RoomId{7}, Life{1}};
const Endpoint kDecode{"D", 1};
const Endpoint kPrefill{"P", 1};

// One line of the table.
struct Cell {
  std::string row, event, phase_before, phase_after, what;
};

template <class Event>
struct Named {
  std::string name;
  Event event;
  Duration after = Duration::zero();  // since the row was built
};

// --- prefill ------------------------------------------------------------------------------------

Registration registration() {
  Registration message;
  message.endpoint = kDecode;
  message.session_id = "D-engine:1";
  return message;
}

Metadata metadata_of(const Endpoint& endpoint) {
  Metadata message;
  message.room = kKey.room;
  message.endpoint = endpoint;
  message.session_id = endpoint.host + "-engine:1";
  message.kv_pages = {10, 11};
  message.aux_index = 3;
  message.decode_prefix_tokens = 64;
  return message;
}

WriteDone done(std::uint64_t ticket, Outcome outcome) {
  WriteDone event;
  event.ticket = Ticket{ticket};
  event.outcome = outcome;
  if (outcome != Outcome::ok) event.reason = "cause";
  return event;
}

SendChunk chunk(std::vector<PageIndex> pages) { return {kKey, std::move(pages), {}, std::nullopt}; }

struct PrefillRow {
  std::string name;
  std::vector<PrefillEvent> story;
};

// How each phase is reached. Tickets: 1 is the first chunk's, 2 and 3 the last one's.
std::vector<PrefillRow> prefill_rows() {
  const PrefillEvent known = MessageReceived{registration()};
  const PrefillEvent metadata = MessageReceived{metadata_of(kDecode)};
  const PrefillEvent init = InitSender{kKey, 2, 4};
  const std::vector<PrefillEvent> ready = {known, OpenSender{kKey.room}, init, metadata};
  const auto after = [&](std::vector<PrefillEvent> more) {
    more.insert(more.begin(), ready.begin(), ready.end());
    return more;
  };
  return {
      {"announced", {known, metadata}},
      {"awaiting_metadata", {known, OpenSender{kKey.room}}},
      {"ready (no init)", {known, OpenSender{kKey.room}, metadata}},
      {"ready", ready},
      {"sending", after({chunk({0})})},
      {"sending (quiet)", after({chunk({0}), done(1, Outcome::ok)})},
      {"draining", after({chunk({0}), chunk({1}), done(2, Outcome::ok), done(3, Outcome::ok)})},
      {"failed_draining", after({chunk({0}), AbortRoom{kKey}})},
      {"closed_draining", after({chunk({0}), ClearRoom{kKey}})},
      {"concluded_success", after({chunk({0, 1}), done(1, Outcome::ok), done(2, Outcome::ok)})},
      {"concluded_failed", after({AbortRoom{kKey}})},
  };
}

std::vector<Named<PrefillEvent>> prefill_events() {
  const auto receive = [](Message message) { return MessageReceived{std::move(message)}; };
  SendChunk contradictory = chunk({1});
  contradictory.last = false;
  Metadata dummy = metadata_of({"E", 1});
  dummy.is_dummy = true;
  return {
      {"open", OpenSender{kKey.room}},
      {"init", InitSender{kKey, 2, 4}},
      {"send 1 page", chunk({1})},
      {"send 2 pages", chunk({0, 1})},
      {"send 3 pages", chunk({0, 1, 2})},
      {"send nothing", chunk({})},
      {"send, not last", contradictory},
      {"abort", AbortRoom{kKey}},
      {"clear", ClearRoom{kKey}},
      {"observe", Observe{kKey}, std::chrono::seconds(2)},
      {"other life: abort", AbortRoom{{kKey.room, Life{99}}}},
      {"metadata", receive(metadata_of(kDecode))},
      {"metadata of another", receive(metadata_of({"E", 1}))},
      {"metadata, dummy", receive(dummy)},
      {"ABORT armed", receive(Abort{kKey.room, kDecode, 5})},
      {"ABORT of another", receive(Abort{kKey.room, Endpoint{"E", 1}, 6})},
      {"ABORT unarmed", receive(Abort{kKey.room, kDecode, std::nullopt})},
      {"ABORT anonymous", receive(Abort{kKey.room, std::nullopt, 5})},
      {"registration", receive(registration())},
      {"status", receive(Status{kKey.room, 4, 0, ""})},
      {"write 1 ok", done(1, Outcome::ok)},
      {"write 1 failed", done(1, Outcome::failed)},
      {"write 1 unsettled", done(1, Outcome::unsettled)},
      {"write 1 settled", done(1, Outcome::settled)},
      {"send failed", SendFailed{kDecode, Status{kKey.room, 4, 0, ""}, "cause"}},
      {"tick", Tick{}, std::chrono::seconds(1)},
      {"tick at 300s", Tick{}, std::chrono::seconds(300)},
  };
}

// --- decode -------------------------------------------------------------------------------------

DecodeConfig decode_config() {
  DecodeConfig config;
  config.shape.page_size = 16;
  config.registration = registration();
  return config;
}

struct DecodeRow {
  std::string name;
  std::vector<DecodeEvent> story;
};

const RouteKey kRoute{"boot:80", 0, 0, 0, 0};

std::vector<DecodeRow> decode_rows() {
  const DecodeEvent open = OpenReceiver{kKey.room, "boot:80", std::nullopt};
  const DecodeEvent topology = TopologyReply{"boot:80", PrefillInfo{}};
  const std::vector<DecodeEvent> resolved = {open, topology, RouteReply{kRoute, kPrefill}};
  const DecodeEvent publish = Publish{kKey, {10, 11}, 3, {}, 64};
  const auto after = [&](std::vector<DecodeEvent> more) {
    more.insert(more.begin(), resolved.begin(), resolved.end());
    return more;
  };
  return {
      {"resolving (topology)", {open}},
      {"resolving (route)", {open, topology}},
      {"bootstrapped", resolved},
      {"published", after({publish})},
      {"holding", after({publish, AbortRoom{kKey}})},
      {"quarantined", after({publish, ClearRoom{kKey}})},
      {"concluded_success", after({publish, MessageReceived{Status{kKey.room, 4, 0, ""}}})},
      {"concluded_failed", after({AbortRoom{kKey}})},
  };
}

std::vector<Named<DecodeEvent>> decode_events() {
  const auto receive = [](Message message) { return MessageReceived{std::move(message)}; };
  const Error error{Errc::not_found, "404"};
  PrefillInfo wider;
  wider.attn_tp_size = 2;
  return {
      {"open", OpenReceiver{kKey.room, "boot:80", std::nullopt}},
      {"publish", Publish{kKey, {10, 11}, 3, {}, 64}},
      {"publish unaligned", Publish{kKey, {10, 11}, 3, {}, 8}},
      {"publish wrong state", Publish{kKey, {10, 11}, 3, {{1}}, 64}},
      {"abort", AbortRoom{kKey}},
      {"clear", ClearRoom{kKey}},
      {"observe", Observe{kKey}, std::chrono::seconds(2)},
      {"other life: clear", ClearRoom{{kKey.room, Life{99}}}},
      {"status Success", receive(Status{kKey.room, 4, 0, ""})},
      {"status Failed", receive(Status{kKey.room, 0, 0, "out of memory"})},
      {"status 3", receive(Status{kKey.room, 3, 0, ""})},
      {"ack 1", receive(AbortAck{kKey.room, 0, 1})},
      {"ack of another", receive(AbortAck{kKey.room, 0, 9})},
      {"ack without generation", receive(AbortAck{kKey.room, 0, std::nullopt})},
      {"ack plain", receive(AbortAck{kKey.room, std::nullopt, std::nullopt})},
      {"metadata", receive(metadata_of(kDecode))},
      {"send failed: metadata", SendFailed{kPrefill, metadata_of(kDecode), "refused"}},
      {"send failed: registration", SendFailed{kPrefill, registration(), "refused"}},
      {"send failed: abort", SendFailed{kPrefill, Abort{kKey.room, kDecode, 1}, "refused"}},
      {"disconnected", PeerDisconnected{kPrefill}},
      {"disconnected, another", PeerDisconnected{Endpoint{"Q", 1}}},
      {"topology", TopologyReply{"boot:80", PrefillInfo{}}},
      {"topology, no fit", TopologyReply{"boot:80", wider}},
      {"topology failed", TopologyReply{"boot:80", error}},
      {"route", RouteReply{kRoute, kPrefill}},
      {"route failed", RouteReply{kRoute, error}},
      {"tick", Tick{}, std::chrono::seconds(1)},
      {"tick at 15s", Tick{}, std::chrono::seconds(15)},
      {"tick at 30s", Tick{}, std::chrono::seconds(30)},
      {"tick at 300s", Tick{}, std::chrono::seconds(300)},
  };
}

// --- table --------------------------------------------------------------------------------------

template <class Node>
std::string phase_of(const Node& node) {
  const auto found = node.rooms().find(kKey.room);
  return found == node.rooms().end() ? "gone" : std::string(to_string(found->second.phase()));
}

template <class Node, class Row>
Node build(Node node, const Row& row) {
  Actions ignored;
  for (const auto& event : row.story) {
    const Result<RoomKey> told = node.step(kStart, event, ignored);
    EXPECT_TRUE(told) << row.name << ": " << test::print_event(event);
  }
  EXPECT_EQ(phase_of(node), row.name.substr(0, row.name.find(' ')));
  return node;
}

template <class Node, class Rows, class Events>
std::vector<Cell> meet(const Node& empty, const Rows& rows, const Events& events) {
  std::vector<Cell> cells;
  for (const auto& row : rows) {
    const Node before = build(empty, row);
    for (const auto& [name, event, after] : events) {
      Node node = before;
      Actions actions;
      const Result<RoomKey> told = node.step(kStart + after, event, actions);
      if (!told) {
        EXPECT_TRUE(actions.empty()) << row.name << " x " << name;
        EXPECT_TRUE(node == before) << row.name << " x " << name << ": refused, but changed";
      }
      cells.push_back({row.name, name, phase_of(before), phase_of(node),
                       told ? test::print_actions(actions, "; ")
                            : "refused: " + test::print_error(told.error())});
    }
  }
  return cells;
}

std::string pad(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string print_table(const std::vector<Cell>& cells) {
  std::string text =
      "# phase x event -> phase: actions, or refused. Written by tests/core/room_matrix_test.cpp;\n"
      "# BATON_REWRITE=1 rewrites it. A phase that does not change is printed as \"=\".\n";
  std::string row;
  for (const Cell& cell : cells) {
    if (cell.row != row) text += "\n" + cell.row + "\n";
    row = cell.row;
    const bool stays = cell.phase_before == cell.phase_after;
    std::string line =
        "  " + pad(cell.event, 26) + "-> " + pad(stays ? "=" : cell.phase_after, 18) + cell.what;
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

// The graph of the phases: one edge for each pair, labelled with the events that take it.
std::string print_graph(const std::string& name, const std::vector<Cell>& cells) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> edges;
  for (const Cell& cell : cells) {
    if (cell.phase_before == cell.phase_after) continue;
    std::vector<std::string>& labels = edges[{cell.phase_before, cell.phase_after}];
    if (std::find(labels.begin(), labels.end(), cell.event) == labels.end()) {
      labels.push_back(cell.event);
    }
  }
  std::string text =
      "// Written by tests/core/room_matrix_test.cpp from what the node does.\n"
      "digraph " +
      name + " {\n  rankdir=LR;\n  node [shape=box];\n";
  for (const auto& [edge, labels] : edges) {
    text += "  " + edge.first + " -> " + edge.second + " [label=\"";
    for (const std::string& label : labels) {
      text += label + (label == labels.back() ? "" : "\\n");
    }
    text += "\"];\n";
  }
  return text + "}\n";
}

TEST(RoomMatrix, PrefillRoom) {
  const auto cells = meet(PrefillNode(PrefillConfig{}), prefill_rows(), prefill_events());
  test::expect_golden(kRoot / "tests/golden/prefill_room.matrix", print_table(cells));
  test::expect_golden(kRoot / "docs/diagrams/prefill_room.dot", print_graph("prefill_room", cells));
}

TEST(RoomMatrix, DecodeRoom) {
  const auto cells = meet(DecodeNode(decode_config()), decode_rows(), decode_events());
  test::expect_golden(kRoot / "tests/golden/decode_room.matrix", print_table(cells));
  test::expect_golden(kRoot / "docs/diagrams/decode_room.dot", print_graph("decode_room", cells));
}

// A row that nobody builds would leave a hole in the table.
TEST(RoomMatrix, HasARowForEveryPhase) {
  std::set<std::string> prefill, decode;
  for (const auto& row : prefill_rows()) prefill.insert(row.name.substr(0, row.name.find(' ')));
  for (const auto& row : decode_rows()) decode.insert(row.name.substr(0, row.name.find(' ')));
  for (int phase = 0; phase <= static_cast<int>(PrefillRoom::Phase::concluded_failed); ++phase) {
    EXPECT_TRUE(prefill.contains(std::string(to_string(static_cast<PrefillRoom::Phase>(phase)))));
  }
  for (int phase = 0; phase <= static_cast<int>(DecodeRoom::Phase::concluded_failed); ++phase) {
    EXPECT_TRUE(decode.contains(std::string(to_string(static_cast<DecodeRoom::Phase>(phase)))));
  }
}

}  // namespace
