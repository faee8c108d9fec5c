// The studies of experiments/: their tables are those that are stored beside them, and what their READMEs say of
// directions holds in what is simulated now.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <utility>

#include "tests/support/cli.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("sweep/studies") {

using namespace moeline;
using namespace moeline::testing;

namespace {

namespace fs = std::filesystem;

const fs::path kExperiments = fs::path(MOELINE_SOURCE_DIR) / "experiments/studies";

std::vector<fs::path> studies() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(kExperiments)) {
    if (entry.path().extension() == ".yaml" && content_of(entry.path()).find("\naxes:") != std::string::npos) {
      found.push_back(entry.path());
    }
  }
  return found;
}

fs::path expected_of(const fs::path& study) {
  const std::string name = study.stem();
  return study.parent_path() / (name == "study" ? "expected.csv" : "expected_" + name + ".csv");
}

// Simulated now, once for all cases.
const std::string& table_of(const fs::path& study) {
  static std::map<fs::path, std::string> tables;
  const auto known = tables.find(study);
  if (known != tables.end()) return known->second;
  const TemporaryFolder folder;
  const Outcome outcome = run_moeline({"sweep", study, "-o", folder / "table.sqlite", "--format", "csv"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return tables[study] = outcome.out;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

using Row = std::map<std::string, std::string>;
using Rows = std::vector<Row>;

Row row_of(const std::vector<std::string>& keys, const std::vector<std::string>& values) {
  REQUIRE(values.size() == keys.size());
  Row row;
  for (std::size_t i = 0; i < keys.size(); ++i) row[keys[i]] = values[i];
  return row;
}

/// What `moeline sweep` prints of a study of experiments/.
Rows rows_of(const std::string& study) {
  const std::vector<std::string> lines = split(table_of(kExperiments / study), '\n');
  const std::vector<std::string> keys = split(lines.at(0), ',');
  Rows rows;
  for (std::size_t i = 1; i < lines.size(); ++i) rows.push_back(row_of(keys, split(lines[i], ',')));
  return rows;
}

double number(const Row& row, const std::string& key) {
  REQUIRE_MESSAGE(row.contains(key), "no column " << key);
  return std::stod(row.at(key));
}

bool has(const Row& row, const Row& values) {
  return std::ranges::all_of(values, [&](const auto& value) { return row.at(value.first) == value.second; });
}

Rows where(const Rows& rows, const Row& values) {
  Rows found;
  std::ranges::copy_if(rows, std::back_inserter(found), [&](const Row& row) { return has(row, values); });
  REQUIRE_FALSE(found.empty());
  return found;
}

const Row& the_row(const Rows& rows, const Row& values) {
  const auto row = std::ranges::find_if(rows, [&](const Row& each) { return has(each, values); });
  REQUIRE(row != rows.end());
  return *row;
}

/// Calls with every two rows that follow each other along an axis, the other axes alike.
template <class Check>
void along(const std::string& axis, const std::vector<std::string>& other_axes, const Rows& rows, const Check& check) {
  std::map<std::string, const Row*> last;
  int pairs = 0;
  for (const Row& row : rows) {
    std::string place;
    for (const std::string& key : other_axes) place += key + "=" + row.at(key) + " ";
    if (const Row* before = std::exchange(last[place], &row)) {
      CAPTURE(place);
      CAPTURE(before->at(axis));
      CAPTURE(row.at(axis));
      check(*before, row);
      ++pairs;
    }
  }
  CHECK(pairs > 0);
}

/// How much of one micro-batch's time two of them take.
double two_over_one(const Rows& rows, const std::string& two, const std::string& metric, Row place) {
  place["schedule"] = two;
  const double time = number(the_row(rows, place), metric);
  place["schedule"] = "sequential";
  return time / number(the_row(rows, place), metric);
}

double best(const Rows& rows, const std::string& metric, const Row& values) {
  double most = 0;
  for (const Row& row : where(rows, values)) most = std::max(most, number(row, metric));
  return most;
}

}  // namespace

TEST_CASE("every study of experiments/ gives the table beside it, byte for byte") {
  const std::vector<fs::path> all = studies();
  CHECK(all.size() >= 9);
  for (std::size_t i = 0; i < all.size(); i += kSanitized ? 8 : 1) {
    const fs::path& study = all[i];
    CAPTURE(study.string());
    REQUIRE_MESSAGE(fs::exists(expected_of(study)), "tests/update_studies.sh writes it");
    CHECK_MESSAGE(table_of(study) == content_of(expected_of(study)),
                  "if the change is meant: tests/update_studies.sh, and the numbers in the README");
  }
}

TEST_CASE("decode by EP: wider EP lengthens the step by no more than the wait for more ranks, and needs less memory") {
  const Rows rows = rows_of("decode_ep_by_batch_h800/study.yaml");
  const Rows own = where(rows, {{"routing.redundant_experts", "0"}});
  along("parallelism.ep", {"workload.batch_size"}, own, [](const Row& narrow, const Row& wide) {
    CHECK(number(wide, "tpot_ms") <= 1.01 * number(narrow, "tpot_ms"));
    CHECK(number(wide, "memory_gib") < number(narrow, "memory_gib"));
  });
  for (const Row& row : where(rows, {{"parallelism.ep", "8"}})) CHECK(number(row, "fits_memory") == 0);
  for (const Row& row : where(rows, {{"workload.batch_size", "256"}})) CHECK(number(row, "fits_memory") == 0);
}

TEST_CASE("decode by EP: with balanced routing redundant experts neither help nor hurt") {
  const Rows rows = rows_of("decode_ep_by_batch_h800/study.yaml");
  for (const auto& [with, without] : {std::pair{"144", "128"}, std::pair{"320", "256"}}) {
    for (const Row& row : where(rows, {{"parallelism.ep", with}})) {
      const Row& other =
          the_row(rows, {{"parallelism.ep", without}, {"workload.batch_size", row.at("workload.batch_size")}});
      CHECK(number(row, "tpot_ms") == doctest::Approx(number(other, "tpot_ms")).epsilon(0.004));
    }
  }
}

TEST_CASE("prefill by SMs: more of them never lengthen transfers, and always slow compute") {
  const Rows rows = rows_of("prefill_comm_sms_by_ep_h800/study.yaml");
  const auto transfers = [](const Row& row) { return number(row, "comm_busy_us") - number(row, "barrier_us"); };
  along("comm.num_sms", {"kernels", "parallelism.ep"}, rows, [&](const Row& few, const Row& many) {
    CHECK(transfers(many) <= transfers(few));
    CHECK(number(many, "compute_busy_us") > number(few, "compute_busy_us"));
  });
}

TEST_CASE("prefill by SMs: the best number is 16 to 32, around the published 20 to 24, never fewer for wider EP") {
  const Rows rows = rows_of("prefill_comm_sms_by_ep_h800/study.yaml");
  for (const char* kernels : {"deepseek-2025-02", "open-2025-late"}) {
    double narrower = 16;
    for (const char* ep : {"16", "32", "64"}) {
      const Rows line = where(rows, {{"kernels", kernels}, {"parallelism.ep", ep}});
      const Row& fastest = *std::ranges::min_element(line, {}, [](const Row& row) { return number(row, "ttft_ms"); });
      const double best = number(fastest, "comm.num_sms");
      CAPTURE(kernels);
      CAPTURE(ep);
      CHECK(best >= narrower);
      CHECK(best <= 32);
      CHECK(number(line.back(), "exposed_comm_us") < number(fastest, "exposed_comm_us"));
      narrower = best;
    }
  }
}

TEST_CASE("decode with two micro-batches is a loss at small batches, and once it pays it pays at larger ones") {
  const Rows rows = rows_of("two_batch_or_sequential_h800/decode.yaml");
  double last_break_even = 1 << 20;
  for (const char* ep : {"16", "32", "128"}) {
    double break_even = 0, before = 0, ratio_before = 1;
    for (const char* batch : {"16", "32", "64", "96", "128", "256"}) {
      CAPTURE(ep);
      CAPTURE(batch);
      const Row place = {{"parallelism.ep", ep}, {"workload.batch_size", batch}};
      const double ratio = two_over_one(rows, "decode-two-batch", "tpot_ms", place);
      const double requests = std::stoi(batch);
      if (break_even == 0 && ratio < 1) {  // on the line between the two
        break_even = before + (requests - before) * (ratio_before - 1) / (ratio_before - ratio);
      }
      CHECK((ratio < 1) == (break_even > 0));
      if (requests <= 32) CHECK(ratio > 1.2);
      before = requests;
      ratio_before = ratio;
    }
    CHECK(break_even > 0);
    CHECK(break_even < last_break_even);  // the wider EP, the earlier
    last_break_even = break_even;
  }
}

TEST_CASE("where two micro-batches lose, they compute longer by more than they expose less") {
  const Rows rows = rows_of("two_batch_or_sequential_h800/decode.yaml");
  for (const Row& two : where(rows, {{"schedule", "decode-two-batch"}})) {
    const Row& one = the_row(rows, {{"schedule", "sequential"},
                                    {"parallelism.ep", two.at("parallelism.ep")},
                                    {"workload.batch_size", two.at("workload.batch_size")}});
    const double longer = number(two, "compute_busy_us") - number(one, "compute_busy_us");
    const double hidden = number(one, "exposed_comm_us") - number(two, "exposed_comm_us");
    CHECK(longer > 0);
    CHECK(hidden > 0);
    if (longer > 1.2 * hidden) CHECK(number(two, "tpot_ms") > number(one, "tpot_ms"));  // gaps and waits aside
    if (number(two, "workload.batch_size") <= 32) CHECK(longer > hidden);
  }
}

TEST_CASE("prefill with two micro-batches is a loss up to 256 tokens per step, and pays from 1024 on") {
  const Rows rows = rows_of("two_batch_or_sequential_h800/prefill.yaml");
  for (const Row& row : where(rows, {{"schedule", "sequential"}})) {
    const Row place = {{"parallelism.ep", row.at("parallelism.ep")}, {"workload.tokens", row.at("workload.tokens")}};
    const double ratio = two_over_one(rows, "prefill-two-batch", "ttft_ms", place);
    CAPTURE(place.at("parallelism.ep"));
    CAPTURE(place.at("workload.tokens"));
    if (number(row, "workload.tokens") <= 256) CHECK(ratio > 1.15);
    if (number(row, "workload.tokens") >= 1024) CHECK(ratio < 0.95);
  }
}

TEST_CASE("a wider NIC is never slower, and what it saves is exposed communication") {
  const auto check = [](const char* study, const char* time, const std::vector<std::string>& axes) {
    along("hardware.nic_GBps", axes, rows_of(study), [&](const Row& narrow, const Row& wide) {
      CHECK(number(wide, time) <= number(narrow, time));
      CHECK(number(wide, "exposed_comm_us") <= number(narrow, "exposed_comm_us"));
    });
  };
  check("nic_bandwidth_h800/decode.yaml", "tpot_ms", {"schedule", "parallelism.ep", "workload.batch_size"});
  check("nic_bandwidth_h800/prefill.yaml", "ttft_ms", {"kernels", "schedule", "parallelism.ep"});
}

TEST_CASE("two micro-batches of up to 32 requests hide half the NIC, on twice the NIC one is as good as they are") {
  const Rows rows = rows_of("nic_bandwidth_h800/decode.yaml");
  for (const char* ep : {"32", "128"}) {
    for (const char* batch : {"32", "64", "128"}) {
      Row place = {{"parallelism.ep", ep}, {"workload.batch_size", batch}, {"hardware.nic_GBps", "100"}};
      CAPTURE(ep);
      CAPTURE(batch);
      CHECK(two_over_one(rows, "decode-two-batch", "tpot_ms", place) > 0.99);
      place["schedule"] = "decode-two-batch";
      place["hardware.nic_GBps"] = "50";
      const double full = number(the_row(rows, place), "tpot_ms");
      place["hardware.nic_GBps"] = "25";
      const double half = number(the_row(rows, place), "tpot_ms");
      if (std::stoi(batch) <= 32) CHECK(half < 1.015 * full);
      if (std::stoi(batch) > 64) CHECK(half > 1.2 * full);
    }
  }
}

TEST_CASE(
    "GB200 is never slower than H200, nor H200 than H800, for decode inside an NVLink domain one micro-batch wins") {
  const auto ordered = [](const Rows& rows, const char* time, const std::vector<std::string>& axes) {
    along("hardware", axes, rows,
          [&](const Row& older, const Row& newer) { CHECK(number(newer, time) < number(older, time)); });
  };
  const Rows decode = rows_of("h800_h200_gb200/decode.yaml");
  ordered(decode, "tpot_ms", {"schedule", "parallelism.ep", "workload.batch_size"});
  ordered(rows_of("h800_h200_gb200/prefill.yaml"), "ttft_ms", {"schedule", "parallelism.ep"});
  for (const Row& row : where(decode, {{"hardware", "gb200-nvl72"}, {"schedule", "sequential"}})) {
    const Row place = {{"hardware", "gb200-nvl72"},
                       {"parallelism.ep", row.at("parallelism.ep")},
                       {"workload.batch_size", row.at("workload.batch_size")}};
    CHECK(two_over_one(decode, "decode-two-batch", "tpot_ms", place) > 1);
  }
}

TEST_CASE("H200's gain in decode is its memory more than its bandwidth") {
  const Rows rows = rows_of("h800_h200_gb200/decode.yaml");
  const auto gain = [&](Row place) {
    place["hardware"] = "h800";
    const double h800 = best(rows, "tokens_per_s_per_gpu", place);
    place["hardware"] = "h200";
    return best(rows, "tokens_per_s_per_gpu", place) / h800;
  };
  CHECK(gain({{"parallelism.ep", "64"}, {"workload.batch_size", "128"}}) < 1.15);
  CHECK(gain({{"parallelism.ep", "64"}, {"fits_memory", "1"}}) > 1.3);
}

TEST_CASE("a drafted token gains at every batch, a second one at up to 64 requests alone") {
  const Rows rows = rows_of("mtp_by_batch_h800/study.yaml");
  const auto throughput = [&](const char* tokens, const std::string& batch) {
    return best(rows, "tokens_per_s_per_gpu", {{"workload.query_len", tokens}, {"workload.batch_size", batch}});
  };
  for (const char* batch : {"8", "16", "32", "64", "128", "256"}) {
    CAPTURE(batch);
    CHECK(throughput("2", batch) > throughput("1", batch));
    CHECK((throughput("3", batch) > throughput("2", batch)) == (std::stoi(batch) <= 64));
  }
}

TEST_CASE("the more tokens a request has in a step, the sooner two micro-batches pay") {
  const Rows rows = rows_of("mtp_by_batch_h800/study.yaml");
  int last_break_even = 1 << 20;
  for (const char* tokens : {"1", "2", "3"}) {
    int break_even = 0;
    for (const char* batch : {"256", "128", "64", "32", "16", "8"}) {
      const Row place = {{"workload.query_len", tokens}, {"workload.batch_size", batch}};
      if (two_over_one(rows, "decode-two-batch", "tpot_ms", place) < 1) break_even = std::stoi(batch);
    }
    CAPTURE(tokens);
    CHECK(break_even > 0);
    CHECK(break_even <= last_break_even);
    last_break_even = break_even;
  }
  CHECK(last_break_even < 64);
}

}  // TEST_SUITE("sweep/studies")
