// Annotations around steps, by the names that servers and training loops give them.
#include "trace/steps.hpp"

#include <doctest/doctest.h>

TEST_SUITE("trace/step_names") {

using namespace moeline;

TEST_CASE("SGLang's steps are of one kind by mode, batch and tokens, without what differs from step to step") {
  CHECK(kind_of_step("step[DECODE bs=32]") == "DECODE bs=32");
  CHECK(kind_of_step("step[EXTEND bs=1 toks=888]") == "EXTEND bs=1 toks=888");
  CHECK(kind_of_step("step[TARGET_VERIFY bs=4]") == "TARGET_VERIFY bs=4");
  CHECK(kind_of_step("step[DRAFT_LOOP raw_bs=3 bs=4 topk=1]") == "DRAFT_LOOP bs=4");
  CHECK(kind_of_step("step[DECODE bs=2 g_sqsq=2 g_sqsk=30 g_sk=30]") == "DECODE bs=2");
  CHECK(kind_of_step("step[EXTEND bs=2 toks=12 c_sqsq=80 c_sqsk=120 c_sk=20]") == "EXTEND bs=2 toks=12");
}

TEST_CASE("vLLM's steps are of one kind by requests and tokens") {
  CHECK(kind_of_step("execute_context_1(888)_generation_0(0)") == "context_1(888)_generation_0(0)");
  CHECK(kind_of_step("execute_context_0(0)_generation_32(32)") == "context_0(0)_generation_32(32)");
  CHECK(kind_of_step("execute_new_0_cached_32") == "new_0_cached_32");
  CHECK(kind_of_step("execute_context_1(sq8sk8)_generation_4(sq1sk513)") == "context_1 generation_4");
  CHECK(kind_of_step("execute_model context_2(512) generation_0(0)") == "context_2 generation_0");
}

TEST_CASE("TensorRT-LLM's steps are of one kind by requests and tokens, in all its versions") {
  CHECK(kind_of_step("[Executor] _forward_step 71: 1 ctx reqs, 888 ctx tokens, 8 gen reqs") ==
        "1 ctx reqs, 888 ctx tokens, 8 gen reqs");
  CHECK(kind_of_step("[Executor] _forward_step 72: 0 ctx reqs, 32 gen reqs") == "0 ctx reqs, 32 gen reqs");
  CHECK(kind_of_step("[Executor] _forward_step: 0 ctx reqs, 32 gen reqs") == "0 ctx reqs, 32 gen reqs");
}

TEST_CASE("other servers' and training loops' steps are known, too") {
  CHECK(kind_of_step("prefill[bs=2 tok=16384]") == "prefill bs=2 tok=16384");
  CHECK(kind_of_step("decode[bs=64]") == "decode bs=64");
  CHECK(kind_of_step("iteration 17") == "iteration");
  CHECK(kind_of_step("train_step_3") == "train_step");
  CHECK(kind_of_step("Step#12") == "Step");
}

TEST_CASE("what names no step has no kind") {
  for (const char* name : {"", "attn(F)", "1F1B", "step", "step[", "execute_context_1", "stepper 1", "forward",
                           "ProfilerStep#3", "nccl:all_reduce", "mlp 1", "prefill"}) {
    CAPTURE(name);
    CHECK_FALSE(kind_of_step(name).has_value());
  }
}

TEST_CASE("the profiler's steps have their numbers") {
  CHECK(profiler_step("ProfilerStep#3") == 3);
  CHECK(profiler_step("ProfilerStep #12") == 12);
  CHECK_FALSE(profiler_step("ProfilerStep*").has_value());
  CHECK_FALSE(profiler_step("ProfilerStep#").has_value());
  CHECK_FALSE(profiler_step("step 3").has_value());
}

TEST_CASE("a number at the end of a name is no part of its kind") {
  CHECK(without_number("my step 17") == "my step");
  CHECK(without_number("run_3") == "run");
  CHECK(without_number("forward") == "forward");
  CHECK(without_number("17") == "17");
  CHECK(without_number("#17") == "#17");
  CHECK(without_number("").empty());
}

TEST_CASE("what frameworks annotate inside and around steps is neither step nor phase") {
  for (const char* name : {"nccl:_all_gather_base", "Optimizer.step#AdamW.step", "gpu_model_runner: forward",
                           "llm_engine step: get_output", "schedule: allocate_slots", "ProfilerStep*",
                           "aten::mm, op_id = 5", "autograd::engine::evaluate_function: MmBackward0, op_id = 7"}) {
    CAPTURE(name);
    CHECK(is_of_framework(name));
  }
  CHECK_FALSE(is_of_framework("attn"));
}

}  // TEST_SUITE("trace/step_names")
