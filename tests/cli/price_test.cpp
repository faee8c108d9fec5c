// moeline price: ops as a person writes them, good and bad.
#include <rapidjson/document.h>

#include "tests/support/cli.hpp"
#include "tests/support/json.hpp"

TEST_SUITE("cli/price") {

using namespace moeline::testing;

namespace {

const std::vector<std::string> kGoodOps = {"gemm",
                                           "gemm:",
                                           "gemm:dtype=bf16,m=64,n=7168,k=2048,sms=78",
                                           "grouped_gemm:layout=masked,groups=4,m=256,n=4096,k=7168",
                                           "grouped_gemm:layout=contiguous,dtype=bf16",
                                           "mla_decode:batch=64,kv_len=4096,query_len=2",
                                           "gqa_decode:heads=96,kv_heads=8",
                                           "attention_forward:seq=4096",
                                           "attention_forward:seq=128,cached_len=4096,heads=64,kv_heads=4,window=128",
                                           "memory:kind=swiglu,bytes=1e6",
                                           "dispatch:mode=low_latency,ep=64,tokens=128",
                                           "dispatch:ep=4",
                                           "dispatch:ep=32,gating=benchmark,top_k=4",
                                           "combine:mode=normal,ep=144,redundant_experts=32,sms=20"};

Arguments price(const std::vector<std::string>& ops, const Arguments& more = {}) {
  Arguments arguments = {"price", "h800"};
  arguments.insert(arguments.end(), ops.begin(), ops.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void check_op_refused(const std::string& op, const std::string& says) { check_refused(price({op}), "", says); }

}  // namespace

TEST_CASE("moeline price prints one row per op") {
  const Outcome outcome = run_moeline(price(kGoodOps));
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') == static_cast<std::ptrdiff_t>(kGoodOps.size()) + 3);
  for (const std::string& op : kGoodOps) CHECK_MESSAGE(outcome.out.find(" " + op + "\n") != std::string::npos, op);
}

TEST_CASE("moeline price prints one object with the keys of the contract") {
  const Outcome outcome = run_moeline(price(kGoodOps, {"--format", "json"}));
  REQUIRE(outcome.exit_code == 0);
  rapidjson::Document result;
  REQUIRE_FALSE(result.Parse(outcome.out.c_str()).HasParseError());
  REQUIRE(result["ops"].Size() == kGoodOps.size());
  for (rapidjson::SizeType i = 0; i < result["ops"].Size(); ++i) {
    const rapidjson::Value& op = result["ops"][i];
    CAPTURE(kGoodOps[i]);
    CHECK(op["op"].GetString() == kGoodOps[i]);
    CHECK(op["solo_us"].GetDouble() > 0);
    CHECK(op["demands"]["sms"].GetInt() > 0);
    CHECK(op["demands"]["hbm_GBps"].GetDouble() >= 0);
    const std::string provenance = op["provenance"].GetString();
    CHECK(provenance != "");
    CHECK(op.HasMember("provenance_note") == (provenance != "interpolated" && provenance != "measured"));
  }
  CHECK(result["ops"][2]["demands"]["sms"].GetInt() == 78);
  CHECK(result["ops"][13]["demands"]["sms"].GetInt() == 20);
}

TEST_CASE("moeline price says in what a kernel lies outside of what was measured") {
  const Outcome outcome = run_moeline(price({"gemm:m=16,n=7168,k=16384"}, {"--format", "json"}));
  CHECK(outcome.out.find("\"provenance\": \"extrapolated\",\n   \"provenance_note\": \"m 16 < 64\"") !=
        std::string::npos);
  CHECK(run_moeline(price({"gemm:m=16,n=7168,k=16384"})).out.find("extrapolated  open-2025-late  m 16 < 64  gemm") !=
        std::string::npos);
}

TEST_CASE("a grouped GEMM is priced as a step is charged for it, whose experts a stack's tables have whole") {
  const auto set_and_us = [](const char* op) {
    const rapidjson::Document result = in_json({"price", "b200", op, "--kernels", "sglang"});
    return std::pair{std::string(result["ops"][0]["kernel_set"].GetString()), result["ops"][0]["solo_us"].GetDouble()};
  };
  const auto alone = set_and_us("grouped_gemm:layout=masked,groups=4,m=256,n=4096,k=7168");
  const auto in_a_layer =
      set_and_us("moe:layout=masked,part=gate_up,ep=64,tokens=8192,inter=2048,hidden=7168,rows=1024,hit=4");
  CHECK(alone.first == "sglang-0.5.14");
  CHECK(alone == in_a_layer);
}

TEST_CASE("a slower clock lengthens attention, and a product once it is below the clock that its table was timed at") {
  const auto us = [](const char* op) { return in_json({"price", "h200", op})["ops"][0]["solo_us"].GetDouble(); };
  CHECK(us("attention_forward:seq=8192,clock=0.8") > 1.15 * us("attention_forward:seq=8192"));
  CHECK(us("gemm:m=8192,clock=0.8") == us("gemm:m=8192"));
  const double slower = us("gemm:m=8192,clock=0.5") / us("gemm:m=8192");
  CHECK(slower > 1.15);
  CHECK(slower < 1.5);
}

TEST_CASE("an op of an unknown kind or key is refused with the nearest one") {
  check_op_refused("gem", "unknown op 'gem'; did you mean 'gemm'?");
  check_op_refused("FLOP", "unknown op 'FLOP'; there is: linear, gemm, batched_gemm,");
  check_op_refused("", "unknown op ''; there is: ");
  check_op_refused(":m=1", "unknown op ''; there is: ");
  check_op_refused("gemm m=1", "unknown op 'gemm m=1'");
  check_op_refused("gemm\n", "unknown op 'gemm?'; did you mean 'gemm'?");
  check_op_refused("mla_decode:batches=1", "unknown key 'batches'; did you mean 'batch'?");
  check_op_refused("gemm:groups=4", "unknown key 'groups'; there is: dtype, m, n, k, streams, l2, sms, clock");
  check_op_refused("dispatch:token=4", "unknown key 'token'; did you mean 'tokens'?");
  check_op_refused("gemm:dtype=fp9", "dtype has an unknown value 'fp9'; did you mean 'fp8'?");
  check_op_refused("grouped_gemm:layout=mask", "layout has an unknown value 'mask'; did you mean 'masked'?");
  check_op_refused("dispatch:mode=lowlatency", "did you mean 'low_latency'?");
  check_op_refused("memory:kind=row", "kind has an unknown value 'row'; there is: streaming,");
  check_op_refused(std::string(100'000, 'x'), "unknown op 'xxx");
}

TEST_CASE("an op that is not written as key=value is refused") {
  for (const std::string pair : {"m", "m=", "=1", "m=-", "m= 1", "m=1:n=2", "m=~", "m=[1]", "<<=1", "m=1\n"}) {
    check_op_refused("gemm:" + pair, "is not key=value");
  }
  check_op_refused("gemm:,", "'' is not key=value");
  check_op_refused("gemm:m=1,,n=2", "'' is not key=value");
  check_op_refused("gemm:m=1,", "ends with a comma");
  check_op_refused("gemm:m=1,m=2", "key 'm' is repeated");
  check_op_refused("gemm:m==1", "m must be a whole number, not '=1'");
  check_op_refused("gemm:...=1", "");
  check_op_refused("gemm:" + std::string(500, 'm') + "=1", "unknown key");
}

TEST_CASE("a size out of range is refused with the range") {
  check_op_refused("gemm:m=0", "m must be from 1 to 16777216, not 0");
  check_op_refused("gemm:k=-1", "k must be from 1 to 16777216, not -1");
  check_op_refused("gemm:n=1.5", "n must be a whole number, not '1.5'");
  check_op_refused("gemm:m=16777217", "m must be from 1 to 16777216, not 16777217");
  check_op_refused("gemm:m=99999999999999999999", "m must be a whole number");
  check_op_refused("gemm:sms=0", "sms must be from 1 to 132, not 0");
  check_op_refused("gemm:sms=133", "sms must be from 1 to 132, not 133");
  check_op_refused("attention_forward:cached_len=-1", "cached_len must be from 0");
  check_op_refused("memory:bytes=0", "bytes must be from 1 to");
  check_op_refused("memory:bytes=nan", "bytes must be a number, not 'nan'");
  check_op_refused("memory:bytes=1e400", "bytes must be a number, not '1e400'");
  check_op_refused("dispatch:tokens=0", "tokens must be from 1 to 16777216, not 0");
}

TEST_CASE("an op that contradicts itself is refused") {
  check_op_refused("mla_decode:kv_len=1,query_len=2", "kv_len counts the new tokens: 1 is below query_len, 2");
  check_op_refused("gqa_decode:query_len=4097", "kv_len counts the new tokens: 4096 is below query_len, 4097");
  check_op_refused("gqa_decode:heads=64,kv_heads=3", "kv_heads must divide heads: 3 does not divide 64");
  check_op_refused("attention_forward:heads=8,kv_heads=16", "kv_heads must divide heads: 16 does not divide 8");
  check_op_refused("dispatch:ep=3,redundant_experts=0",
                   "ep must divide the 256 routed and 0 redundant experts: 3 does not");
  check_op_refused("dispatch:redundant_experts=1",
                   "ep must divide the 256 routed and 1 redundant experts: 64 does not");
  check_op_refused("combine:ep=1", "ep must be from 2 to 1048576, not 1");
  check_op_refused("combine:ep=1048576", "ep must divide the 256 routed");
  check_op_refused("dispatch:gating=benchmark,top_k=257", "top_k must be from 1 to 256, not 257");
  check_op_refused("dispatch:top_k=129", "top_k of 129 is more than the 128 experts of the groups chosen");
  check_op_refused("moe:tokens=4096,ep=4,received=9999", "received of 9999 is more than the 4096 tokens");
  check_op_refused("dispatch:ep=144,redundant_experts=32,gating=benchmark", "18 nodes do not divide the 256");
  check_op_refused("combine:ep=12,redundant_experts=32", "ep must fill whole nodes of 8 GPUs, or fit into one");
}

TEST_CASE("one bad op refuses all, and a bad machine or set as well") {
  check_refused(price({"gemm", "gemm:m=0"}, {"--format", "json"}), "gemm:m=0", "m must be from 1");
  check_refused({"price", "h80", "gemm"}, "unknown hardware 'h80'", "did you mean 'h800'?");
  check_refused({"price", "none.yaml", "gemm"}, "unknown hardware 'none.yaml'", "no such file");
  check_refused(price({"gemm"}, {"--kernels", "closed"}), "unknown kernel set of h800", "there is: ");
  check_refused(price({"gemm"}, {"--set", "cores=1"}), "--set: unknown key 'hardware.cores'", "there is: sms,");
  check_refused(price({"gemm"}, {"--set", "hardware.sms=0"}), "--set: hardware.sms", "must be from 1 to 4096");
  check_refused(price({"gemm:sms=100"}, {"--set", "sms=64"}), "gemm:sms=100", "sms must be from 1 to 64, not 100");
  check_refused(price({"dispatch"}, {"--set", "gpus_per_node=7"}), "dispatch:", "ep must fill whole nodes of 7 GPUs");
  for (const Arguments& usage : {Arguments{"price"}, {"price", "h800"}, price({"gemm"}, {"--format", "csv"})}) {
    CHECK(run_moeline(usage).exit_code == 2);
  }
}

TEST_CASE("the largest ops have finite prices") {
  const std::string most = "=16777216,";
  const std::vector<std::string> ops = {
      "gemm:m" + most + "n" + most + "k=16777216",
      "grouped_gemm:groups" + most + "m" + most + "n" + most + "k=16777216",
      "attention_forward:seq" + most + "batch" + most + "heads" + most + "qk_dim" + most + "v_dim=16777216",
      "mla_decode:batch" + most + "kv_len" + most + "heads=16777216",
      "memory:bytes=1e15",
      "dispatch:tokens" + most + "hidden=16777216",
      "dispatch:mode=low_latency,redundant_experts=65536,ep=65792"};
  const Outcome outcome = run_moeline(price(ops, {"--format", "json"}));
  REQUIRE(outcome.exit_code == 0);
  rapidjson::Document result;
  REQUIRE_FALSE(result.Parse(outcome.out.c_str()).HasParseError());  // which knows no infinity
  for (const auto& op : result["ops"].GetArray()) CHECK(op["solo_us"].GetDouble() > 0);
}

}  // TEST_SUITE("cli/price")
