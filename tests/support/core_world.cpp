// Steps nodes, files their messages and questions, and keeps the books that judge them.
#include "support/core_world.hpp"

#include <algorithm>

#include "support/core_printer.hpp"

namespace baton::test {

using namespace core;

void World::add_prefill(const std::string& name, PrefillConfig config) {
  prefills_.emplace(name, PrefillSite{PrefillNode(config), {}, {}});
}

void World::add_decode(const std::string& name, DecodeConfig config,
                       std::uint32_t metadata_required) {
  config.registration.endpoint = endpoint_of(name);
  config.registration.session_id = session_of(name);
  DecodeSite site{
      DecodeNode(config), DecodeWatch(config), session_of(name), metadata_required, {}, {}, {}};
  decodes_.emplace(name, std::move(site));
}

// --- steps --------------------------------------------------------------------------------------

Result<RoomKey> World::step(const std::string& name, PrefillSite& site, PrefillEvent event) {
  Actions actions;
  Problems problems;
  const auto* done = std::get_if<WriteDone>(&event);
  if (done != nullptr) ledger_.on_write_done(name, done->ticket, done->outcome);
  const auto* init = std::get_if<InitSender>(&event);
  const std::optional<InitSender> announced = init ? std::optional(*init) : std::nullopt;
  const auto* open = std::get_if<OpenSender>(&event);
  const std::optional<RoomId> opened = open ? std::optional(open->room) : std::nullopt;
  const Result<RoomKey> key = site.node.step(now_, std::move(event), actions);
  if (!key && !actions.empty()) problems.push_back("refused, but acted");
  if (key && opened) site.keys.insert_or_assign(*opened, *key);
  if (key && announced) ledger_.on_init(name, *announced);
  site.watch.check(site.node, actions, problems);
  book(name, actions);
  carry_out(name, actions, problems);
  report(name, std::move(problems));
  return key;
}

Result<RoomKey> World::step(const std::string& name, DecodeSite& site, DecodeEvent event) {
  Actions actions;
  Problems problems;
  const auto* open = std::get_if<OpenReceiver>(&event);
  const std::optional<RoomId> opened = open ? std::optional(open->room) : std::nullopt;
  const auto* published = std::get_if<Publish>(&event);
  const std::optional<Publish> publish = published ? std::optional(*published) : std::nullopt;
  const Result<RoomKey> key = site.node.step(now_, std::move(event), actions);
  if (!key && !actions.empty()) problems.push_back("refused, but acted");
  if (key && opened) site.keys.insert_or_assign(*opened, *key);
  // A publish() on a failed room is accepted and does nothing.
  if (key && publish && !actions.empty()) ledger_.on_publish(site.session, *publish);
  site.watch.check(site.node, actions, problems);
  book(name, actions);
  carry_out(name, site, actions, problems);
  report(name, std::move(problems));
  return key;
}

void World::carry_out(const std::string& name, const Actions& actions, Problems& problems) {
  for (const Action& action : actions) {
    if (const auto* message = std::get_if<SendMessage>(&action)) send(name, *message);
    if (const auto* write = std::get_if<SubmitWrite>(&action)) {
      ledger_.on_submit(name, *write, problems);
    }
  }
}

void World::carry_out(const std::string& name, DecodeSite& site, const Actions& actions,
                      Problems& problems) {
  const bool by_timeout = std::any_of(actions.begin(), actions.end(), [](const Action& action) {
    const auto* count = std::get_if<Count>(&action);
    return count != nullptr && count->counter == Counter::released_by_timeout;
  });
  for (const Action& action : actions) {
    if (const auto* message = std::get_if<SendMessage>(&action)) {
      SendMessage copy = *message;
      if (auto* metadata = std::get_if<Metadata>(&copy.message)) {
        metadata->required_dst_info_num = site.metadata_required;
      }
      send(name, copy);
    } else if (const auto* request = std::get_if<RequestTopology>(&action)) {
      site.topologies_asked.push_back(request->bootstrap_address);
    } else if (const auto* route = std::get_if<RequestRoute>(&action)) {
      site.routes_asked.push_back(route->route);
    } else if (const auto* change = std::get_if<StatusChanged>(&action)) {
      if (change->status == KvPoll::success) {
        ledger_.on_success(site.session, change->key, problems);
      }
    } else if (const auto* quiet = std::get_if<QuietChanged>(&action)) {
      if (quiet->quiet) ledger_.on_quiet(site.session, quiet->key, !by_timeout, problems);
    }
  }
}

// --- links --------------------------------------------------------------------------------------

void World::send(const std::string& from, const SendMessage& message) {
  queue({from, message.to.host}, message.message);
}

Message World::take(const Link& link) {
  auto& queue = links_[link];
  if (queue.empty()) {
    throw std::invalid_argument("link " + link.first + "->" + link.second + " is empty");
  }
  Message message = std::move(queue.front());
  queue.pop_front();
  return message;
}

bool World::deliver(const Link& link) {
  if (links_[link].empty()) return false;
  Message message = take(link);
  if (keeps_log_) note(link.second + " <- " + link.first, print_message(message));
  (void)apply(link.second, MessageReceived{std::move(message)});
  return true;
}

void World::deliver_all() {
  const auto full = [&] {
    return std::find_if(links_.begin(), links_.end(),
                        [](const auto& link) { return !link.second.empty(); });
  };
  for (auto link = full(); link != links_.end(); link = full()) deliver(Link(link->first));
}

// --- time ---------------------------------------------------------------------------------------

std::optional<Instant> World::next_deadline() const {
  std::optional<Instant> next;
  const auto add = [&](std::optional<Instant> due) {
    if (due) next = std::min(*due, next.value_or(*due));
  };
  for (const auto& [name, site] : prefills_) add(site.node.next_deadline());
  for (const auto& [name, site] : decodes_) add(site.node.next_deadline());
  return next;
}

void World::tick_due() {
  const auto is_due = [&](std::optional<Instant> due) { return due && *due <= now_; };
  for (auto& [name, site] : prefills_) {
    if (is_due(site.node.next_deadline())) (void)step(name, site, Tick{});
    if (is_due(site.node.next_deadline())) report(name, {"still due after a tick"});
  }
  for (auto& [name, site] : decodes_) {
    if (is_due(site.node.next_deadline())) (void)step(name, site, Tick{});
    if (is_due(site.node.next_deadline())) report(name, {"still due after a tick"});
  }
}

void World::advance(Duration duration) {
  const Instant target = now_ + duration;
  for (auto due = next_deadline(); due && *due <= target; due = next_deadline()) {
    now_ = std::max(now_, *due);
    tick_due();
  }
  now_ = target;
}

// --- books --------------------------------------------------------------------------------------

void World::note(const std::string& name, const std::string& text) {
  if (keeps_log_) log_.push_back(name + ": " + text);
}

void World::book(const std::string& name, const Actions& actions) {
  for (const Action& action : actions) {
    if (const auto* count = std::get_if<Count>(&action)) ++counters_[count->counter];
    if (keeps_log_) note(name, print_action(action));
  }
}

void World::report(const std::string& name, Problems problems) {
  for (std::string& problem : problems) {
    note(name, "BROKEN INVARIANT " + problem);
    problems_.push_back(name + ": " + std::move(problem));
  }
}

}  // namespace baton::test
