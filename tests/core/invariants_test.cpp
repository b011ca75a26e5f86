// The checkers themselves: each must catch a seeded mistake, or it proves nothing.
#include "support/core_invariants.hpp"

#include <gtest/gtest.h>

namespace {

using namespace baton;
using namespace baton::core;
using namespace baton::test;

const RoomKey kKey{RoomId{7}, Life{1}};
const std::string kSession = "D-engine:1";

StatusChanged status(KvPoll value) {
  StatusChanged change{kKey, value, std::nullopt};
  if (value == KvPoll::failed) change.failure = Failure{};
  return change;
}

SubmitWrite a_write() {
  SubmitWrite write;
  write.key = kKey;
  write.target = std::make_shared<const Registration>();
  return write;
}

Problems after(const Actions& actions) {
  RoomWatch watch;
  Problems problems;
  watch.listen(actions, problems);
  return problems;
}

TEST(RoomWatch, AcceptsAProperLife) {
  EXPECT_EQ(after({status(KvPoll::bootstrapping), status(KvPoll::waiting_for_input),
                   status(KvPoll::transferring), QuietChanged{kKey, false}, a_write(),
                   QuietChanged{kKey, true}, status(KvPoll::success), RoomClosed{kKey}}),
            Problems{});
}

TEST(RoomWatch, CatchesAWayBackFromTheEnd) {
  EXPECT_EQ(after({status(KvPoll::failed), status(KvPoll::success)}).size(), 1U);
  EXPECT_EQ(after({status(KvPoll::success), status(KvPoll::failed)}).size(), 1U);
}

TEST(RoomWatch, CatchesRepetitions) {
  EXPECT_EQ(after({status(KvPoll::transferring), status(KvPoll::transferring)}).size(), 1U);
  EXPECT_EQ(after({QuietChanged{kKey, true}}).size(), 1U);
}

TEST(RoomWatch, CatchesAFailureWithoutAReason) {
  EXPECT_EQ(after({StatusChanged{kKey, KvPoll::failed, std::nullopt}}).size(), 1U);
  EXPECT_EQ(after({StatusChanged{kKey, KvPoll::success, Failure{}}}).size(), 1U);
}

TEST(RoomWatch, CatchesWritesOfAQuietOrFinishedRoom) {
  EXPECT_EQ(after({status(KvPoll::transferring), a_write()}).size(), 1U);
  EXPECT_EQ(after({status(KvPoll::failed), QuietChanged{kKey, false}, a_write()}).size(), 1U);
}

TEST(RoomWatch, CatchesWordsAboutAClosedLife) {
  EXPECT_EQ(after({status(KvPoll::success), RoomClosed{kKey}, QuietChanged{kKey, false}}).size(),
            1U);
  EXPECT_EQ(after({status(KvPoll::success), RoomClosed{kKey}, RoomClosed{kKey}}).size(), 1U);
}

TEST(RoomWatch, CatchesClosingTooEarly) {
  EXPECT_EQ(after({status(KvPoll::transferring), RoomClosed{kKey}}).size(), 1U);
  EXPECT_EQ(after({status(KvPoll::failed), QuietChanged{kKey, false}, RoomClosed{kKey}}).size(),
            1U);
}

TEST(RoomWatch, CatchesARoomThatVanishes) {
  RoomWatch watch;
  Problems problems;
  watch.listen({status(KvPoll::bootstrapping)}, problems);
  watch.forget_missing({}, problems);
  EXPECT_EQ(problems.size(), 1U);
}

TEST(RoomWatch, CatchesARoomThatAnswersSomethingElse) {
  RoomWatch watch;
  Problems problems;
  watch.listen({status(KvPoll::transferring)}, problems);
  watch.compare(kKey, KvPoll::success, true, problems);
  EXPECT_EQ(problems.size(), 1U);
  watch.compare(kKey, KvPoll::transferring, false, problems);
  EXPECT_EQ(problems.size(), 2U);
}

class Ledger : public testing::Test {
 protected:
  Ledger() {
    Registration registration;
    registration.session_id = kSession;
    write_.ticket = Ticket{1};
    write_.key = kKey;
    write_.target = std::make_shared<const Registration>(registration);
    write_.target_pages = {10};
    ledger_.on_init("P", {kKey, 1, 0});
    ledger_.on_publish(kSession, {kKey, {10}, 3, {}, 0});
  }

  PageLedger ledger_;
  SubmitWrite write_;
  Problems problems_;
};

TEST_F(Ledger, CatchesAProofWhileAWriteIsOpen) {
  ledger_.on_submit("P", write_, problems_);
  ledger_.on_write_done("P", write_.ticket, Outcome::unsettled);
  EXPECT_EQ(problems_.size(), 0U);
  ledger_.on_quiet(kSession, kKey, true, problems_);
  EXPECT_EQ(problems_.size(), 1U);
}

TEST_F(Ledger, CatchesAWriteIntoAReleasedPage) {
  ledger_.on_quiet(kSession, kKey, true, problems_);
  ledger_.on_submit("P", write_, problems_);
  EXPECT_EQ(problems_.size(), 1U);
}

TEST_F(Ledger, ExcusesWhatWasReleasedByTimeout) {
  ledger_.on_submit("P", write_, problems_);
  ledger_.on_quiet(kSession, kKey, false, problems_);
  ledger_.on_submit("P", write_, problems_);
  EXPECT_EQ(problems_.size(), 0U);
}

TEST_F(Ledger, CatchesSuccessWithoutTheBytes) {
  ledger_.on_submit("P", write_, problems_);
  ledger_.on_write_done("P", write_.ticket, Outcome::failed);
  ledger_.on_success(kSession, kKey, problems_);
  EXPECT_EQ(problems_.size(), 1U);  // the aux row; nobody announced pages to it
  SubmitWrite aux = write_;
  aux.part = WritePart::aux;
  aux.target_pages.clear();
  aux.target_aux = 3;
  ledger_.on_submit("P", aux, problems_);
  ledger_.on_write_done("P", aux.ticket, Outcome::ok);
  ledger_.on_success(kSession, kKey, problems_);
  EXPECT_EQ(problems_.size(), 2U);  // the page
}

}  // namespace
