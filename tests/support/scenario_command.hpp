// ScenarioCommand: one line of a story, split into words and named values.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "baton/types.hpp"

namespace baton::test {

// `name word word key=value "quoted word"`. Access to what is missing throws invalid_argument with
// a text for the author of the story.
class ScenarioCommand {
 public:
  static ScenarioCommand parse(const std::string& line);

  const std::string& name() const { return name_; }
  std::size_t words_count() const { return words_.size(); }
  const std::string& word(std::size_t index) const;
  bool has(const std::string& key) const { return values_.contains(key); }
  std::string text(const std::string& key, const std::string& otherwise) const;
  std::uint64_t number(const std::string& key, std::uint64_t otherwise) const;
  std::uint32_t number32(const std::string& key, std::uint32_t otherwise) const;
  std::vector<std::int32_t> list(const std::string& key) const;  // "1,2"; "" is empty
  Duration duration(const std::string& key, Duration otherwise) const;
  bool is_yes(const std::string& key, bool otherwise) const;

 private:
  std::string name_;
  std::vector<std::string> words_;
  std::map<std::string, std::string> values_;
};

std::uint64_t parse_number(const std::string& text);
std::vector<std::int32_t> parse_list(const std::string& text);
Duration parse_duration(const std::string& text);  // "300s", "200ms"
std::vector<std::string> split(const std::string& text, char separator);

}  // namespace baton::test
