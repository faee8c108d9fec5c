// Copies by the memory or link that they pass through: what their rates may be set against.
#include "measured/copies.hpp"

#include <doctest/doctest.h>

#include "tests/support/json.hpp"
#include "tests/support/measured.hpp"

TEST_SUITE("measured/copies") {

using namespace moeline;
using namespace moeline::testing;

namespace {

CopyPath path_of_copy(const std::string& name) { return copy_path(GpuEventKind::memcpy, name); }

constexpr double kHbmGBps = 3350;  // of an H800, which SmallTrace names

// What analyze says of a trace's first rank. The document owns the answer.
struct Answer {
  explicit Answer(const SmallTrace& trace) {
    const TemporaryFolder folder;
    document = in_json({"analyze", folder.write("t.json", trace.text())});
  }
  [[nodiscard]] const rapidjson::Value& rank() const { return document["ranks"][0]; }
  [[nodiscard]] const rapidjson::Value& of(const char* list, const char* key, const std::string& word) const {
    for (const rapidjson::Value& each : rank()[list].GetArray()) {
      if (each[key].GetString() == word) return each;
    }
    throw SpecError("no " + word);
  }
  rapidjson::Document document;
};

}  // namespace

TEST_CASE("profilers' names of copies say between which memories they go") {
  for (const char* name : {"Memcpy HtoD (Pageable -> Device)", "Memcpy HtoA", "CopyHostToDevice"}) {
    CHECK(path_of_copy(name) == CopyPath::host_to_device);
  }
  for (const char* name : {"Memcpy DtoH (Device -> Pinned)", "Memcpy AtoH", "CopyDeviceToHost"}) {
    CHECK(path_of_copy(name) == CopyPath::device_to_host);
  }
  for (const char* name : {"Memcpy DtoD (Device -> Device)", "Memcpy AtoA", "Memcpy DtoA", "CopyDeviceToDevice"}) {
    CHECK(path_of_copy(name) == CopyPath::in_memory);
  }
  CHECK(path_of_copy("Memcpy PtoP (Device -> Device)") == CopyPath::peer);
  CHECK(path_of_copy("Memcpy HtoH") == CopyPath::unknown);
  CHECK(path_of_copy("Memcpy") == CopyPath::unknown);
  CHECK(copy_path(GpuEventKind::memset, "Memset (Device)") == CopyPath::set);
  CHECK(copy_path(GpuEventKind::memset, "Memset (Pinned)") == CopyPath::unknown);
}

TEST_CASE("a copy inside the GPU's memory reads and writes it, and a set writes it once") {
  SmallTrace trace;
  trace.on_gpu("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 7, 0, 1000, R"("bytes": 1005000000)");
  const Answer copied(trace);
  CHECK(copied.of("classes", "class", "copy")["GBps"].GetDouble() == doctest::Approx(2010));
  CHECK(copied.of("classes", "class", "copy")["share_of_memory"].GetDouble() == doctest::Approx(0.6));
  CHECK(copied.of("copies", "path", "in_memory")["share_of_peak"].GetDouble() == doctest::Approx(0.6));
  SmallTrace zeroed;
  zeroed.on_gpu("gpu_memset", "Memset (Device)", 7, 0, 1000, R"("bytes": 1005000000)");
  CHECK(Answer(zeroed).of("classes", "class", "copy")["share_of_memory"].GetDouble() == doctest::Approx(0.3));
}

TEST_CASE("copies to and from the host and to another GPU have no share of the memory's bandwidth") {
  SmallTrace trace;
  trace.on_gpu("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7, 0, 1000, R"("bytes": 50000000)");
  trace.on_gpu("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 7, 1000, 2000, R"("bytes": 25000000)");
  trace.on_gpu("gpu_memcpy", "Memcpy PtoP (Device -> Device)", 7, 2000, 3000, R"("bytes": 80000000)");
  const Answer answer(trace);
  const rapidjson::Value& copy = answer.of("classes", "class", "copy");
  CHECK(copy["count"].GetInt() == 3);
  CHECK_FALSE(copy.HasMember("GBps"));
  CHECK_FALSE(copy.HasMember("share_of_memory"));
  CHECK(answer.of("copies", "path", "host_to_device")["GBps"].GetDouble() == doctest::Approx(50));
  CHECK(answer.of("copies", "path", "device_to_host")["GBps"].GetDouble() == doctest::Approx(25));
  const rapidjson::Value& peer = answer.of("copies", "path", "peer");
  CHECK(peer["GBps"].GetDouble() == doctest::Approx(80));
  CHECK(peer["share_of_peak"].GetDouble() > 80 / kHbmGBps);  // of NVLink
}

TEST_CASE("one copy inside an H100's memory at half its size a byte of bandwidth takes 60 % of HBM") {
  const std::filesystem::path file = data_folder() / "traces/small/e5_dtod.json";
  if (!present(file)) return;
  const rapidjson::Document json = in_json({"analyze", file.string()});
  CHECK(json["ranks"][0]["classes"][0]["share_of_memory"].GetDouble() == doctest::Approx(0.6).epsilon(0.01));
}

TEST_CASE("a rate says of what share of its class's time it is") {
  SmallTrace trace;
  trace.add(slice("cpu_op", "aten::mm", kMainThread, times("0", "5"),
                  R"("External id": 5, "Input Dims": [[4096, 7168], [7168, 256]])"));
  trace.kernel("sm90_xmma_gemm a", 7, 1, 10, 40, R"("External id": 5)");
  trace.kernel("sm90_xmma_gemm b", 7, 3, 50, 1020);
  trace.on_gpu("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 7, 1100, 1110, R"("bytes": 5000000)");
  trace.on_gpu("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7, 1200, 1230, R"("bytes": 5000000)");
  const Answer answer(trace);
  CHECK(answer.of("classes", "class", "gemm")["tflops_of_time"].GetDouble() == doctest::Approx(0.03));
  CHECK(answer.of("classes", "class", "copy")["GBps_of_time"].GetDouble() == doctest::Approx(0.25));
  CHECK_FALSE(answer.of("classes", "class", "gemm").HasMember("GBps_of_time"));
  const TemporaryFolder folder;
  const std::string table = run_moeline({"analyze", folder.write("t.json", trace.text())}).out;
  const std::size_t row = table.find("\ngemm");
  REQUIRE(row != std::string::npos);
  CHECK(table.substr(row, table.find('\n', row + 1) - row).find("501         -      3 %") != std::string::npos);
}

}  // TEST_SUITE("measured/copies")
