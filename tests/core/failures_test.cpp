// The failure texts to the letter: SGLang's first, what we add after it. [spec 2.12, 3.13]
#include "core/failures.hpp"

#include <gtest/gtest.h>

namespace {

using namespace baton;
using namespace baton::core;

const RoomId kRoom{42};
const Endpoint kPeer{"10.0.0.7", 41233};

Failure made(FailureCode code, const std::string& text) { return {code, text, false}; }

TEST(Failures, PrefillTextsOfUpstream) {
  EXPECT_EQ(failures::aborted_here(), made(FailureCode::aborted_here, "Aborted by AbortReq."));
  EXPECT_EQ(failures::aborted_by_decode(),
            made(FailureCode::aborted_by_peer, "Aborted by decode-side abort notification."));
  EXPECT_EQ(failures::bootstrap_timeout(kRoom, std::chrono::milliseconds(300040)),
            made(FailureCode::bootstrap_timeout,
                 "Request 42 timed out after 300.0s in KVPoll.Bootstrapping"));
  EXPECT_EQ(failures::session_dead("10.0.0.7:17000"),
            made(FailureCode::peer_lost,
                 "Decode instance could be dead, remote mooncake session 10.0.0.7:17000 is not "
                 "alive"));
  EXPECT_EQ(failures::kv_write_failed(kRoom, kPeer, ""),
            made(FailureCode::write_failed, "Failed to send kv chunk of 42 to 10.0.0.7:41233"));
  EXPECT_EQ(
      failures::state_write_failed(kRoom, kPeer, ""),
      made(FailureCode::write_failed, "Failed to send state components of 42 to 10.0.0.7:41233"));
  EXPECT_EQ(failures::aux_write_failed(kRoom, ""),
            made(FailureCode::write_failed, "Failed to send aux data of 42"));
}

TEST(Failures, DecodeTextsOfUpstream) {
  EXPECT_EQ(failures::no_route(1, 0, 2, 3, ""),
            made(FailureCode::unresolved,
                 "Could not fetch bootstrap info for: prefill_dp_rank: 1 prefill_cp_rank: 0 "
                 "target_tp_rank: 2 and target_pp_rank 3"));
  EXPECT_EQ(failures::no_topology("boot:80", ""),
            made(FailureCode::unresolved,
                 "Could not fetch prefill parallel info from bootstrap_addr: boot:80"));
  EXPECT_EQ(failures::send_failed("_register_kv_args", kPeer, ""),
            made(FailureCode::send_failed, "_register_kv_args to prefill 10.0.0.7:41233 failed"));
  EXPECT_EQ(failures::send_failed("send_metadata", kPeer, ""),
            made(FailureCode::send_failed, "send_metadata to prefill 10.0.0.7:41233 failed"));
  EXPECT_EQ(failures::connection_lost("boot:80"),
            made(FailureCode::peer_lost,
                 "Lost connection with prefill instance (bootstrap_addr: boot:80)"));
  EXPECT_EQ(failures::reported_by_prefill(""),
            made(FailureCode::reported_by_peer,
                 "Failed to get kvcache from prefill instance, it might be dead"));
  EXPECT_EQ(failures::reported_by_prefill("out of memory"),
            made(FailureCode::reported_by_peer, "out of memory"));
}

// Whoever greps for upstream's text finds it at the beginning.
TEST(Failures, OurWordsFollowUpstreams) {
  const std::string cause = "connection refused";
  EXPECT_EQ(failures::waiting_timeout(kRoom, std::chrono::seconds(300), 1, 2).text,
            "Request 42 timed out after 300.0s waiting for KV transfer completion: 1 of 2 prefill "
            "ranks reported");
  EXPECT_EQ(failures::kv_write_failed(kRoom, kPeer, cause).text,
            failures::kv_write_failed(kRoom, kPeer, "").text + ": connection refused");
  EXPECT_EQ(failures::state_write_failed(kRoom, kPeer, cause).text,
            failures::state_write_failed(kRoom, kPeer, "").text + ": connection refused");
  EXPECT_EQ(failures::aux_write_failed(kRoom, cause).text,
            failures::aux_write_failed(kRoom, "").text + ": connection refused");
  EXPECT_EQ(failures::no_route(0, 0, 0, 0, cause).text,
            failures::no_route(0, 0, 0, 0, "").text + ": connection refused");
  EXPECT_EQ(failures::no_topology("boot:80", cause).text,
            failures::no_topology("boot:80", "").text + ": connection refused");
  EXPECT_EQ(failures::send_failed("send_metadata", kPeer, cause).text,
            failures::send_failed("send_metadata", kPeer, "").text + ": connection refused");
}

TEST(Failures, TextsOfOurOwnNameBothSides) {
  EXPECT_EQ(failures::never_opened(kRoom, std::chrono::milliseconds(30049)).text,
            "Request 42 was never opened on prefill within 30.0s of decode's metadata");
  EXPECT_EQ(failures::pages_missing(kRoom, kPeer, 3, {2, 4}),
            made(FailureCode::bad_metadata,
                 "Decode 10.0.0.7:41233 published 3 pages for request 42, but prefill sends pages "
                 "2 to 4"));
  EXPECT_EQ(failures::state_missing(kRoom, kPeer, 1, 2, 0),
            made(FailureCode::bad_metadata,
                 "Decode 10.0.0.7:41233 published 0 slots of state component 1 for request 42, "
                 "but prefill sends 2"));
  EXPECT_EQ(failures::session_unregistered(kRoom, "S:1"),
            made(FailureCode::bad_metadata,
                 "Metadata of request 42 names session S:1, which never registered with this "
                 "prefill rank"));
  EXPECT_EQ(failures::incompatible("boot:80", "page_size is 1 on prefill and 2 on decode"),
            made(FailureCode::incompatible,
                 "Prefill at boot:80 does not fit this decode rank: page_size is 1 on prefill and "
                 "2 on decode"));
}

TEST(Failures, Ipv6PeersAreBracketed) {
  EXPECT_EQ(failures::kv_write_failed(kRoom, {"fe80::1", 5}, "").text,
            "Failed to send kv chunk of 42 to [fe80::1]:5");
}

}  // namespace
