// A profile is read whole, with those that it carries over: damage anywhere is refused at its line, used or not.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "hardware/profile.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"

TEST_SUITE("hardware/damaged_profile") {

using namespace moeline;
using namespace moeline::testing;

namespace {

std::string refusal(const std::filesystem::path& file) {
  try {
    (void)read_profile(file);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "was read";
}

// Where a value that is a number begins; a date is none.
std::vector<std::size_t> numbers_in(const std::string& text) {
  std::vector<std::size_t> places;
  for (std::size_t i = 2; i < text.size(); ++i) {
    const bool begins = text[i] >= '0' && text[i] <= '9' && (text.compare(i - 2, 2, ": ") == 0 || text[i - 1] == '[');
    const bool in_text = text.rfind('"', i) != std::string::npos && text.rfind('"', i) > text.rfind('\n', i);
    const bool in_date = i >= 6 && text.compare(i - 6, 6, "date: ") == 0;
    if (begins && !in_text && !in_date) places.push_back(i);
  }
  return places;
}

}  // namespace

TEST_CASE("a number that is none is refused at its line, wherever it stands in a profile") {
  constexpr std::size_t kEach = 7;  // of them all, to be quick
  const TemporaryFolder folder;
  for (const char* name : {"h800", "a100"}) {
    const std::string text = read_text(source(fmt::format("hwprofiles/{}.yaml", name)));
    const std::vector<std::size_t> places = numbers_in(text);
    REQUIRE(places.size() > 300);
    for (std::size_t i = 0; i < places.size(); i += kEach) {
      std::string damaged = text;
      damaged.insert(places[i], "x");
      const std::string file = folder.write("damaged.yaml", damaged);
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(places[i]), '\n');
      CAPTURE(text.substr(places[i] - 20, 40));
      CHECK(refusal(file).starts_with(fmt::format("{}:{}: ", file, line)));
    }
  }
}

TEST_CASE("damage in a profile that is only carried over is refused, naming that file") {
  const TemporaryFolder folder;
  const std::string text = read_text(source("hwprofiles/h100.yaml"));
  const std::size_t last = text.rfind("mean_error: ");
  REQUIRE(last != std::string::npos);
  const std::string damaged = folder.write("other.yaml", replaced(text, text.substr(last), "mean_error: none}\n"));
  const std::string b200 = read_text(source("hwprofiles/b200.yaml"));
  const std::string own =
      folder.write("own.yaml", replaced(b200, "carried_over_from: h100", "carried_over_from: other.yaml"));
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(last), '\n') + 1;
  CHECK(refusal(own).starts_with(fmt::format("{}:{}: ", damaged, line)));
  check_refused({"list", "hardware", own}, fmt::format("{}:{}: ", damaged, line), "mean_error must be a number");
  check_refused({"price", own, "gemm:"}, fmt::format("{}:{}: ", damaged, line), "mean_error must be a number");
}

}  // TEST_SUITE("hardware/damaged_profile")
