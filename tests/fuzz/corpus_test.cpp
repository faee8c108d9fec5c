// The inputs that fuzzing keeps, in every build: small files by hand, and what was once read wrongly.
#include <doctest/doctest.h>

#include <set>

#include "tests/fuzz/readers.hpp"
#include "tests/support/data.hpp"
#include "tests/support/process.hpp"

TEST_SUITE("fuzz/corpus") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using namespace moeline::fuzz;

struct FedReader {
  const char* name;
  bool (*feed)(std::string_view bytes);
};

const std::vector<FedReader> kReaders = {{"calibration", feed_calibration},
                                         {"facts", feed_facts},
                                         {"kernel_map", feed_kernel_map},
                                         {"loads", feed_loads},
                                         {"model", feed_model},
                                         {"nsight", feed_nsight},
                                         {"op", feed_op},
                                         {"overlap_plan", feed_overlap_plan},
                                         {"plan", feed_plan},
                                         {"profile", feed_profile},
                                         {"row_kinds", feed_row_kinds},
                                         {"scenario", feed_scenario},
                                         {"study", feed_study},
                                         {"trace", feed_trace}};

struct Fed {
  int files = 0, taken = 0;
};

Fed feed_all(const FedReader& reader, const std::filesystem::path& folder) {
  Fed fed;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    CAPTURE(entry.path().string());
    CHECK_NOTHROW(fed.taken += reader.feed(content_of(entry.path())) ? 1 : 0);
    ++fed.files;
  }
  return fed;
}

}  // namespace

TEST_CASE("every file of the fuzzing corpora is read or refused, and what is read keeps its promises") {
  std::set<std::string> known;
  for (const FedReader& reader : kReaders) {
    CAPTURE(reader.name);
    known.insert(reader.name);
    const Fed fed = feed_all(reader, source("tests/fuzz/corpus") / reader.name);
    CHECK(fed.taken >= 1);
    CHECK(fed.files > fed.taken);  // some of it is bad input
  }
  for (const auto& entry : std::filesystem::directory_iterator(source("tests/fuzz/corpus"))) {
    CHECK_MESSAGE(known.contains(entry.path().filename()), entry.path().string() << " is no reader's");
  }
}

TEST_CASE("traces of the fuzzing corpus replay to their own times") {
  const Fed fed = feed_all({"trace", feed_trace}, source("tests/fuzz/corpus/trace"));
  CHECK(fed.files >= 20);
  CHECK(fed.taken >= 10);
}

}  // TEST_SUITE("fuzz/corpus")
