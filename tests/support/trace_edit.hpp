// A trace's text, changed: unpacked, its numbers replaced, repeated.
#pragma once

#include <zlib.h>

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <string>

namespace moeline::testing {

inline std::string unpacked(const std::filesystem::path& path) {
  std::string text;
  std::string part(1U << 20U, '\0');
  gzFile gzip = gzopen(path.c_str(), "rb");
  for (int read = 0; (read = gzread(gzip, part.data(), static_cast<unsigned>(part.size()))) > 0;) {
    text.append(part, 0, static_cast<std::size_t>(read));
  }
  gzclose(gzip);
  return text;
}

inline std::string replace_all(const std::string& text, const std::string& from, const std::string& to) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t found = 0; (found = text.find(from, at)) != std::string::npos; at = found + from.size()) {
    out.append(text, at, found - at).append(to);
  }
  return out.append(text, at);
}

/// Every whole number behind `key`, replaced by what `change` makes of it.
template <class Change>
std::string change_numbers(const std::string& text, const std::string& key, Change change) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t found = 0; (found = text.find(key, at)) != std::string::npos;) {
    const std::size_t begin = found + key.size();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), number);
    out.append(text, at, begin - at);
    if (error == std::errc()) out.append(change(number));
    at = error == std::errc() ? static_cast<std::size_t>(end - text.data()) : begin;
  }
  return out.append(text, at);
}

/// The events of a trace in Kineto's layout, `shift` of them later: times by its length, ids out of each other's way.
inline std::string shifted_events(const std::string& events, std::int64_t shift) {
  constexpr std::int64_t kLengthUs = 130'000;
  constexpr std::int64_t kIds = 1'000'000;
  const auto later = [&](std::int64_t step) {
    return [step, shift](std::int64_t number) { return std::to_string(number + step * shift); };
  };
  std::string text = change_numbers(events, "\"ts\": ", later(kLengthUs));
  for (const char* key : {"\"correlation\": ", "\"External id\": ", "\"id\": "}) {
    text = change_numbers(text, key, later(kIds));
  }
  return text;
}

}  // namespace moeline::testing
