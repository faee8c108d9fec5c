// SQLite files that are no exports of Nsight Systems, damaged ones, and those that were made to do harm.
#include <doctest/doctest.h>

#include "tests/support/nsight_export.hpp"

TEST_SUITE("trace/damaged_nsight") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// What is said of a database of this content, behind the file's name.
std::string refused(const std::string& content, const std::string& name = "trace.sqlite") {
  const TemporaryFolder folder;
  const std::string file = folder.write(name, content);
  const std::string message = refusal(file);
  REQUIRE(message.starts_with(file + ": "));
  CHECK(message.find('\n') == std::string::npos);
  return message.substr(file.size() + 2);
}

std::string refused_sql(const std::string& sql) {
  SqliteWriter writer;
  return refused(writer.run(sql).bytes());
}

const std::string kStrings =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES (1, 'gemm');";
const std::string kKernelTable = "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, streamId, demangledName);";

std::string refused_kernel(const std::string& values) {
  return refused_sql(kStrings + kKernelTable + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + values + ")");
}

std::string small_export() {
  return nsight_export(trace_of(kernel("5", "2") + "," + launch("1") + "," + range("attn", "0", "4")));
}

void write_number(std::string& bytes, std::size_t at, std::size_t size, std::size_t value) {
  for (std::size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(value >> (8 * (size - 1 - i)));
}

// A page of a table's tree, every branch of which leads to one page.
std::string page_of_branches(std::size_t page_bytes, std::size_t to) {
  constexpr std::size_t kBranches = 40;
  constexpr std::size_t kHeader = 12;
  constexpr std::size_t kCell = 5;
  std::string page(page_bytes, '\0');
  page[0] = 5;
  write_number(page, 3, 2, kBranches);
  write_number(page, 5, 2, page_bytes - kBranches * kCell);
  write_number(page, 8, 4, to);
  for (std::size_t i = 0; i < kBranches; ++i) {
    const std::size_t cell = page_bytes - (i + 1) * kCell;
    write_number(page, kHeader + 2 * i, 2, cell);
    write_number(page, cell, 4, to);
    page[cell + 4] = 1;
  }
  return page;
}

}  // namespace

TEST_CASE("databases of others are called what they are") {
  const std::string behind = ", and no export of Nsight Systems: it has no table CUPTI_ACTIVITY_KIND_KERNEL";
  CHECK(refused_sql("CREATE TABLE a (b)") == "is an SQLite database" + behind);
  CHECK(refused_sql("CREATE TABLE study (key, value); CREATE TABLE points (id)") ==
        "is a table of `moeline sweep`" + behind);
  CHECK(refused_sql("CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start)") ==
        "is a database of nvprof" + behind);
  CHECK(refused_sql("CREATE TABLE rocpd_string (id); CREATE TABLE rocpd_op (id)") ==
        "is a database of ROCm's rocprof" + behind);
}

TEST_CASE("an export without GPU work says what records it, and one whose tables are empty has no GPU events") {
  CHECK(refused_sql(kStrings + "CREATE TABLE NVTX_EVENTS (start, end)") ==
        "is an export of Nsight Systems without GPU work: it has no table CUPTI_ACTIVITY_KIND_KERNEL; `nsys profile "
        "--trace cuda,nvtx` records it");
  CHECK(refused_sql(kStrings + kKernelTable) == "no GPU events: its tables of kernels, copies and sets have no rows");
}

TEST_CASE("a view, a virtual table and a computed column are not read as what they stand for") {
  CHECK(refused_sql("CREATE TABLE a (start); CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT * FROM a") ==
        "its CUPTI_ACTIVITY_KIND_KERNEL is a view, and no table");
  CHECK(refused_sql("CREATE VIRTUAL TABLE CUPTI_ACTIVITY_KIND_KERNEL USING fts5(start)") ==
        "its CUPTI_ACTIVITY_KIND_KERNEL is a virtual table, and no table");
  CHECK(refused_sql(kStrings +
                    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start AS (end), end, streamId, demangledName)") ==
        "its table CUPTI_ACTIVITY_KIND_KERNEL has no column start");
}

TEST_CASE("a column that is needed and missing is named, with its names in other versions") {
  CHECK(refused_sql(kStrings + "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, streamId)") ==
        "its table CUPTI_ACTIVITY_KIND_KERNEL has no column demangledName or shortName or mangledName");
}

