// Reads and checks a safetensors file.
#include "refengine/safetensors.hpp"

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "refengine/files.hpp"
#include "refengine/math.hpp"

namespace baton::refengine {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kHeaderBytesMax = std::size_t{16} << 20U;
constexpr std::size_t kLengthBytes = 8;

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

std::optional<std::vector<std::size_t>> unsigned_list(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return std::nullopt;
  std::vector<std::size_t> values;
  for (const Json& value : *found) {
    if (!value.is_number_unsigned()) return std::nullopt;
    values.push_back(value.get<std::size_t>());
  }
  return values;
}

// The error does not name the tensor yet. `room`: bytes of the file that follow the header.
Result<TensorEntry> parse_entry(const Json& json, std::size_t data_start, std::size_t room) {
  const auto malformed = [](const std::string& what) { return Error{Errc::malformed, what}; };
  if (!json.is_object()) return malformed("expected an object in the header");
  const auto dtype = json.find("dtype");
  const auto shape = unsigned_list(json, "shape");
  const auto offsets = unsigned_list(json, "data_offsets");
  if (dtype == json.end() || !dtype->is_string() || !shape || !offsets || offsets->size() != 2) {
    return malformed("expected dtype, shape and two data_offsets in the header");
  }
  const std::size_t begin = (*offsets)[0];
  const std::size_t end = (*offsets)[1];
  if (begin > end) return malformed("its data_offsets run backwards");
  if (end > room) {
    return malformed("the file is truncated: expected " + std::to_string(end) +
                     " bytes of data, found " + std::to_string(room) + "; copy the file again");
  }
  return TensorEntry{dtype->get<std::string>(), *shape, data_start + begin, data_start + end};
}

}  // namespace

Result<TensorFile> TensorFile::open(const std::string& path) {
  Result<std::string> bytes = read_file(path);
  if (!bytes) return bytes.error();
  TensorFile file;
  file.path_ = path;
  file.bytes_ = std::move(*bytes);
  if (Result<void> parsed = file.parse_header(); !parsed) return parsed.error();
  return file;
}

Result<void> TensorFile::parse_header() {
  if (bytes_.size() < kLengthBytes) {
    return Error{Errc::malformed, path_ + " is truncated: expected at least 8 bytes, found " +
                                      std::to_string(bytes_.size()) + "; copy the file again"};
  }
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8U | static_cast<std::uint8_t>(bytes_[i]);
  }
  if (length > kHeaderBytesMax || length > bytes_.size() - kLengthBytes) {
    const std::string size = std::to_string(bytes_.size());
    return Error{Errc::malformed, path_ +
                                      " is truncated or not a safetensors file: its header has " +
                                      std::to_string(length) + " bytes, the whole file " + size +
                                      "; copy the file again"};
  }
  const auto begin = bytes_.cbegin() + static_cast<std::ptrdiff_t>(kLengthBytes);
  const Json header =
      Json::parse(begin, begin + static_cast<std::ptrdiff_t>(length), nullptr, false);
  if (!header.is_object()) {
    return Error{Errc::malformed, path_ + ": its header is not a JSON object; copy the file again"};
  }
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const std::size_t data_start = kLengthBytes + length;
    Result<TensorEntry> parsed = parse_entry(entry, data_start, bytes_.size() - data_start);
    if (!parsed) {
      return Error{parsed.error().code, path_ + ", tensor " + name + ": " + parsed.error().text};
    }
    entries_[name] = *std::move(parsed);
  }
  return {};
}

Result<std::vector<float>> TensorFile::read(const std::string& name,
                                            const std::vector<std::size_t>& shape) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    return Error{Errc::not_found, path_ + ", tensor " + name + ": expected BF16 " +
                                      shape_text(shape) + ", found no such tensor"};
  }
  const TensorEntry& entry = found->second;
  if (entry.dtype != "BF16" || entry.shape != shape) {
    return Error{Errc::incompatible, path_ + ", tensor " + name + ": expected BF16 " +
                                         shape_text(shape) + ", found " + entry.dtype + " " +
                                         shape_text(entry.shape)};
  }
  std::size_t count = 1;
  for (const std::size_t extent : shape) count *= extent;
  if (entry.end - entry.begin != 2 * count) {
    return Error{Errc::malformed, path_ + ", tensor " + name + ": expected " +
                                      std::to_string(2 * count) + " bytes, found " +
                                      std::to_string(entry.end - entry.begin)};
  }
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes_.data() + entry.begin + 2 * i, sizeof bits);
    values[i] = from_bf16(bits);
  }
  return values;
}

}  // namespace baton::refengine
