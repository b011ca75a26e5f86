// The client's side of a hand-off: what a router would do.
#include "cli/hand_off.hpp"

#include <utility>

namespace baton::cli {

namespace {

net::HttpClientOptions client_options(std::size_t requests_max) {
  net::HttpClientOptions options;
  // A streamed answer occupies its connection until the last token.
  options.connections_per_address_max = requests_max;
  return options;
}

Error no_answer(const std::string& side, const Error& error) {
  std::string text = side + ": " + error.text;
  if (error.code == Errc::unreachable) text += "; is `baton " + side + "` running there?";
  return {error.code, text};
}

}  // namespace

HandOffs::HandOffs(Deployment deployment, std::size_t requests_max, Duration timeout)
    : deployment_(std::move(deployment)),
      timeout_(timeout),
      client_(client_options(requests_max)) {}

HandOffs::~HandOffs() = default;

net::HttpCall HandOffs::call_to(const Endpoint& to, const std::string& body) const {
  net::HttpCall call;
  call.to = to;
  call.method = "POST";
  call.target = "/generate";
  call.body = body;
  call.timeout = timeout_;
  return call;
}

void HandOffs::start(const ServeRequest& request, std::function<void(std::string_view)> on_text) {
  auto owned = std::make_unique<Request>();
  Request& entry = *owned;
  entry.on_text = std::move(on_text);
  entry.lines.emplace(
      [this, &entry](std::string_view line) { return on_decode_line(entry, line); });
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(owned));
    halves_open_ += 2;
  }
  const std::string body = encode(request);
  net::HttpCall decode = call_to(deployment_.decode, body);
  decode.on_piece = [&entry](std::string_view piece) { return (*entry.lines)(piece); };
  client_.send(std::move(decode), [this, &entry](Result<net::HttpReply> reply) {
    on_decode(entry, reply);
    end_half();
  });
  client_.send(call_to(deployment_.prefill, body), [this, &entry](Result<net::HttpReply> reply) {
    on_prefill(entry, reply);
    end_half();
  });
}

void HandOffs::on_prefill(Request& request, const Result<net::HttpReply>& reply) {
  if (!reply) return fail(no_answer("prefill", reply.error()));
  if (reply->status != 200) return fail({Errc::io, "prefill: " + decode_error(reply->body)});
  Result<PrefillReply> parsed = decode_prefill_reply(reply->body);
  if (!parsed) return fail(parsed.error());
  request.outcome.prefill = *parsed;
}

bool HandOffs::on_decode_line(Request& request, std::string_view line) {
  Result<DecodeLine> parsed = decode_line(line);
  if (!parsed) {
    fail(parsed.error());
    return false;
  }
  if (const auto* error = std::get_if<ErrorLine>(&*parsed)) {
    fail({Errc::io, "decode: " + error->error});
    return false;
  }
  if (const auto* token = std::get_if<TokenLine>(&*parsed)) {
    request.outcome.tokens.push_back(token->token);
    if (request.on_text) request.on_text(token->text);
    return true;
  }
  request.outcome.decode = std::get<DoneLine>(std::move(*parsed));
  if (request.on_text) request.on_text(request.outcome.decode.text);
  request.is_complete = true;
  return true;
}

void HandOffs::on_decode(Request& request, const Result<net::HttpReply>& reply) {
  if (!reply) return fail(no_answer("decode", reply.error()));
  if (reply->status != 200) return fail({Errc::io, "decode: " + decode_error(reply->body)});
  request.lines->finish();
  if (!request.is_complete) fail({Errc::closed, "decode: the answer ended before its last line"});
}

void HandOffs::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  wakeup_.raise();
}

void HandOffs::end_half() {
  const std::lock_guard lock(mutex_);
  --halves_open_;
  wakeup_.raise();
}

bool HandOffs::is_done() const {
  const std::lock_guard lock(mutex_);
  return halves_open_ == 0;
}

std::optional<Error> HandOffs::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

std::vector<HandOffOutcome> HandOffs::take_outcomes() {
  const std::lock_guard lock(mutex_);
  std::vector<HandOffOutcome> outcomes;
  for (const std::unique_ptr<Request>& request : requests_) {
    outcomes.push_back(std::move(request->outcome));
  }
  return outcomes;
}

}  // namespace baton::cli
