// Golden data: the recorded Mooncake messages of tests/golden/wire_mooncake.jsonl, as test entries.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/frames.hpp"

namespace baton::wire::test {

struct GoldenEntry {
  std::string kind;
  std::string name;       // the recording's case
  bool upstream = false;  // sent by the version before registrations had frames 18 and 19
  int recorded = 0;       // how many equal entries the recording has
  nlohmann::json config;  // what the sender was given
  nlohmann::json parsed;  // what the receiver's parser made of the frames, or its exception
  Frames frames;
};

// Every entry of one kind, or of all kinds; the file is read once. An unreadable file gives none.
std::vector<GoldenEntry> golden_entries(std::string_view kind = {});
// The first line: where the data comes from and how many entries of each kind were recorded.
nlohmann::json golden_header();
// How many recorded entries these stand for; prints it, so that a run shows what was checked.
int count_recorded(std::string_view kind, const std::vector<GoldenEntry>& entries);

Frames unhex(const nlohmann::json& frames);
// A list of numbers, or {"i32_sequence": {start, step, count}}.
std::vector<std::int32_t> golden_numbers(const nlohmann::json& numbers);

}  // namespace baton::wire::test