TEST_CASE("a value that makes no sense is refused with its table and row") {
  const std::string row = "row 1 of CUPTI_ACTIVITY_KIND_KERNEL: ";
  CHECK(refused_kernel("10, 9, 7, 1") == row + "ends at 9 ns, before it starts at 10 ns");
  CHECK(refused_kernel("1, 2, -1, 1") == row + "streamId -1 is not a stream");
  CHECK(refused_kernel("1, 2, 7, 5") == row + "its name 5 is not in StringIds");
  CHECK(refused_kernel("1, 2, 7, NULL") == row + "its name NULL is not in StringIds");
  CHECK(refused_kernel("'soon', 2, 7, 1") == row + "start 'soon' is not a whole number");
  CHECK(refused_kernel("1, 2.5, 7, 1") == row + "end '2.5' is not a whole number");
  CHECK(refused_kernel("-9223372036854775808, 9223372036854775807, 7, 1") ==
        row + "the time -9223372036854775808 ns is not within 95 years of 0");
  CHECK(refused_kernel("1, 3000000000000000000, 7, 1") == "lasts longer than 11 days");
}

TEST_CASE("whole numbers that others have rewritten as decimals or text are read") {
  SqliteWriter writer;
  writer.run(kStrings + kKernelTable + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10.0, '15', 7.0, 1)");
  const Trace trace = read(writer.bytes(), "trace.sqlite");
  CHECK(trace.gpu_events[0].end_ns == 5);
  CHECK(trace.gpu_events[0].stream == 7);
}

TEST_CASE("names that mean something in an address, and files of other programs beside it, change nothing") {
  const TemporaryFolder folder;
  for (const char* name : {"a?b=c.sqlite", "50%.sqlite", "#1.sqlite", "no suffix", "trace.json"}) {
    CAPTURE(name);
    const std::string file = folder.write(name, small_export());
    folder.write(std::string(name) + "-wal", "garbage");
    folder.write(std::string(name) + "-journal", "garbage");
    CHECK(read_trace(file).gpu_events.size() == 1);
  }
}

TEST_CASE("a truncated export is refused at every length") {
  const std::string whole = small_export();
  for (std::size_t length = 100; length < whole.size(); length += 41) {
    CAPTURE(length);
    const std::string message = refused(whole.substr(0, length));
    REQUIRE(message ==
            "truncated: it has " + std::to_string(length) + " of " + std::to_string(whole.size()) + " bytes");
  }
  CHECK(refused(whole.substr(0, 50)) == "truncated: its header breaks off");
}

TEST_CASE("an export with any one byte changed is refused or read") {
  const std::string whole = small_export();
  int refusals = 0;
  for (std::size_t at = 16; at < whole.size(); at += 7) {
    CAPTURE(at);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    const TemporaryFolder folder;
    const std::string file = folder.write("trace.sqlite", damaged);
    const std::string message = refusal(file);
    REQUIRE((message.empty() || message.starts_with(file + ": ")));
    if (!message.empty()) ++refusals;
  }
  CHECK(refusals > 20);
}

TEST_CASE("a table whose tree holds itself many times over is called damaged before it is read to its end") {
  SqliteWriter writer;
  writer.run(kStrings + kKernelTable);
  for (int i = 0; i < 900; ++i) writer.run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 7, 1)");
  std::string bytes = writer.bytes();
  const std::size_t page_bytes = 512;
  const std::size_t pages = bytes.size() / page_bytes;
  REQUIRE(pages > 20);
  constexpr std::size_t kRoot = 3;  // of the second table
  constexpr std::size_t kLevels = 12;
  REQUIRE(bytes[(kRoot - 1) * page_bytes] == 5);
  std::vector<std::size_t> path = {kRoot};  // to a leaf, by pages that are replaced
  for (std::size_t page = pages; page > pages - kLevels; --page) path.push_back(page);
  for (std::size_t i = 0; i < path.size(); ++i) {
    const std::size_t to = i + 1 < path.size() ? path[i + 1] : kRoot + 1;
    bytes.replace((path[i] - 1) * page_bytes, page_bytes, page_of_branches(page_bytes, to));
  }
  CHECK(refused(bytes) == "damaged: its tables go on for longer than the file has room for");
}

}  // TEST_SUITE("trace/damaged_nsight")
