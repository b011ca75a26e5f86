// One function per command; the table at the end names them.
#include "support/scenario_runner.hpp"

#include <functional>
#include <sstream>
#include <stdexcept>

#include "support/core_printer.hpp"
#include "support/core_world.hpp"
#include "support/scenario_command.hpp"

namespace baton::test {

using namespace core;

namespace {

constexpr const char* kBootstrap = "boot:80";

World::Link parse_link(const std::string& text) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string::npos) throw std::invalid_argument("not a link: " + text);
  return {text.substr(0, arrow), text.substr(arrow + 2)};
}

Errc parse_errc(const std::string& text) {
  for (int code = 0; code <= static_cast<int>(Errc::closed); ++code) {
    if (to_string(static_cast<Errc>(code)) == text) return static_cast<Errc>(code);
  }
  throw std::invalid_argument("not an error code: " + text);
}

Outcome parse_outcome(const std::string& text) {
  for (const Outcome outcome :
       {Outcome::ok, Outcome::failed, Outcome::unsettled, Outcome::settled}) {
    if (to_string(outcome) == text) return outcome;
  }
  throw std::invalid_argument("not an outcome: " + text);
}

Endpoint parse_peer(const std::string& text) { return parse_endpoint(text).value(); }

std::vector<std::vector<std::int32_t>> state_lists(const ScenarioCommand& command) {
  std::vector<std::vector<std::int32_t>> lists;
  for (const std::string& part : split(command.text("state", ""), ';')) {
    lists.push_back(parse_list(part));
  }
  return lists;
}

// "topology D boot:80 error not_found text": the error starts at word 2.
std::optional<Error> parse_reply_error(const ScenarioCommand& command) {
  if (command.words_count() < 3 || command.word(2) != "error") return std::nullopt;
  return Error{parse_errc(command.word(3)), command.word(4)};
}

Metadata parse_metadata(const ScenarioCommand& command, const std::string& from, RoomId room) {
  Metadata metadata;
  metadata.room = room;
  metadata.endpoint = World::endpoint_of(from);
  metadata.session_id = command.text("session", World::session_of(from));
  metadata.kv_pages = command.list("pages");
  metadata.aux_index = command.number32("aux", 0);
  metadata.required_dst_info_num = command.number32("required", 1);
  metadata.decode_prefix_tokens = command.number("prefix", 0);
  return metadata;
}

Message parse_message(const ScenarioCommand& command, const std::string& from) {
  const std::string& kind = command.word(1);
  const RoomId room{command.number("room", 0)};
  std::optional<std::uint64_t> generation;
  if (command.has("generation")) generation = command.number("generation", 0);
  std::optional<std::uint32_t> rank;
  if (command.has("rank")) rank = command.number32("rank", 0);
  if (kind == "registration") {
    Registration registration;
    registration.endpoint = World::endpoint_of(from);
    registration.session_id = command.text("session", World::session_of(from));
    return registration;
  }
  if (kind == "metadata") return parse_metadata(command, from, room);
  if (kind == "status") {
    return Status{room, command.number32("status", 4), rank.value_or(0),
                  command.text("reason", "")};
  }
  if (kind == "abort") {
    std::optional<Endpoint> back;
    if (command.is_yes("return", true)) back = World::endpoint_of(from);
    return Abort{room, back, generation};
  }
  if (kind == "abort_ack") return AbortAck{room, rank, generation};
  throw std::invalid_argument("cannot inject a " + kind);
}

class Runner {
 public:
  // The output of one block.
  std::vector<std::string> run(const std::vector<std::string>& lines);

 private:
  using Handler = void (Runner::*)(const ScenarioCommand&);
  static const std::map<std::string, Handler>& handlers();

  RoomKey key(const ScenarioCommand& command);
  void note(std::string line) { output_.push_back(std::move(line)); }
  template <class Event>
  void apply(const std::string& name, Event event);

