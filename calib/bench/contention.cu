// What a kernel and its neighbour do to each other: beside a kernel that holds SMs and does nothing, beside a copy on
// SMs of its own, and beside itself on a second stream.
#include <chrono>
#include <thread>

#include "facts.hpp"
#include "grid.hpp"
#include "holder.hpp"
#include "matmul.hpp"
#include "timing.hpp"

namespace moeline::bench {
namespace {

/// Longer than other facts': the copy counts its bytes in pieces of half a megabyte and block.
constexpr Pace kPace{.sample_us = 2000, .samples = 7};
constexpr int kReadings = 2 * kPace.samples;
static_assert(kReadings <= Holder::kMostReadings);

/// The parameters of the kernel itself.
Case kernel_case(const Case& c) {
  Case kernel;
  for (const auto& [name, value] : c.parameters)
    if (name != "kernel" && name != "beside" && name != "sms" && name != "kernel_sms") kernel.with(name, value);
  if (c.has("kernel_sms")) kernel.with("sms", c.text("kernel_sms"));
  return kernel;
}

Fact fact_of(const Bench& bench, const std::string& key) {
  for (Fact& fact : all_facts()) {
    if (fact.key != key) continue;
    if (const auto reason = fact.cannot_run(bench.device); !reason.empty()) throw Skip(reason);
    return fact;
  }
  throw std::logic_error("no fact " + key);
}

/// Of sample `i`: a copy's progress before and after it.
Marks read_around(Holder& copy, int i) {
  return {[&copy, i](cudaStream_t stream) { copy.read_progress(stream, 2 * i); },
          [&copy, i](cudaStream_t stream) { copy.read_progress(stream, 2 * i + 1); }};
}

std::vector<double> samples_of(Timer& timer, const Launch& launch, int launches, Holder* copy = nullptr) {
  timer.warm_up(launch);
  std::vector<double> samples;
  for (int i = 0; i < kPace.samples; ++i)
    samples.push_back(timer.sample_us(launch, launches, copy ? read_around(*copy, i) : Marks{}));
  return samples;
}

/// Of pairs of readings: the time in which the copy reads and writes a megabyte.
std::vector<double> us_per_megabyte(const std::vector<Progress>& readings) {
  std::vector<double> samples;
  for (std::size_t i = 0; i + 1 < readings.size(); i += 2) {
    if (readings[i + 1].bytes <= readings[i].bytes) throw Skip("the copy made no progress");
    samples.push_back(1e3 * static_cast<double>(readings[i + 1].ns - readings[i].ns) /
                      static_cast<double>(readings[i + 1].bytes - readings[i].bytes));
  }
  return samples;
}

std::vector<Metric> beside_spin(const Bench& bench, const Kernel& kernel, int sms) {
  Timer timer(bench.stream);
  Holder spin(bench, Holder::Work::spin, sms);
  const int launches = timer.launches_per_sample(kernel.launch, kPace);
  const auto alone = samples_of(timer, kernel.launch, launches);
  spin.start();
  const auto beside = samples_of(timer, kernel.launch, launches);
  spin.stop();
  return {{"time", "us", beside}, {"time_alone", "us", alone}};
}

/// The copy with nothing beside it, read twice per sample as far apart as a sample is long.
std::vector<double> copy_alone(const Bench& bench, Holder& copy) {
  copy.start();
  for (int i = 0; i < kPace.samples; ++i) {
    copy.read_progress(bench.stream, 2 * i);
    std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int>(kPace.sample_us)));
    copy.read_progress(bench.stream, 2 * i + 1);
    CHECK_STATUS(cudaStreamSynchronize(bench.stream));
  }
  copy.stop();
  return us_per_megabyte(copy.readings(kReadings));
}

std::vector<Metric> beside_copy(const Bench& bench, const Kernel& kernel, int sms) {
  Timer timer(bench.stream);
  Holder copy(bench, Holder::Work::copy, sms);
  const int launches = timer.launches_per_sample(kernel.launch, kPace);
  const auto alone = samples_of(timer, kernel.launch, launches);
  const auto of_copy_alone = copy_alone(bench, copy);
  copy.start();
  const auto beside = samples_of(timer, kernel.launch, launches, &copy);
  copy.stop();
  return {{"time", "us", beside},
          {"time_alone", "us", alone},
          {"copy_time", "us", us_per_megabyte(copy.readings(kReadings))},
          {"copy_time_alone", "us", of_copy_alone}};
}

/// From the first start to the last end of `launches` launches on each of two streams, per pair.
double pair_us(const Bench& bench, Gate& gate, const Kernel& a, const Kernel& b, int launches, int turn) {
  const cudaStream_t first = bench.stream, second = bench.neighbour;
  Event begin, end, second_end;
  gate.pass(first, [&] {
    begin.record(first);
    CHECK_STATUS(cudaStreamWaitEvent(second, begin.get(), 0));
    for (int i = 0; i < launches; ++i) {
      a.launch(first, turn + i);
      b.launch(second, turn + i);
    }
    second_end.record(second);
    CHECK_STATUS(cudaStreamWaitEvent(first, second_end.get(), 0));
    end.record(first);
  });
  return us_between(begin, end) / launches;
}

std::vector<Metric> beside_itself(const Bench& bench, const Kernel& kernel, const Kernel& twin) {
  Timer timer(bench.stream);
  const int launches = timer.launches_per_sample(kernel.launch, kPace);
  const auto alone = samples_of(timer, kernel.launch, launches);
  Gate gate;
  std::vector<double> both;
  for (int i = -1; i < kPace.samples; ++i) {
    const double time = pair_us(bench, gate, kernel, twin, launches, (i + 1) * launches);
    if (i >= 0) both.push_back(time);  // the first one warms up
  }
  return {{"time", "us", both}, {"time_alone", "us", alone}};
}

std::vector<Metric> run(const Bench& bench, const Case& c) {
  const Fact fact = fact_of(bench, c.text("kernel"));
  const Case of_kernel = kernel_case(c);
  const Kernel kernel = fact.prepare(bench, of_kernel);
  kernel.check(bench.stream);
  const auto sms = static_cast<int>(c.number("sms"));
  const std::string& beside = c.text("beside");
  if (beside == "spin") return beside_spin(bench, kernel, sms);
  if (beside == "copy") return beside_copy(bench, kernel, sms);
  const Kernel twin = fact.prepare(bench, of_kernel);
  twin.check(bench.stream);
  return beside_itself(bench, kernel, twin);
}

}  // namespace

Fact contention_fact() {
  return {
      "contention",
      runs_everywhere,
      [](const Device& device, Preset preset) { return contention_cases(preset, fp8_scaling_of(device), device.sms); },
      {},  // no kernel of its own to run beside others
      run};
}

}  // namespace moeline::bench
