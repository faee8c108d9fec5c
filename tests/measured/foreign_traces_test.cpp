// The ways in which programs, profilers and editors write the same work: each row changes how a trace tells it, and
// says what must stay. A training step with phases and waits, or steps of a server, is the work.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/support/same_trace.hpp"
#include "tests/support/server_trace.hpp"
#include "tests/support/told_otherwise.hpp"

TEST_SUITE("measured/foreign_traces") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// What must stay as it was.
enum Stays : unsigned {
  kernels = 1,   // when and where each kernel ran
  launches = 2,  // how long before it its launch was called
  phases = 4,    // which phase of which layer it belongs to
  steps = 8,     // which step it belongs to, and how many layers the step has
  waits = 16,    // which kernels a stream waited for
  order = 32,    // names of the kernels of each stream, in their order; where times may differ
  everything = kernels | launches | phases | steps | waits,
};

std::string training_text() {
  SmallTrace trace;
  for (int i = 0; i < 12; ++i) {
    const int zero = 300 * i;
    trace.annotation("dispatch", zero, zero + 9).annotation("mlp", zero + 10, zero + 29);
    trace.kernel(kDispatch, 27, zero + 1, zero + 100, zero + 150, R"("grid": [20, 1, 1])");
    trace.call("cudaEventRecord", zero + 5, 1).wait_event(zero + 12);
    trace.kernel("gemm", 7, zero + 15, zero + 152, zero + 290).kernel("gemm", 7, zero + 18, zero + 291, zero + 295);
  }
  return trace.text();
}

ServerTrace serving() {
  return {.steps = {"step[EXTEND bs=1 toks=888]", "step[DECODE bs=32]", "step[DECODE bs=32]"}, .layers = 12};
}

std::string serving_text() { return server_trace(serving()); }

Edit served(const std::function<void(ServerTrace&)>& change) {
  return [=](const std::string&) {
    ServerTrace what = serving();
    change(what);
    return server_trace(what);
  };
}

// Steps of these names.
Edit named(const std::string& prefill, const std::string& decode) {
  return served([=](ServerTrace& what) { what.steps = {prefill, decode, decode}; });
}

struct Variant {
  const char* name;
  Edit edit;
  unsigned stays;
  const char* file = "trace.json";
};