  void on_prefill(const ScenarioCommand& command);
  void on_decode(const ScenarioCommand& command);
  void on_open(const ScenarioCommand& command);
  void on_init(const ScenarioCommand& command);
  void on_send(const ScenarioCommand& command);
  void on_publish(const ScenarioCommand& command);
  void on_abort(const ScenarioCommand& command) { apply(command.word(0), AbortRoom{key(command)}); }
  void on_clear(const ScenarioCommand& command) { apply(command.word(0), ClearRoom{key(command)}); }
  void on_observe(const ScenarioCommand& command) { apply(command.word(0), Observe{key(command)}); }
  void on_status(const ScenarioCommand& command);
  void on_write_done(const ScenarioCommand& command);
  void on_topology(const ScenarioCommand& command);
  void on_route(const ScenarioCommand& command);
  void on_deliver(const ScenarioCommand& command);
  void on_drop(const ScenarioCommand& command);
  void on_duplicate(const ScenarioCommand& command);
  void on_send_failed(const ScenarioCommand& command);
  void on_disconnected(const ScenarioCommand& command);
  void on_inject(const ScenarioCommand& command);
  void on_advance(const ScenarioCommand& command);
  void on_handshake(const ScenarioCommand& command);

  World world_;
  std::vector<std::string> output_;
};

const std::map<std::string, Runner::Handler>& Runner::handlers() {
  static const std::map<std::string, Handler> table = {
      {"prefill", &Runner::on_prefill},
      {"decode", &Runner::on_decode},
      {"open", &Runner::on_open},
      {"init", &Runner::on_init},
      {"send", &Runner::on_send},
      {"publish", &Runner::on_publish},
      {"abort", &Runner::on_abort},
      {"clear", &Runner::on_clear},
      {"observe", &Runner::on_observe},
      {"status", &Runner::on_status},
      {"write-done", &Runner::on_write_done},
      {"topology", &Runner::on_topology},
      {"route", &Runner::on_route},
      {"deliver", &Runner::on_deliver},
      {"drop", &Runner::on_drop},
      {"duplicate", &Runner::on_duplicate},
      {"send-failed", &Runner::on_send_failed},
      {"inject", &Runner::on_inject},
      {"disconnected", &Runner::on_disconnected},
      {"advance", &Runner::on_advance},
      {"handshake", &Runner::on_handshake},
  };
  return table;
}

std::vector<std::string> Runner::run(const std::vector<std::string>& lines) {
  output_.clear();
  for (const std::string& line : lines) {
    try {
      const ScenarioCommand command = ScenarioCommand::parse(line);
      const auto found = handlers().find(command.name());
      if (found == handlers().end()) throw std::invalid_argument("no command " + command.name());
      (this->*found->second)(command);
    } catch (const std::exception& error) {
      note("error: " + std::string(error.what()));
    }
    for (std::string& text : world_.take_log()) note(std::move(text));
  }
  return output_;
}

template <class Event>
void Runner::apply(const std::string& name, Event event) {
  const Result<RoomKey> done = world_.apply(name, std::move(event));
  for (std::string& text : world_.take_log()) note(std::move(text));
  if (!done) note(name + ": refused " + print_error(done.error()));
}

// Word 0 is the node, word 1 the room.
RoomKey Runner::key(const ScenarioCommand& command) {
  const std::vector<std::string> parts = split(command.word(1), '#');
  const RoomId room{parse_number(parts.at(0))};
  if (parts.size() > 1) return {room, Life{parse_number(parts[1])}};
  const std::string& name = command.word(0);
  const auto prefill = world_.prefills().find(name);
  if (prefill != world_.prefills().end()) return prefill->second.keys[room];
  const auto decode = world_.decodes().find(name);
  if (decode == world_.decodes().end()) throw std::invalid_argument("no node " + name);
  return decode->second.keys[room];
}

// --- the world ----------------------------------------------------------------------------------

void Runner::on_prefill(const ScenarioCommand& command) {
  PrefillConfig config;
  config.unique_rank = command.number32("rank", 0);
  config.bootstrap_timeout = command.duration("bootstrap", config.bootstrap_timeout);
  world_.add_prefill(command.word(0), config);
}

void Runner::on_decode(const ScenarioCommand& command) {
  DecodeConfig config;
  config.shape.topology.attn_tp_size = command.number32("tp", 1);
  config.shape.topology.attn_tp_rank = command.number32("tp_rank", 0);
  config.shape.page_size = command.number32("page_size", 16);
  config.shape.kv_cache_dtype = command.text("dtype", "");
  config.state_components = command.number32("states", 0);
  config.waiting_timeout = command.duration("waiting", config.waiting_timeout);
  config.release_timeout = command.duration("release", config.release_timeout);
  config.resolve_timeout = command.duration("resolve", config.resolve_timeout);
  config.resolve_retry_interval = command.duration("retry", config.resolve_retry_interval);
  world_.add_decode(command.word(0), config, command.number32("required", 1));
}

