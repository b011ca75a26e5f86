// Asking a peer whether old connections are closed, and judging its answers.
#include "engine/tcp_fence.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/address.hpp"

namespace baton::engine::tcp {
namespace {

constexpr auto kAnswerTime = std::chrono::seconds(5);
constexpr auto kFirstPause = std::chrono::milliseconds(20);
constexpr auto kLongestPause = std::chrono::seconds(5);

std::string text_of(const nlohmann::json& body, const char* key) {
  const auto field = body.find(key);
  return field != body.end() && field->is_string() ? field->get<std::string>() : std::string();
}

std::string host_of(const std::string& address) {
  const Result<Endpoint> endpoint = parse_endpoint(address);
  return endpoint ? endpoint->host : std::string();
}

}  // namespace

Fence::Fence(Target target, std::vector<std::string> connections)
    : target_(std::move(target)), connections_(std::move(connections)), pause_(kFirstPause) {}

void Fence::set_connections(std::vector<std::string> connections) {
  // Breaks that come one after another must not start the question anew each time.
  if (connections == connections_) return;
  connections_ = std::move(connections);
  call_.reset();
  ask_at_ = {};
}

Instant Fence::deadline() const { return call_ ? call_->deadline() : ask_at_; }

RpcCall::Question Fence::question() const {
  if (target_.identity.empty()) return {RpcType::metadata, "{}"};
  return {RpcType::fence, nlohmann::json{{"connections", connections_}}.dump()};
}

Fence::Verdict Fence::advance(Instant now, Waker& waker, std::uint64_t key) {
  if (!call_) {
    if (now < ask_at_) return Verdict::unknown;
    call_.emplace(target_.rpc, question(), now + kAnswerTime, waker, key);
  }
  const std::optional<Result<RpcCall::Answer>> answer = call_->advance(now);
  if (!answer) return Verdict::unknown;
  call_.reset();
  ask_at_ = now + pause_;
  pause_ = std::min<Duration>(pause_ * 2, kLongestPause);
  return judge(*answer);
}

Fence::Verdict Fence::judge(const Result<RpcCall::Answer>& answer) {
  if (!answer) {
    reason_ = answer.error().text;
    return answer.error().code == Errc::unreachable ? Verdict::gone : Verdict::unknown;
  }
  if (target_.identity.empty()) return judge_foreign(*answer);
  const nlohmann::json body = nlohmann::json::parse(answer->json, nullptr, false);
  if (!body.is_object()) return Verdict::unknown;
  const std::string seen = text_of(body, "seen");
  if (text_of(body, "identity") != target_.identity) {
    reason_ = "another process answers at its RPC port";
    return Verdict::gone;
  }
  return host_of(seen) == host_of(answer->local_name) ? Verdict::quiet : Verdict::alive;
}

Fence::Verdict Fence::judge_foreign(const RpcCall::Answer& answer) {
  const Result<Metadata> metadata = decode_metadata(answer.json);
  if (!metadata) return Verdict::unknown;
  if (metadata->data_port != target_.data_port || !metadata->identity.empty()) {
    reason_ = "another process answers at its RPC port";
    return Verdict::gone;
  }
  return Verdict::alive;
}

}  // namespace baton::engine::tcp
