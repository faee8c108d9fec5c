// What servers write around a step.
#include "experiments/learn/annotated_load.hpp"

#include <doctest/doctest.h>

TEST_SUITE("learn/annotated_load") {

using namespace moeline;

TEST_CASE("SGLang's annotation says requests and new tokens") {
  const auto decode = load_of_step({"step[DECODE bs=32]"});
  REQUIRE(decode);
  CHECK(decode->decoding == 32);
  CHECK_FALSE(decode->prompts);
  CHECK(decode->server == "sglang");
  const auto extend = load_of_step({"step[EXTEND bs=2 toks=888]"});
  REQUIRE(extend);
  CHECK(extend->prompts == 2);
  CHECK(extend->prompt_tokens == 888);
}

TEST_CASE("sums of queries and keys say how long requests are") {
  const auto load = load_of_step(
      {"execute_16_context_0(sq0sk0sqsq0sqsk0)_generation_16(sq16sk8193sqsq16sqsk8193)", "step[DECODE bs=16]"});
  REQUIRE(load);
  CHECK(load->decoding == 16);
  CHECK(load->decode_tokens == 16);
  CHECK(load->decode_keys == 8193);
  CHECK(load->prompts == 0);
  CHECK(load->server == "sglang");
}

TEST_CASE("vLLM's annotation says prompts, their tokens, and what decodes beside them") {
  const auto load = load_of_step({"execute_context_1(888_788544)_generation_3(3)"});
  REQUIRE(load);
  CHECK(load->prompts == 1);
  CHECK(load->prompt_tokens == 888);
  CHECK(load->prompt_keys == 888);
  CHECK(load->decoding == 3);
  CHECK(load->server == "vllm");
}

TEST_CASE("TensorRT-LLM's executor says both") {
  const auto load = load_of_step({"[Executor] _forward_step 7: 1 ctx reqs, 512 ctx tokens, 12 gen reqs"});
  REQUIRE(load);
  CHECK(load->prompts == 1);
  CHECK(load->prompt_tokens == 512);
  CHECK(load->decoding == 12);
  CHECK(load->server == "trtllm");
}

TEST_CASE("annotations of anything else say nothing") {
  CHECK_FALSE(load_of_step({"ProfilerStep#3", "attn(F)", "nccl:all_reduce"}));
  CHECK_FALSE(load_of_step({}));
}

}  // TEST_SUITE("learn/annotated_load")