void Runner::on_advance(const ScenarioCommand& command) {
  world_.advance(parse_duration(command.word(0)));
}

// --- application --------------------------------------------------------------------------------

void Runner::on_open(const ScenarioCommand& command) {
  const RoomId room{parse_number(command.word(1))};
  if (world_.prefills().contains(command.word(0))) return apply(command.word(0), OpenSender{room});
  OpenReceiver open{room, command.word(2), std::nullopt};
  if (command.has("dp")) open.dp_rank = command.number32("dp", 0);
  apply(command.word(0), open);
}

void Runner::on_init(const ScenarioCommand& command) {
  apply(command.word(0),
        InitSender{key(command), command.number32("pages", 0), command.number32("aux", 0)});
}

void Runner::on_send(const ScenarioCommand& command) {
  SendChunk chunk{key(command), command.list("pages"), {}, std::nullopt};
  for (const std::string& part : split(command.text("state", ""), ';')) {
    chunk.state.push_back(part == "-" ? std::nullopt : std::optional(parse_list(part)));
  }
  if (command.has("last")) chunk.last = command.is_yes("last", false);
  apply(command.word(0), std::move(chunk));
}

void Runner::on_publish(const ScenarioCommand& command) {
  apply(command.word(0), Publish{key(command), command.list("pages"), command.number32("aux", 0),
                                 state_lists(command), command.number("prefix", 0)});
}

void Runner::on_status(const ScenarioCommand& command) {
  const std::string& name = command.word(0);
  const RoomKey room = key(command);
  const auto describe = [&](const auto& node) {
    const auto* found = node.find(room);
    if (found == nullptr) return note(name + ": " + print_key(room) + " is gone");
    const TransferMetric& metric = found->metric();
    const auto seconds = [](const std::optional<Duration>& duration) {
      if (!duration) return std::string("-");
      std::ostringstream text;
      text << std::chrono::duration<double>(*duration).count() << "s";
      return text.str();
    };
    note(name + ": " + print_key(room) + " " + std::string(to_string(found->status())) + " (" +
         std::string(to_string(found->phase())) + ") bytes " + std::to_string(metric.bytes) +
         " pages " + std::to_string(metric.pages) + " chunks " + std::to_string(metric.chunks) +
         " bootstrap " + seconds(metric.bootstrap_wait) + " latency " +
         seconds(metric.transfer_latency));
    if (found->failure()) note(name + ": " + print_failure(*found->failure()));
  };
  const auto prefill = world_.prefills().find(name);
  if (prefill != world_.prefills().end()) return describe(prefill->second.node);
  describe(world_.decodes().at(name).node);
}

// --- what answers -------------------------------------------------------------------------------

void Runner::on_write_done(const ScenarioCommand& command) {
  WriteDone done;
  done.ticket = Ticket{parse_number(command.word(1))};
  done.outcome = parse_outcome(command.word(2));
  if (command.words_count() > 3) done.reason = command.word(3);
  done.session_broken = command.is_yes("broken", false);
  done.bytes = command.number("bytes", 0);
  apply(command.word(0), done);
}

void Runner::on_topology(const ScenarioCommand& command) {
  auto& asked = world_.decodes().at(command.word(0)).topologies_asked;
  if (!asked.empty()) asked.pop_front();
  if (std::optional<Error> error = parse_reply_error(command)) {
    return apply(command.word(0), TopologyReply{command.word(1), std::move(*error)});
  }
  PrefillInfo info;
  info.attn_tp_size = command.number32("tp", 1);
  info.attn_cp_size = command.number32("cp", 1);
  info.dp_size = command.number32("dp", 1);
  info.pp_size = command.number32("pp", 1);
  info.follow_bootstrap_room = command.is_yes("follow", true);
  if (command.has("page_size")) info.page_size = command.number32("page_size", 0);
  if (command.has("dtype")) info.kv_cache_dtype = command.text("dtype", "");
  apply(command.word(0), TopologyReply{command.word(1), std::move(info)});
}

// Answers the oldest question of the node.
void Runner::on_route(const ScenarioCommand& command) {
  auto& asked = world_.decodes().at(command.word(0)).routes_asked;
  if (asked.empty()) throw std::invalid_argument("no route was asked for");
  const RouteKey route = asked.front();
  asked.pop_front();
  if (std::optional<Error> error = parse_reply_error(command)) {
    return apply(command.word(0), RouteReply{route, std::move(*error)});
  }
  apply(command.word(0), RouteReply{route, parse_peer(command.word(2))});
}

