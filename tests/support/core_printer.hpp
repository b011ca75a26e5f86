// Core printer: one readable line for every message, action, event and error of the core.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/actions.hpp"
#include "core/events.hpp"
#include "core/messages.hpp"

namespace baton::test {

// "7#2": room 7, its second life.
std::string print_key(core::RoomKey key);
std::string print_message(const Message& message);
std::string print_action(const core::Action& action);
// Joined by `separator`; "" when there is nothing to do.
std::string print_actions(const core::Actions& actions, std::string_view separator);
std::string print_event(const core::PrefillEvent& event);
std::string print_event(const core::DecodeEvent& event);
// "misuse: send() before init() for room 7"
std::string print_error(const Error& error);
// `aborted_here "Aborted by AbortReq."`
std::string print_failure(const Failure& failure);
std::string_view to_string(Errc code);

// "[1 2 3]"
template <class T>
std::string print_list(const std::vector<T>& values) {
  std::string text = "[";
  for (const T& value : values) {
    if (text.size() > 1) text += ' ';
    text += std::to_string(value);
  }
  return text + "]";
}

}  // namespace baton::test