const std::vector<Variant>& variants_of_training() {
  static const std::vector<Variant> variants = {
      // How numbers are written.
      {"times as strings",
       then(numbers("ts", [](auto us) { return "\"" + std::to_string(us) + "\""; }),
            numbers("dur", [](auto us) { return "\"" + std::to_string(us) + "\""; })),
       everything},
      {"times with decimals", numbers("ts", [](auto us) { return std::to_string(us) + ".000"; }), everything},
      {"times with exponents", numbers("ts", [](auto us) { return std::to_string(us) + "e0"; }), everything},
      {"times since 1970", numbers("ts", [](auto us) { return std::to_string(us + 1'740'461'679'470'630); }),
       everything},
      {"times before zero", numbers("ts", [](auto us) { return std::to_string(us - 5'000); }), everything},
      {"a base time", at_root(R"("baseTimeNanoseconds": 1759276800000000001)"), everything},
      {"correlations as strings", numbers("correlation", [](auto id) { return "\"" + std::to_string(id) + "\""; }),
       everything},
      {"correlations beyond 32 bits", numbers("correlation", [](auto id) { return std::to_string(id + (1LL << 40)); }),
       everything},
      {"streams as strings", numbers("stream", [](auto id) { return "\"" + std::to_string(id) + "\""; }), everything},
      {"processes by name",
       then(replaced(R"("pid": 1166)", R"("pid": "python 1166")"), replaced(R"("pid": 0,)", R"("pid": "GPU 0",)")),
       everything},
      {"processes beyond 32 bits", replaced(R"("pid": 1166)", R"("pid": 139637976727552)"), everything},
      // How text is written.
      {"gzip", [](const std::string& text) { return gzipped(text); }, everything, "trace.json.gz"},
      {"gzip in two members",
       [](const std::string& text) {
         return gzipped(text.substr(0, text.size() / 2)) + gzipped(text.substr(text.size() / 2));
       },
       everything, "trace.json.gz"},
      {"gzip under another name", [](const std::string& text) { return gzipped(text); }, everything, "trace.pt.trace"},
      {"no blanks", [](const std::string& text) { return without(without(text, "\n"), " "); }, everything},
      {"lines that end as in Windows", replaced("\n", "\r\n"), everything},
      {"a line for each field", replaced(", ", ",\n\t"), everything},
      {"a mark of byte order", [](const std::string& text) { return "\xef\xbb\xbf" + text; }, everything},
      {"blanks around", [](const std::string& text) { return "\n \t" + text + "\n\n"; }, everything},
      {"a bare array",
       [](const std::string& text) {
         const TraceParts parts(text);
         return "[" + parts.text().substr(parts.before.size()).substr(0, parts.text().size() - parts.before.size() - 1);
       },
       everything},
      {"escapes in names", replaced("gemm", "g\\u0065mm"), everything},
      // What stands where.
      {"events backwards", events([](Lines& lines) { lines = reversed(lines); }), everything},
      {"events in any order", events([](Lines& lines) { std::shuffle(lines.begin(), lines.end(), std::mt19937(5)); }),
       everything},
      {"fields of events in another order", each([](const std::string& event) {
         const std::size_t args = event.find(", \"args\"");
         return "{" + event.substr(args + 2, event.size() - args - 3) + ", " + event.substr(1, args - 1) + "}";
       }),
       everything},
      {"other things at the root first",
       at_root(
           R"("schemaVersion": 1, "trace_id": "7F", "displayTimeUnit": "ms", "with_flops": 1, "a": {"b": [1, {}]})"),
       everything},
      {"other things at the root last",
       [](const std::string& text) {
         return text.substr(0, text.size() - 1) + R"(, "traceName": "a.json", "nested": {"traceEvents": []}})";
       },
       everything},
      {"a rank", at_root(R"("distributedInfo": {"backend": "nccl", "rank": 5, "world_size": 8})"), everything},
      {"a rank in the name alone", same, everything, "worker_rank3.json"},
      // What stands among it.
      {"Python's functions",
       with({host_event("python_function", "train.py(7): forward", 0, 4000, R"("Python id": 1)"),
             host_event("python_function", "nn.Module: Linear_0", 20, 9, R"("Python id": 2)")}),
       everything},
      {"PyTorch's operators",
       with({host_event("cpu_op", "aten::linear", 1, 9, R"("External id": 5)"),
             host_event("cpu_op", "aten::mm", 2, 5, R"("External id": 6)")}),
       everything},
      {"flows from launches to kernels",
       with({R"({"ph": "s", "id": 1, "pid": 1166, "tid": 1166, "ts": 2, "cat": "ac2g", "name": "ac2g"})",
             R"({"ph": "f", "id": 1, "pid": 0, "tid": 27, "ts": 100, "cat": "ac2g", "name": "ac2g", "bp": "e"})"}),
       everything},
      {"flows without their other end",
       with({R"({"ph": "f", "id": 99, "pid": 0, "tid": 27, "ts": 100, "cat": "ac2g", "name": "ac2g", "bp": "e"})"}),
       everything},
      {"counters, instants and metadata",
       with(
           {R"({"ph": "C", "name": "GPU 0 Utilization", "pid": 0, "ts": 5, "args": {"util": 0.5}})",
            R"({"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", "pid": 1166, "tid": 1166, "ts": 3, "s": "t"})",
            R"({"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7 "}})",
            R"({"ph": "M", "name": "process_labels", "pid": 0, "args": {"labels": "GPU 0"}})"}),
       everything},
      {"the profiler's own events",
       with({slice("overhead", "Activity Buffer Request", R"("pid": -1, "tid": 0)", times("1", "7")),
             slice("Trace", "PyTorch Profiler (0)", R"("pid": "Spans", "tid": "PyTorch Profiler")",
                   times("0", "3600"))}),
       everything},
      {"numbers that are none",
       replaced(R"("grid": [20, 1, 1])", R"("grid": [20, 1, 1], "est. achieved occupancy %": NaN)"), everything},
      {"arguments that nobody knows",
       replaced(R"("stream": 7)", R"("priority": 0, "deep": {"stream": 9}, "stream": 7)"), everything},
      {"synchronisation events",
       with({slice("cuda_sync", "Context Sync", kStream7, times("500", "9"), R"("correlation": 7000, "device": 0)"),
             slice("cuda_sync", "Event Sync", kStream7, times("600", "9"), R"("correlation": 7001, "device": 0)")}),
       everything},
      {"copies on a stream of their own",
       with({slice("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", R"("pid": 0, "tid": 31)", times("700", "9"),
                   R"("stream": 31, "correlation": 7002, "bytes": 4096)")}),
       everything},
      // Annotations of frameworks, which are no phases.
      {"NCCL's annotations of PyTorch",
       with({host_event("user_annotation", "nccl:all_to_all", 0, 5),
             host_event("user_annotation", "nccl:all_to_all", 314, 7)}),
       everything},
      {"an optimizer's step", with({host_event("user_annotation", "Optimizer.step#AdamW.step", 3590, 20)}), everything},
      {"regions of torch.compile",
       with({host_event("user_annotation", "Torch-Compiled Region: 0/0", 14, 8),
             host_event("user_annotation", "## Call CompiledFxGraph f7a ##", 16, 5)}),
       everything},
      {"a data loader", with({host_event("user_annotation", "enumerate(DataLoader)#_Single.__next__", 0, 3)}),
       everything},
      {"layerwise markers of NVTX", of_modules("{'Module': 'model.layers.", "', 'Inputs': [[", ", 7168]]}"),
       everything},
      {"modules with their layers' numbers", of_modules("layers.", "", ""), everything},
      // Other streams and threads.
      {"no args.stream", each([](const std::string& event) {
         return event.find(R"("cat": "kernel")") == std::string::npos
                    ? event
                    : replace_all(replace_all(event, R"("stream": 7, )", ""), R"("stream": 27, )", "");
       }),
       everything},
      {"streams by name as their threads",
       then(replaced(R"("tid": 27)", R"("tid": "stream 27")"), replaced(R"("tid": 7,)", R"("tid": "stream 7",)")),
       everything},
      {"another number for a stream",
       then(replaced(R"("tid": 27)", R"("tid": 1027)"), replaced(R"("stream": 27)", R"("stream": 1027)")),
       launches | phases | waits},
      // Other calls and other makers.
      {"launches through the driver",
       then(replaced("cudaLaunchKernel", "cuLaunchKernelEx"),
            replaced(R"("cat": "cuda_runtime", "name": "cuLaunch)", R"("cat": "cuda_driver", "name": "cuLaunch)")),
       everything},
      {"launches with attributes", replaced("cudaLaunchKernel", "cudaLaunchKernelExC"), everything},
      {"a driver's call inside each launch", events([](Lines& lines) {
         Lines inner;
         for (const std::string& event : lines) {
           if (event.find("cudaLaunchKernel") == std::string::npos) continue;
           inner.push_back(change_numbers(
               replace_all(replace_all(event, "cudaLaunchKernel", "cuLaunchKernel"), "cuda_runtime", "cuda_driver"),
               "\"ts\": ", [](auto us) { return std::to_string(us) + ".5"; }));
         }
         lines.insert(lines.end(), inner.begin(), inner.end());
       }),
       everything},
      {"calls with versions behind their names",
       then(replaced("cudaStreamWaitEvent", "cudaStreamWaitEvent_v3020"),
            replaced("cudaEventRecord", "cudaEventRecord_ptsz_v7000")),
       everything},
      {"AMD's runtime", replaced(R"("name": "cuda)", R"("name": "hip)"), everything},
      {"Intel's categories", replaced("cuda_runtime", "xpu_runtime"), everything},
      {"categories of another backend", replaced("cuda_runtime", "privateuse1_runtime"), everything},
      {"categories as Kineto wrote them until 2022",
       then(replaced(R"("cat": "kernel")", R"("cat": "Kernel")"),
            replaced(R"("cat": "cuda_runtime")", R"("cat": "Runtime")")),
       everything},
      {"MTIA's categories",
       then(replaced(R"("cat": "kernel")", R"("cat": "mtia_ccp_events")"), replaced("cuda_runtime", "mtia_runtime")),
       everything},
      {"DeepEP's other name", replaced("deep_ep::", "dpsk::ep::"), launches | phases},
      {"no host at all", events([](Lines& lines) {
         std::erase_if(lines, [](const std::string& line) { return line.find(R"("pid": 1166)") != std::string::npos; });
       }),
       kernels},
      // Nsight Systems.
      {"an Nsight export", exported(), everything, "trace.sqlite"},
      {"an Nsight export under another name", exported(), everything, "trace.json"},
      {"an Nsight export of 2020", exported(kNsight2020), everything, "trace.sqlite"},
      {"an Nsight export of mangled names", exported({.mangled = true}), everything, "trace.sqlite"},
      {"an Nsight export of kernels alone", exported(kKernelsAlone), kernels, "trace.sqlite"},
      {"an Nsight export with layerwise markers",
       then(of_modules("{'Module': 'model.layers.", "', 'Inputs': [[", ", 7168]]}"), exported()), everything,
       "trace.sqlite"},
      {"an Nsight export with operators as ranges",
       then(with({host_event("user_annotation", "aten::mm, op_id = 12", 14, 9),
                  host_event("user_annotation", "autograd::engine::evaluate_function: MmBackward0", 315, 5)}),
            exported()),
       everything, "trace.sqlite"},
      {"an Nsight export of events in any order",
       then(events([](Lines& lines) { std::shuffle(lines.begin(), lines.end(), std::mt19937(6)); }), exported()),
       everything, "trace.sqlite"},
  };
  return variants;
}

const std::vector<Variant>& variants_of_serving() {
  static const std::vector<Variant> variants = {
      {"no twins of steps on the streams", served([](ServerTrace& what) { what.on_gpu = false; }), everything},
      {"no host", served([](ServerTrace& what) { what.on_host = false; }), kernels | steps},
      {"a third of the launches missing", served([](ServerTrace& what) {
         what.graphs = false;
         what.unrecorded = 3;
       }),
       order | steps},
      {"no graphs", served([](ServerTrace& what) { what.graphs = false; }), order | steps},
      {"a host that the profiler saw early", served([](ServerTrace& what) { what.early_us = 5'000; }), everything},
      {"PyTorch's profiler steps around", served([](ServerTrace& what) { what.profiler = true; }), order | steps},
      {"slower kernels", served([](ServerTrace& what) { what.pace = 3; }), order | steps},
      {"vLLM's steps", named("execute_context_1(888)_generation_0(0)", "execute_context_0(0)_generation_32(32)"),
       everything},
      {"vLLM's steps of before", named("execute_new_1_cached_0", "execute_new_0_cached_32"), everything},
      {"vLLM's detailed steps",
       named("execute_context_1(sq888sk888)_generation_0()", "execute_context_0()_generation_32(sq1sk513)"),
       everything},
      {"SGLang's steps with graphs for more requests",
       named("step[EXTEND bs=1 toks=888]", "step[DECODE raw_bs=30 bs=32]"), everything},
      {"ATOM's steps", named("prefill[bs=1 tok=888]", "decode[bs=32]"), everything},
      {"TensorRT-LLM's steps",
       named("[Executor] _forward_step 3: 1 ctx reqs, 888 ctx tokens, 0 gen reqs",
             "[Executor] _forward_step 4: 0 ctx reqs, 0 ctx tokens, 32 gen reqs"),
       everything},
      {"a training loop's steps", named("iteration 1", "iteration 2"), everything},
      {"steps of a name that nobody knows", named("my model, run 1", "my model, run 2"), everything},
      {"vLLM's scopes around and inside",
       with({host_event("user_annotation", "gpu_model_runner: forward", 1, 30),
             host_event("user_annotation", "schedule: allocate_slots", 0, 1)}),
       everything},
      {"an Nsight export", exported(), everything, "trace.sqlite"},
      {"an Nsight export of TensorRT-LLM",
       then(named("[Executor] _forward_step 3: 1 ctx reqs, 0 gen reqs",
                  "[Executor] _forward_step 4: 0 ctx reqs, 32 gen reqs"),
            exported(kNsight2020)),
       everything, "trace.sqlite"},
  };
  return variants;
}

std::map<std::uint32_t, Lines> names_by_stream(const Trace& trace) {
  std::map<std::uint32_t, Lines> names;
  for (const auto& [start, length, stream, name] : kernels_of(trace)) names[stream].push_back(name);
  return names;
}

void check_stays(const Trace& before, const Trace& after, unsigned stays) {
  if ((stays & kernels) != 0) CHECK(kernels_of(after) == kernels_of(before));
  if ((stays & order) != 0) CHECK(names_by_stream(after) == names_by_stream(before));
  if ((stays & launches) != 0) CHECK(launches_of(after) == launches_of(before));
  if ((stays & phases) != 0) CHECK(phases_of(after) == phases_of(before));
  if ((stays & steps) != 0) CHECK(steps_of(after) == steps_of(before));
  if ((stays & steps) != 0) CHECK(layers_in_steps(after) == layers_in_steps(before));
  if ((stays & waits) != 0) {
    CHECK(edges(understand(after), Reason::event_wait) == edges(understand(before), Reason::event_wait));
  }
}

void check_variants(const std::string& text, const std::vector<Variant>& variants) {
  const Trace before = read(text);
  for (const Variant& variant : variants) {
    CAPTURE(std::string(variant.name));
    const std::string changed = variant.edit(text);
    const bool in_name = std::string(variant.file) != "trace.json";
    CHECK((in_name || changed != text));  // a row that changes nothing checks nothing
    check_stays(before, read(changed, variant.file), variant.stays);
  }
}

}  // namespace

TEST_CASE("the work that the variants change has what they must keep") {
  const Trace training = read(training_text());
  CHECK(kernels_of(training).size() == 36);
  CHECK(phases_of(training).back() == "mlp 11");
  CHECK(launches_of(training).front() == 99'000);
  CHECK(edges(understand(training), Reason::event_wait).size() == 12);
  const Trace serving = read(serving_text());
  CHECK(layers_in_steps(serving) == std::vector<std::size_t>{12, 12, 12});
  CHECK(steps_of(serving).front() == 0);
}

TEST_CASE("a training step told in other ways has the same kernels, launches, phases and waits") {
  CHECK(variants_of_training().size() >= 50);
  check_variants(training_text(), variants_of_training());
}

TEST_CASE("a server's steps told in other ways are the same steps with the same layers") {
  check_variants(serving_text(), variants_of_serving());
}

TEST_CASE("a trace of several ranks has the work of each, as Kineto writes it and as Nsight Systems does") {
  const TraceParts one(training_text());
  TraceParts two = one;
  for (const std::string& event : one.events) {
    two.events.push_back(
        replace_all(replace_all(event, R"("pid": 0,)", R"("pid": 1,)"), R"("pid": 1166,)", R"("pid": 2266,)"));
  }
  const Trace alone = read(one.text());
  for (const std::string& content :
       {two.text(), nsight_export(two.text()), nsight_export(two.text(), {.one_device_each = true})}) {
    Trace both = read(content, "trace");
    REQUIRE(both.gpus.size() == 2);
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
      Trace of_rank = both;
      std::erase_if(of_rank.gpu_events, [&](const GpuEvent& event) { return both.rank(event) != rank; });
      CHECK(kernels_of(of_rank) == kernels_of(alone));
      CHECK(launches_of(of_rank) == launches_of(alone));
    }
  }
}

}  // TEST_SUITE("measured/foreign_traces")
