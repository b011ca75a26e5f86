// Encoding and decoding at the edge of the hub.
#include "runtime/control_channel.hpp"

#include <utility>

namespace baton::runtime {

namespace {

wire::Side other(wire::Side side) {
  return side == wire::Side::prefill ? wire::Side::decode : wire::Side::prefill;
}

}  // namespace

Result<std::unique_ptr<ControlChannel>> ControlChannel::create(const std::string& host,
                                                               wire::Side side,
                                                               const wire::Dialect& dialect) {
  net::HubOptions options;
  options.bind_host = host;
  Result<std::unique_ptr<net::ZmqHub>> hub = net::ZmqHub::create(options);
  if (!hub) return hub.error();
  return std::unique_ptr<ControlChannel>(new ControlChannel(std::move(*hub), side, dialect));
}

void ControlChannel::start(ChannelHandlers handlers) {
  handlers_ = std::move(handlers);
  net::HubHandlers hub;
  hub.on_message = [this](const Frames& frames) { receive(frames); };
  hub.on_send_failed = [this](const Endpoint& to, const Frames& frames, const Error& error) {
    report_failed(to, frames, error);
  };
  hub.on_disconnected = handlers_.on_disconnected;
  hub.collect = [this](std::vector<net::Outgoing>& out) { collect(out); };
  hub.on_timer = [this] { return handlers_.on_timer(); };
  hub_->start(std::move(hub));
}

void ControlChannel::receive(const Frames& frames) {
  Result<Message> message = dialect_.decode(side_, frames);
  if (message) {
    handlers_.on_message(std::move(*message));
    return;
  }
  malformed_.fetch_add(1, std::memory_order_relaxed);
  BATON_LOG_LIMITED(warn, "malformed_message", "malformed_message error \"{}\"",
                    message.error().text);
}

void ControlChannel::collect(std::vector<net::Outgoing>& out) {
  handlers_.collect(messages_);
  for (core::SendMessage& message : messages_) {
    Result<Frames> frames = dialect_.encode(message.message);
    if (frames) {
      out.push_back({message.to, std::move(*frames)});
      continue;
    }
    handlers_.on_send_failed({message.to, std::move(message.message), frames.error().text});
  }
}

// The hub knows frames; what we sent, we can read back as the other side would.
void ControlChannel::report_failed(const Endpoint& to, const Frames& frames, const Error& error) {
  Result<Message> message = dialect_.decode(other(side_), frames);
  if (!message) return;  // we only send what decodes; nothing to tell the node otherwise
  handlers_.on_send_failed({to, std::move(*message), error.text});
}

}  // namespace baton::runtime