// --- links --------------------------------------------------------------------------------------

void Runner::on_deliver(const ScenarioCommand& command) {
  if (command.word(0) == "all") return world_.deliver_all();
  const World::Link link = parse_link(command.word(0));
  if (command.words_count() == 1) {
    while (world_.deliver(link)) {
    }
    return;
  }
  for (std::uint64_t count = parse_number(command.word(1)); count > 0; --count) {
    if (!world_.deliver(link)) throw std::invalid_argument("the link is empty");
  }
}

void Runner::on_drop(const ScenarioCommand& command) {
  note("dropped " + command.word(0) + " " +
       print_message(world_.take(parse_link(command.word(0)))));
}

void Runner::on_duplicate(const ScenarioCommand& command) {
  auto& queue = world_.links()[parse_link(command.word(0))];
  if (queue.empty()) throw std::invalid_argument("the link is empty");
  const Message copy = queue.front();
  queue.push_front(copy);
}

void Runner::on_send_failed(const ScenarioCommand& command) {
  const World::Link link = parse_link(command.word(0));
  apply(link.first,
        SendFailed{World::endpoint_of(link.second), world_.take(link), command.word(1)});
}

void Runner::on_disconnected(const ScenarioCommand& command) {
  apply(command.word(0), PeerDisconnected{World::endpoint_of(command.word(1))});
}

void Runner::on_inject(const ScenarioCommand& command) {
  const World::Link link = parse_link(command.word(0));
  world_.queue(link, parse_message(command, link.first));
}

// From nothing to a sender that may send (2 pages unless `init` says otherwise) and a receiver that
// has published. The invariants are checked all the same.
void Runner::on_handshake(const ScenarioCommand& command) {
  const std::string& prefill = command.word(0);
  const std::string& decode = command.word(1);
  const RoomId room{parse_number(command.word(2))};
  const auto must = [](const Result<RoomKey>& done) {
    if (!done) throw std::invalid_argument("handshake: " + print_error(done.error()));
    return *done;
  };
  const auto announced = world_.prefills().at(prefill).node.rooms().find(room);
  const bool is_open = announced != world_.prefills().at(prefill).node.rooms().end() &&
                       announced->second.was_opened();
  const RoomKey sender =
      is_open ? announced->second.key() : must(world_.apply(prefill, OpenSender{room}));
  const std::vector<PageIndex> pages = command.list("pages");
  const std::uint32_t count = command.number32("init", static_cast<std::uint32_t>(pages.size()));
  if (!is_open) must(world_.apply(prefill, InitSender{sender, count, command.number32("aux", 0)}));
  const RoomKey receiver = must(world_.apply(decode, OpenReceiver{room, kBootstrap, std::nullopt}));
  DecodeSite& site = world_.decodes().at(decode);
  for (; !site.topologies_asked.empty(); site.topologies_asked.pop_front()) {
    must(world_.apply(decode, TopologyReply{site.topologies_asked.front(), PrefillInfo{}}));
  }
  for (; !site.routes_asked.empty(); site.routes_asked.pop_front()) {
    must(world_.apply(decode, RouteReply{site.routes_asked.front(), World::endpoint_of(prefill)}));
  }
  must(world_.apply(decode, Publish{receiver, pages, command.number32("aux", 0),
                                    state_lists(command), command.number("prefix", 0)}));
  while (world_.deliver({decode, prefill})) {
  }
  (void)world_.take_log();
}

}  // namespace

std::string run_scenario(const std::string& story) {
  Runner runner;
  std::istringstream stream(story);
  std::string line, result;
  std::vector<std::string> commands;
  while (std::getline(stream, line)) {
    const bool is_divider = line == "----";
    result += line + "\n";
    if (!is_divider) {
      if (!line.empty() && line.front() != '#') commands.push_back(line);
      continue;
    }
    for (const std::string& text : runner.run(std::exchange(commands, {}))) result += text + "\n";
    while (std::getline(stream, line) && !line.empty()) {
    }
    if (!stream.eof()) result += "\n";
  }
  if (!commands.empty()) result += "----\nerror: the last block has no ----\n";
  return result;
}

}  // namespace baton::test
