// Texts are short and stable: scenario files and golden tables consist of them.
#include "support/core_printer.hpp"

#include "base/assert.hpp"
#include "base/overloaded.hpp"

namespace baton::test {

using namespace core;

namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string in_room(std::string_view what, RoomId room) {
  return std::string(what) + " room " + number(room.value);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  result += text;
  result += '"';
  return result;
}

std::string print_status(std::uint32_t status) {
  if (status <= static_cast<std::uint32_t>(KvPoll::success)) {
    return std::string(to_string(static_cast<KvPoll>(status)));
  }
  return number(status);
}

std::string print_metadata(const Metadata& metadata) {
  std::string text = in_room("metadata", metadata.room) + " from " + to_string(metadata.endpoint) +
                     " session " + metadata.session_id + " pages " + print_list(metadata.kv_pages);
  if (metadata.aux_index) text += " aux " + number(*metadata.aux_index);
  for (const auto& slots : metadata.state_slots) text += " state " + print_list(slots);
  if (metadata.decode_prefix_tokens) text += " prefix " + number(*metadata.decode_prefix_tokens);
  text += " required " + number(metadata.required_dst_info_num);
  if (metadata.is_dummy) text += " dummy";
  return text;
}

std::string print_status_message(const Status& message) {
  std::string text = in_room("status", message.room) + ' ' + print_status(message.status) +
                     " rank " + number(message.prefill_rank);
  if (!message.reason.empty()) text += ' ' + quoted(message.reason);
  return text;
}

std::string print_abort(const Abort& message) {
  std::string text = in_room("abort", message.room);
  if (message.return_address) text += " return " + to_string(*message.return_address);
  if (message.generation) text += " generation " + number(*message.generation);
  return text;
}

std::string print_ack(const AbortAck& message) {
  std::string text = in_room("abort_ack", message.room);
  if (message.prefill_rank) text += " rank " + number(*message.prefill_rank);
  if (message.generation) text += " generation " + number(*message.generation);
  return text;
}

std::string print_write(const SubmitWrite& write) {
  std::string text = "write " + number(write.ticket.value) + ' ' + print_key(write.key);
  const std::string& session = write.target->session_id;
  switch (write.part) {
    case WritePart::kv:
      return text + " kv " + print_list(write.source_pages) + " -> " + session + " " +
             print_list(write.target_pages);
    case WritePart::aux:
      return text + " aux " + number(write.source_aux) + " -> " + session + " " +
             number(write.target_aux);
    case WritePart::state:
      text += " state";
      for (const StateSlots& slots : write.state) {
        text += ' ' + number(slots.component) + ":" + print_list(slots.source) + " -> " + session +
                ' ' + print_list(slots.target);
      }
      return text;
  }
  BATON_UNREACHABLE();
}

std::string print_route(const RouteKey& route) {
  return route.bootstrap_address + " dp " + number(route.dp_rank) + " cp " + number(route.cp_rank) +
         " tp " + number(route.tp_rank) + " pp " + number(route.pp_rank);
}

std::string print_status_change(const StatusChanged& change) {
  std::string text =
      "status " + print_key(change.key) + ' ' + std::string(to_string(change.status));
  if (change.failure) text += ' ' + print_failure(*change.failure);
  return text;
}

std::string print_write_done(const WriteDone& done) {
  std::string text =
      "write_done " + number(done.ticket.value) + ' ' + std::string(to_string(done.outcome));
  if (!done.reason.empty()) text += ' ' + quoted(done.reason);
  if (done.session_broken) text += " broken";
  return text;
}

std::string print_chunk(const SendChunk& chunk) {
  std::string text = "send " + print_key(chunk.key) + ' ' + print_list(chunk.pages);
  if (chunk.last) text += *chunk.last ? " last" : " not last";
  return text;
}

// The events that both nodes understand, and those of either.
const auto kPrintEvent = overloaded{
    [](const OpenSender& event) { return in_room("open", event.room); },
    [](const InitSender& event) {
      return "init " + print_key(event.key) + " pages " + number(event.pages_count) + " aux " +
             number(event.aux_index);
    },
    [](const SendChunk& event) { return print_chunk(event); },
    [](const OpenReceiver& event) {
      return in_room("open", event.room) + " at " + event.bootstrap_address;
    },
    [](const Publish& event) {
      return "publish " + print_key(event.key) + ' ' + print_list(event.pages) + " aux " +
             number(event.aux_index);
    },
    [](const AbortRoom& event) { return "abort " + print_key(event.key); },
    [](const ClearRoom& event) { return "clear " + print_key(event.key); },
    [](const Observe& event) { return "observe " + print_key(event.key); },
    [](const MessageReceived& event) { return "receive " + print_message(event.message); },
    [](const SendFailed& event) {
      return "send_failed " + to_string(event.to) + ' ' + print_message(event.message) + " " +
             quoted(event.reason);
    },
    [](const PeerDisconnected& event) { return "disconnected " + to_string(event.peer); },
    [](const WriteDone& event) { return print_write_done(event); },
    [](const TopologyReply& event) {
      return "topology " + event.bootstrap_address +
             (event.info ? " ok" : ' ' + print_error(event.info.error()));
    },
    [](const RouteReply& event) {
      return "route " + print_route(event.route) + " " +
             (event.endpoint ? to_string(*event.endpoint) : print_error(event.endpoint.error()));
    },
    [](const Tick&) { return std::string("tick"); },
};

}  // namespace

