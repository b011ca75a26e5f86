// Splits lines; knows nothing about rooms.
#include "support/scenario_command.hpp"

#include <sstream>
#include <stdexcept>

namespace baton::test {

namespace {

// Words are separated by spaces; quotes keep spaces and vanish.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false, started = false;
  for (const char letter : line) {
    if (letter == '"') {
      quoted = !quoted;
      started = true;
    } else if (letter == ' ' && !quoted) {
      if (started) words.push_back(word);
      word.clear();
      started = false;
    } else {
      word += letter;
      started = true;
    }
  }
  if (started) words.push_back(word);
  return words;
}

bool is_key(const std::string& text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos;
}

}  // namespace

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  std::istringstream stream(text);
  while (std::getline(stream, part, separator)) parts.push_back(part);
  return parts;
}

std::uint64_t parse_number(const std::string& text) {
  std::size_t used = 0;
  const std::uint64_t value = std::stoull(text, &used);
  if (used != text.size()) throw std::invalid_argument("not a number: " + text);
  return value;
}

std::vector<std::int32_t> parse_list(const std::string& text) {
  std::vector<std::int32_t> values;
  for (const std::string& part : split(text, ',')) {
    values.push_back(static_cast<std::int32_t>(parse_number(part)));
  }
  return values;
}

Duration parse_duration(const std::string& text) {
  std::size_t used = 0;
  const double value = std::stod(text, &used);
  const std::string unit = text.substr(used);
  if (unit == "s")
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
  if (unit == "ms") return std::chrono::milliseconds(static_cast<std::int64_t>(value));
  throw std::invalid_argument("not a duration: " + text);
}

ScenarioCommand ScenarioCommand::parse(const std::string& line) {
  ScenarioCommand command;
  for (const std::string& word : words_of(line)) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos && is_key(word.substr(0, equals))) {
      command.values_[word.substr(0, equals)] = word.substr(equals + 1);
    } else if (command.name_.empty()) {
      command.name_ = word;
    } else {
      command.words_.push_back(word);
    }
  }
  return command;
}

const std::string& ScenarioCommand::word(std::size_t index) const {
  if (index >= words_.size()) {
    throw std::invalid_argument(name_ + " needs " + std::to_string(index + 1) + " words");
  }
  return words_[index];
}

std::string ScenarioCommand::text(const std::string& key, const std::string& otherwise) const {
  const auto found = values_.find(key);
  return found == values_.end() ? otherwise : found->second;
}

std::uint64_t ScenarioCommand::number(const std::string& key, std::uint64_t otherwise) const {
  return has(key) ? parse_number(values_.at(key)) : otherwise;
}

std::uint32_t ScenarioCommand::number32(const std::string& key, std::uint32_t otherwise) const {
  return static_cast<std::uint32_t>(number(key, otherwise));
}

std::vector<std::int32_t> ScenarioCommand::list(const std::string& key) const {
  return parse_list(text(key, ""));
}

Duration ScenarioCommand::duration(const std::string& key, Duration otherwise) const {
  return has(key) ? parse_duration(values_.at(key)) : otherwise;
}

bool ScenarioCommand::is_yes(const std::string& key, bool otherwise) const {
  return has(key) ? values_.at(key) == "yes" : otherwise;
}

}  // namespace baton::test
