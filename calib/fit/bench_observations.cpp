#include "calib/fit/bench_observations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "moe/attention_kernels.hpp"
#include "moe/kernels.hpp"

namespace moeline {
namespace {

const std::string& kernel_of(const Measurement& m) { return m.key == "contention" ? m.words.at("kernel") : m.key; }

AttentionShape prompt(const Measurement& m) {
  return {.batch = m.at("batch"),
          .heads = m.at("heads"),
          .kv_heads = m.at("kv_heads"),
          .query_len = m.at("query_len"),
          .kv_len = m.at("kv_len"),
          .qk_dim = m.at("qk_dim"),
          .v_dim = m.at("v_dim")};
}

AttentionShape latent_decode(const Measurement& m) {
  return {.batch = m.at("batch"),
          .heads = m.at("heads"),
          .kv_heads = 1,
          .query_len = m.at("query_len"),
          .kv_len = m.at("kv_len"),
          .qk_dim = 576,
          .v_dim = 512};
}

Operator gemm(Family family, const Measurement& m) {
  const double groups = m.shape.contains("groups") ? m.at("groups") : 1;
  return kernels::gemm(family, m.parameters, groups * m.at("m"), m.at("n"), m.at("k"), groups);
}

std::string fold_of(Family family, const Measurement& m) {
  const auto by = [&](std::initializer_list<const char*> names) {
    std::string fold = name_of(is_gemm(family) ? gemm_family(GemmLayout::dense, row_of(family).precision) : family);
    for (const char* name : names) fold += fmt::format(" {} {}", name, m.at(name));
    return fold;
  };
  if (is_gemm(family)) return by({"n", "k"});
  switch (family) {
    case Family::attention_forward:
    case Family::attention_backward:
      return by({"query_len", "kv_len"});
    case Family::mla_decode:
      return by({"batch"});
    case Family::small:
      return "";
    default:
      return by({"bytes"});
  }
}

std::string place_of(const BenchTable& table, const Measurement& m) {
  return fmt::format("{}:{} {}", std::filesystem::path(table.file).stem().string(), m.line, m.parameters);
}

// Of the gaps and the host; nothing for what a host does per graph node, which no schedule asks for.
std::optional<Observation> launch(const BenchTable& table, const Measurement& m) {
  const bool stream = m.words.at("mode") == "stream";
  if (m.metric == "host" && !stream) return std::nullopt;
  const Constant constant = m.metric == "host" ? Constant::host_per_kernel
                            : stream           ? Constant::kernel_gap
                                               : Constant::graph_gap;
  Observation o;
  o.family = "launch";
  o.measured_us = m.median();
  o.curves = {{{{constant, 1}}, {}}};
  o.where = place_of(table, m);
  o.noise = Noise::timed;
  return o;
}

// That one time holds: the backward pass of attention is three kernels, a decode is followed by the merge of its parts.
double launches_of(Family family) {
  if (family == Family::attention_backward) return 3;
  return family == Family::mla_decode ? 2 : 1;
}

Observation kernel(const BenchTable& table, const Measurement& m, Family family, const MachineFacts& machine,
                   TileSet tiles) {
  const Operator op = bench_operator(m);
  const int sms = bench_sms(m, machine);
  Observation o;
  o.family = name_of(family);
  o.measured_us = m.median();
  o.curves = {compute_curve(op, sms, machine, tiles)};
  if (family == Family::attention_forward) keep_branch(o.curves[0], "compute");  // the clock is the device's
  o.curves[0].always.push_back({Constant::kernel_gap, launches_of(family)});
  o.dimensions = dimensions_of(op, sms);
  o.where = place_of(table, m);
  o.noise = Noise::timed;
  o.fold = fold_of(family, m);
  return o;
}

void expect_machine(const BenchTable& table, const MachineFacts& machine) {
  if (table.header.at("sms") == fmt::format("{}", machine.sms)) return;
  throw table.error_at("sms", fmt::format("is {} ({}), the profile has {}; --hardware names another",
                                          table.header.at("sms"), table.header.at("device"), machine.sms));
}

}  // namespace

Operator bench_operator(const Measurement& m) {
  const std::optional<Family> family = family_named(kernel_of(m));
  MOELINE_CHECK(family.has_value(), m.key);
  if (is_gemm(*family)) return gemm(*family, m);
  switch (*family) {
    case Family::attention_forward:
      return prefill_core(prompt(m));
    case Family::attention_backward:
      return prefill_backward_core(prompt(m));
    case Family::mla_decode:
      return mla_decode_core(latent_decode(m));
    case Family::small: {
      Operator op = kernels::small(m.parameters);
      op.blocks = static_cast<int>(m.at("blocks"));
      return op;
    }
    case Family::rowwise:
      return kernels::rowwise(m.parameters, m.at("rows"), m.at("bytes"));
    default:
      return kernels::memory(*family, m.parameters, m.at("bytes"));
  }
}

int bench_sms(const Measurement& m, const MachineFacts& machine) {
  const auto told = m.shape.find(m.key == "contention" ? "kernel_sms" : "sms");
  return static_cast<int>(told == m.shape.end() ? machine.sms : std::min(told->second, machine.sms));
}

std::vector<Observation> bench_observations(const BenchTable& table, const MachineFacts& machine, TileSet tiles) {
  expect_machine(table, machine);
  std::vector<Observation> observations;
  for (const Measurement& m : table.measurements) {
    if (m.key == "launch") {
      if (auto o = launch(table, m)) observations.push_back(std::move(*o));
    } else if (m.key != "copy" && m.key != "contention") {
      observations.push_back(kernel(table, m, *family_named(m.key), machine, tiles));
    }
  }
  return observations;
}

}  // namespace moeline