std::string print_key(RoomKey key) { return number(key.room.value) + "#" + number(key.life.value); }

std::string print_message(const Message& message) {
  return std::visit(
      overloaded{
          [](const Registration& registration) {
            return "registration from " + to_string(registration.endpoint) + " session " +
                   registration.session_id;
          },
          [](const Metadata& metadata) { return print_metadata(metadata); },
          [](const Status& status) { return print_status_message(status); },
          [](const ChunkReady& ready) { return in_room("chunk_ready", ready.room); },
          [](const Abort& abort) { return print_abort(abort); },
          [](const AbortAck& ack) { return print_ack(ack); },
          [](const AuxData& aux) { return in_room("aux_data", aux.room); },
          [](const StagingRequest& request) { return in_room("staging_request", request.room); },
          [](const StagingReply& reply) { return in_room("staging_reply", reply.room); },
          [](const Watermark& watermark) { return "watermark session " + watermark.session_id; },
      },
      message);
}

std::string print_action(const Action& action) {
  return std::visit(
      overloaded{
          [](const SendMessage& send) {
            return "send " + to_string(send.to) + ' ' + print_message(send.message);
          },
          [](const SubmitWrite& write) { return print_write(write); },
          [](const StatusChanged& change) { return print_status_change(change); },
          [](const QuietChanged& change) {
            return "quiet " + print_key(change.key) + (change.quiet ? " yes" : " no");
          },
          [](const RoomClosed& closed) { return "closed " + print_key(closed.key); },
          [](const PrefixKnown& known) {
            return "prefix " + print_key(known.key) + ' ' + number(known.prefix_tokens);
          },
          [](const RequestTopology& request) {
            return "ask topology " + request.bootstrap_address;
          },
          [](const RequestRoute& request) { return "ask route " + print_route(request.route); },
          [](const Count& count) { return "count " + std::string(to_string(count.counter)); },
      },
      action);
}

std::string print_actions(const Actions& actions, std::string_view separator) {
  std::string text;
  for (const Action& action : actions) {
    if (!text.empty()) text += separator;
    text += print_action(action);
  }
  return text;
}

std::string print_event(const PrefillEvent& event) { return std::visit(kPrintEvent, event); }
std::string print_event(const DecodeEvent& event) { return std::visit(kPrintEvent, event); }

std::string print_failure(const Failure& failure) {
  return std::string(to_string(failure.code)) + ' ' + quoted(failure.text);
}

std::string print_error(const Error& error) {
  return std::string(to_string(error.code)) + ": " + error.text;
}

std::string_view to_string(Errc code) {
  switch (code) {
    case Errc::misuse: return "misuse";
    case Errc::invalid_argument: return "invalid_argument";
    case Errc::not_found: return "not_found";
    case Errc::already_exists: return "already_exists";
    case Errc::incompatible: return "incompatible";
    case Errc::unreachable: return "unreachable";
    case Errc::io: return "io";
    case Errc::timeout: return "timeout";
    case Errc::limit: return "limit";
    case Errc::malformed: return "malformed";
    case Errc::unsupported: return "unsupported";
    case Errc::closed: return "closed";
  }
  BATON_UNREACHABLE();
}

}  // namespace baton::test
