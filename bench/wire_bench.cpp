// Wire benchmark: what it costs to encode and decode the two messages that every request needs.
#include <benchmark/benchmark.h>

#include "wire/dialect.hpp"

namespace baton::wire {
namespace {

Metadata metadata(std::int64_t pages_count) {
  Metadata message;
  message.room = {8123456789012345678};
  message.endpoint = {"10.0.0.7", 41233};
  message.session_id = "10.0.0.7:16001";
  for (PageIndex page = 0; page < pages_count; ++page) message.kv_pages.push_back(page);
  message.aux_index = 9;
  message.state_slots = {{7}};
  return message;
}

void encode(benchmark::State& state, const Message& message) {
  for (auto _ : state) {
    Result<Frames> frames = mooncake().encode(message);
    benchmark::DoNotOptimize(frames);
  }
}

void decode(benchmark::State& state, Side side, const Message& message) {
  const Frames frames = *mooncake().encode(message);
  for (auto _ : state) {
    Result<Message> read = mooncake().decode(side, frames);
    benchmark::DoNotOptimize(read);
  }
}

void encode_metadata_pages(benchmark::State& state) { encode(state, metadata(state.range(0))); }
void decode_metadata_pages(benchmark::State& state) {
  decode(state, Side::prefill, metadata(state.range(0)));
}
void encode_status_message(benchmark::State& state) {
  encode(state, Status{RoomId{42}, 4, 31, ""});
}
void decode_status_message(benchmark::State& state) {
  decode(state, Side::decode, Status{RoomId{42}, 4, 31, ""});
}

BENCHMARK(encode_metadata_pages)->Arg(16)->Arg(4096);
BENCHMARK(decode_metadata_pages)->Arg(16)->Arg(4096);
BENCHMARK(encode_status_message);
BENCHMARK(decode_status_message);

}  // namespace
}  // namespace baton::wire
