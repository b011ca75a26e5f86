// Result<T>: a value or an Error that a person can act on. Baton's public calls never throw.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace baton {

// What kind of thing went wrong. Stable: programs may switch on it; people read Error::text.
enum class Errc : std::uint8_t {
  misuse,            // the caller broke the API's contract (send after the last chunk, ...)
  invalid_argument,  // a value that can never work (port 70000, an empty path, ...)
  not_found,         // a file, room, region or peer that does not exist
  already_exists,    // a room that is still alive, an address that is in use
  incompatible,      // two sides that do not fit together (page size, dtype, version)
  unreachable,       // nobody listens there, or the peer is gone
  io,                // the operating system refused: text names the call and its cause
  timeout,           // a deadline passed
  limit,             // a named limit was reached
  malformed,         // bytes from outside that are not what they claim to be
  unsupported,       // not available in this build, on this machine, or in this version
  closed,            // the object was shut down
};

// Carries who, what was expected and what to do, in one sentence (`text`).
struct Error {
  Errc code = Errc::io;
  std::string text;

  friend bool operator==(const Error&, const Error&) = default;
};

// Either a T or an Error. Checked access is the caller's duty: look before you take.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return std::get<1>(state_); }

  friend bool operator==(const Result&, const Result&) = default;

 private:
  std::variant<T, Error> state_;
};

// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}

  bool has_value() const { return !failed_; }
  explicit operator bool() const { return !failed_; }
  const Error& error() const { return error_; }

  friend bool operator==(const Result&, const Result&) = default;

 private:
  Error error_;
  bool failed_ = false;
};

}  // namespace baton
