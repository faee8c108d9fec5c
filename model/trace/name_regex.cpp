#include "trace/name_regex.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include "base/error.hpp"

namespace moeline {
namespace {

// Longer names are templates in templates: what they are about stands in front.
constexpr std::size_t kSearched = 1000;

RE2::Options options() {
  RE2::Options options(RE2::Quiet);
  options.set_case_sensitive(false);
  options.set_encoding(RE2::Options::EncodingLatin1);  // bytes: a name may be anything
  return options;
}

}  // namespace

NameRegex::NameRegex(const std::string& pattern) : regex_(std::make_shared<const RE2>(pattern, options())) {
  if (!regex_->ok()) throw SpecError(fmt::format("'{}' is not a regular expression: {}", pattern, regex_->error()));
}

bool NameRegex::found_in(std::string_view name) const {
  const std::string_view searched = name.substr(0, kSearched);
  return RE2::PartialMatch(re2::StringPiece(searched.data(), searched.size()), *regex_);
}

}  // namespace moeline
