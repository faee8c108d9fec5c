// Traces of any kind through the program: refused with one line that says what is wrong, or read with a note. Never a
// crash.
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/trace_text.hpp"

TEST_SUITE("cli/bad_trace") {

using namespace moeline::testing;

namespace {

// An annotated GEMM and transfer, so that every command has something to say.
const std::string kGood = gpu_range("mlp", "0", "100") + "," + kernel("0", "40") + "," + launch("0") + "," +
                          gpu_range("mlp", "200", "100") + "," + kernel("200", "100", 2);

/// The calls that read traces, with this file for their trace.
std::vector<Arguments> calls_with(const std::string& trace) {
  return {{"analyze", trace}, {"replay", trace}, {"compare", trace, trace}};
}

void check_content_refused(const std::string& content, const std::string& says, const std::string& name = "t.json") {
  const TemporaryFolder folder;
  const std::string trace = folder.write(name, content);
  for (const Arguments& call : calls_with(trace)) check_refused(call, trace + ": ", says);
}

/// Read by every command; what analyze prints holds `says`.
void check_tolerated(const std::string& content, const std::string& says) {
  const TemporaryFolder folder;
  const std::string trace = folder.write("t.json", content);
  for (const Arguments& call : calls_with(trace)) {
    const Outcome outcome = run_moeline(call);
    CAPTURE(joined(call));
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    if (call[0] == "analyze") CHECK_MESSAGE(outcome.out.find(says) != std::string::npos, "does not say: " << says);
  }
}

std::string with(const std::string& event) { return trace_of(kGood + "," + event); }

}  // namespace

TEST_CASE("the trace that the cases change is read without a note") {
  const TemporaryFolder folder;
  const Outcome outcome = run_moeline({"analyze", folder.write("t.json", trace_of(kGood))});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.find("note:") == std::string::npos);
}

TEST_CASE("files that are no traces are refused by analyze, replay and compare") {
  for (const Arguments& call : calls_with("/nowhere/t.json")) check_refused(call, "/nowhere/t.json: ", "no such file");
  check_content_refused("", "is empty");
  check_content_refused("\n\n", "is empty");
  check_content_refused("# a text\n", "not valid JSON at byte 0");
  check_content_refused({'\x7f', 'E', 'L', 'F', '\0', '\1'}, "not valid JSON");
  check_content_refused("{}", "not a trace: it has no array traceEvents");
  check_content_refused(trace_of(""), "no GPU events");
  check_content_refused(trace_of(launch("0") + "," + range("mlp", "0", "9")), "no GPU events");
}

TEST_CASE("truncated and damaged files are refused") {
  const std::string whole = trace_of(kGood);
  check_content_refused(whole.substr(0, whole.size() / 2), "truncated: its JSON breaks off at byte");
  const std::string packed = gzipped(whole);
  check_content_refused(packed.substr(0, packed.size() / 2), "its gzip data is truncated", "t.json.gz");
  std::string damaged = packed;
  damaged[packed.size() / 2] ^= 0x55;
  check_content_refused(damaged, "its gzip data is damaged", "t.json.gz");
}

TEST_CASE("times that make no sense are refused with their event and byte") {
  check_content_refused(with(kernel("NaN", "1")), "event 'gemm' at byte ");
  check_content_refused(with(kernel("NaN", "1")), "ts 'NaN' is not a number of us");
  check_content_refused(with(kernel("1", "-5")), "dur '-5' is negative");
  check_content_refused(with(kernel("\"soon\"", "5")), "ts 'soon' is not a number of us");
  check_content_refused(with(kernel("1", "1e300")), "dur '1e300' is not a number of us");
  check_content_refused(with(range("mlp", "5", "-1")), "dur '-1' is negative");
}

TEST_CASE("a trace that lasts years is refused") {
  check_content_refused(with(kernel("94608000000000", "1")), "lasts longer than 11 days");
}

TEST_CASE("times as strings, and events of a process nobody named, are read") {
  check_tolerated(trace_of(gpu_range("mlp", "\"0\"", "\"100.5\"") + "," + kernel("\"0\"", "\"40.25\"")),
                  "1 GPU events");
  check_tolerated(trace_of(slice("kernel", "gemm", R"("pid": "GPU 3", "tid": 7)", times("0", "1")) + "," +
                           gpu_range("mlp", "0", "1", R"("pid": "GPU 3", "tid": 7)")),
                  "1 GPU events, 1 of them in phases");
}

TEST_CASE("slices that overlap on their stream are read with a note") {
  check_tolerated(with(kernel("210", "20", 3)),
                  "note: 1 GPU events start before the one ahead of them on their stream has ended");
}

TEST_CASE("ten thousand flows without their other end are read without a word") {
  std::string flows;
  for (int i = 0; i < 10'000; ++i) {
    flows +=
        R"(,{"ph": "f", "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 1, "id": )" + std::to_string(i) + "}";
  }
  check_tolerated(trace_of(kGood + flows), "2 GPU events");
  const TemporaryFolder folder;
  const std::string file = folder.write("t.json", trace_of(kGood + flows));
  CHECK(run_moeline({"analyze", file}).out.find("note:") == std::string::npos);
  CHECK(run_moeline({"analyze", file, "--format", "json"}).out.find("\"without_start\": 10000,") != std::string::npos);
}

TEST_CASE("a trace of one instant is read") {
  check_tolerated(trace_of(gpu_range("mlp", "0", "0") + "," + kernel("0", "0")), "1 GPU events");
}

TEST_CASE("more GPU processes than there can be are refused, and many streams are not") {
  std::string processes = kGood;
  std::string streams = kGood;
  for (int i = 0; i < 5'000; ++i) {
    const std::string n = std::to_string(i);
    processes += "," + slice("kernel", "k", R"("pid": )" + n + R"(, "tid": 7)", times(n, "1"));
    streams += "," + slice("kernel", "k", R"("pid": 0, "tid": )" + n, times(n, "1"));
  }
  check_content_refused(trace_of(processes), "is of process number 4097");
  check_tolerated(trace_of(streams), "5002 GPU events");
}

TEST_CASE("a wrong mapping file or pattern is refused by its name") {
  const TemporaryFolder folder;
  const std::string trace = folder.write("t.json", trace_of(kGood));
  const std::string map = folder.write("map.yaml", "schema: 1\nclases: {}\n");
  for (const char* command : {"analyze", "replay"}) {
    check_refused({command, trace, "--map", map}, map + ":2: ", "did you mean 'classes'?");
    check_refused({command, trace, "--map", folder / "absent.yaml"}, folder / "absent.yaml", "no such file");
    check_refused({command, trace, "--comm-pattern", "(nccl"},
                  "--comm-pattern: ", "'(nccl' is not a regular expression");
  }
}

}  // TEST_SUITE("cli/bad_trace")
