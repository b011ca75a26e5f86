// Reads the golden file, one JSON value a line.
#include "wire/golden_data.hpp"

#include <cstdint>
#include <fstream>
#include <iostream>

namespace baton::wire::test {

namespace {

using nlohmann::json;

std::string unhex_text(const std::string& hex) {
  std::string bytes;
  for (std::size_t index = 0; index + 1 < hex.size(); index += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(index, 2), nullptr, 16));
  }
  return bytes;
}

std::string pack_numbers(const std::vector<std::int32_t>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(std::int32_t)};
}

std::vector<json> read_lines() {
  std::ifstream file(BATON_SOURCE_DIR "/tests/golden/wire_mooncake.jsonl");
  std::vector<json> lines;
  std::string line;
  while (std::getline(file, line)) lines.push_back(json::parse(line));
  return lines;
}

const std::vector<json>& lines() {
  static const std::vector<json> all = read_lines();
  return all;
}

}  // namespace

std::vector<std::int32_t> golden_numbers(const json& numbers) {
  const char* const kSequence = "i32_sequence";
  if (numbers.is_array()) return numbers.get<std::vector<std::int32_t>>();
  const json& sequence = numbers.at(kSequence);
  std::vector<std::int32_t> values;
  std::int32_t value = sequence.at("start");
  for (int index = 0; index < sequence.at("count").get<int>(); ++index) {
    values.push_back(value);
    value += sequence.at("step").get<std::int32_t>();
  }
  return values;
}

Frames unhex(const json& frames) {
  Frames bytes;
  for (const json& frame : frames) {
    bytes.push_back(frame.is_string() ? unhex_text(frame) : pack_numbers(golden_numbers(frame)));
  }
  return bytes;
}

std::vector<GoldenEntry> golden_entries(std::string_view kind) {
  std::vector<GoldenEntry> entries;
  for (std::size_t index = 1; index < lines().size(); ++index) {
    const json& line = lines()[index];
    if (!kind.empty() && line.at("kind") != kind) continue;
    entries.push_back({line.at("kind"), line.at("case"), line.value("upstream", false),
                       line.at("recorded"), line.at("config"), line.at("parsed"),
                       unhex(line.at("frames"))});
  }
  return entries;
}

json golden_header() { return lines().empty() ? json() : lines().front(); }

int count_recorded(std::string_view kind, const std::vector<GoldenEntry>& entries) {
  int recorded = 0;
  for (const GoldenEntry& entry : entries) recorded += entry.recorded;
  std::cout << "golden " << kind << ": checked " << recorded << " entries, " << entries.size()
            << " distinct\n";
  return recorded;
}

}  // namespace baton::wire::test
