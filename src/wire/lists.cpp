// Packing and bounds-checked unpacking of arrays and lists of arrays.
#include "wire/lists.hpp"

#include <bit>
#include <cstring>

namespace baton::wire {

// The wire is little-endian and so is every host that Baton supports: elements are copied as is.
static_assert(std::endian::native == std::endian::little);

namespace {

constexpr std::size_t kWord = sizeof(std::uint32_t);  // bytes of a count or a length

std::string counted(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what;
}

Error malformed(const std::string& expected, const std::string& found) {
  return {Errc::malformed, "expected " + expected + ", found " + found};
}

Error too_many(std::size_t count_max, std::size_t count, const char* what) {
  return {Errc::invalid_argument,
          "expected at most " + counted(count_max, what) + ", found " + std::to_string(count)};
}

template <class T>
void append(std::string& frame, const std::vector<T>& values) {
  frame.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

void append_word(std::string& frame, std::size_t value) {
  const auto word = static_cast<std::uint32_t>(value);
  frame.append(reinterpret_cast<const char*>(&word), sizeof word);
}

std::size_t word_at(std::string_view frame, std::size_t offset_bytes) {
  std::uint32_t word = 0;
  std::memcpy(&word, frame.data() + offset_bytes, sizeof word);
  return word;
}

// The caller has checked that the bytes are whole elements.
template <class T>
std::vector<T> copy_elements(std::string_view bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace

template <class T>
Result<std::string> pack(const std::vector<T>& values, std::size_t values_max) {
  if (values.size() > values_max) return too_many(values_max, values.size(), "elements");
  std::string frame;
  append(frame, values);
  return frame;
}

template <class T>
Result<std::vector<T>> unpack(std::string_view frame, std::size_t values_max) {
  if (frame.size() % sizeof(T) != 0) {
    return malformed("whole elements of " + counted(sizeof(T), "bytes"),
                     counted(frame.size(), "bytes"));
  }
  if (frame.size() / sizeof(T) > values_max) {
    return malformed("at most " + counted(values_max, "elements"),
                     std::to_string(frame.size() / sizeof(T)));
  }
  return copy_elements<T>(frame);
}

template <class T>
Result<std::string> pack_lists(const Lists<T>& lists, ListLimits limits) {
  if (lists.empty()) return std::string();
  if (lists.size() > limits.lists_max) return too_many(limits.lists_max, lists.size(), "lists");
  std::size_t elements_count = 0;
  for (const std::vector<T>& list : lists) elements_count += list.size();
  // The limits are far below 2^32 bytes, so every length fits its u32.
  if (elements_count > limits.elements_max) {
    return too_many(limits.elements_max, elements_count, "elements");
  }
  std::string frame;
  frame.reserve(kWord * (1 + lists.size()) + elements_count * sizeof(T));
  append_word(frame, lists.size());
  for (const std::vector<T>& list : lists) append_word(frame, list.size() * sizeof(T));
  for (const std::vector<T>& list : lists) append(frame, list);
  return frame;
}

template <class T>
Result<Lists<T>> unpack_lists(std::string_view frame, ListLimits limits) {
  if (frame.empty()) return Lists<T>();
  if (frame.size() < kWord) {
    return malformed("nothing or a count of 4 bytes", counted(frame.size(), "bytes"));
  }
  const std::size_t lists_count = word_at(frame, 0);
  if (lists_count > limits.lists_max) {
    return malformed("at most " + counted(limits.lists_max, "lists"), std::to_string(lists_count));
  }
  const std::size_t header_bytes = kWord * (1 + lists_count);
  if (header_bytes > frame.size()) {
    return malformed(counted(lists_count, "lengths of 4 bytes"),
                     counted(frame.size() - kWord, "bytes"));
  }
  Lists<T> lists;
  lists.reserve(lists_count);
  std::string_view rest = frame.substr(header_bytes);
  std::size_t elements_left = limits.elements_max;
  for (std::size_t index = 0; index < lists_count; ++index) {
    const std::size_t list_bytes = word_at(frame, kWord * (1 + index));
    if (list_bytes > rest.size()) {
      return malformed(counted(list_bytes, "bytes in list ") + std::to_string(index),
                       std::to_string(rest.size()));
    }
    Result<std::vector<T>> list = unpack<T>(rest.substr(0, list_bytes), elements_left);
    if (!list) return list.error();
    elements_left -= list->size();
    rest.remove_prefix(list_bytes);
    lists.push_back(std::move(*list));
  }
  return lists;
}

#define BATON_WIRE_LISTS_OF(T)                                           \
  template Result<std::string> pack(const std::vector<T>&, std::size_t); \
  template Result<std::vector<T>> unpack(std::string_view, std::size_t); \
  template Result<std::string> pack_lists(const Lists<T>&, ListLimits);  \
  template Result<Lists<T>> unpack_lists(std::string_view, ListLimits)

BATON_WIRE_LISTS_OF(std::uint64_t);
BATON_WIRE_LISTS_OF(std::uint32_t);
BATON_WIRE_LISTS_OF(std::int32_t);

#undef BATON_WIRE_LISTS_OF

}  // namespace baton::wire
