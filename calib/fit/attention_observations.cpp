#include "calib/fit/attention_observations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <tuple>

#include "moe/attention_kernels.hpp"

namespace moeline {
namespace {

constexpr int kMostLength = 1 << 24;
constexpr double kShortestPrefill = 1024;
constexpr double kComputeBoundGroup = 128;  // heads per KV head

// mla_prefill and mla_decode: heads, query-key and value dimension; gqa_decode: heads, KV heads, head dimension.
struct Name {
  std::string kernel;
  std::array<double, 3> numbers{};
};

// By the table's file name, as its benchmark writes it.
std::optional<Name> name_of(const CsvTable& table) {
  const std::string stem = table.stem();
  for (const std::string kernel : {"mla_prefill", "mla_decode", "gqa_decode"}) {
    const bool mla = kernel != "gqa_decode";
    const std::string head = kernel + (mla ? "_bf16_h" : "_bf16_");
    std::array<int, 3> n{};
    const char* numbers = mla ? "%4d_d%4d_%4d" : "%4d-%4d-%4d";
    if (!stem.starts_with(head)) continue;
    if (std::sscanf(stem.c_str() + head.size(), numbers, &n[0], &n[1], &n[2]) != 3) continue;
    const std::string again =
        mla ? fmt::format("{}{}_d{}_{}", head, n[0], n[1], n[2]) : fmt::format("{}{}-{}-{}", head, n[0], n[1], n[2]);
    const bool positive = *std::min_element(n.begin(), n.end()) > 0;
    if (again == stem && positive) return Name{kernel, {1.0 * n[0], 1.0 * n[1], 1.0 * n[2]}};
  }
  return std::nullopt;
}

void expect_bf16(const CsvTable& table, std::size_t row, const char* column) {
  if (table.text(row, column) != "bf16") {
    throw SpecError(table.file(), table.line(row),
                    fmt::format("{}: '{}' is not bf16, the only type that is known", column, table.text(row, column)));
  }
}

Observation observed(const CsvTable& table, std::size_t row, const Operator& op, double us,
                     const MachineFacts& machine) {
  const int sms = static_cast<int>(machine.sms);
  return timed(table, row, op, sms, us, attention_curve(op, sms, machine));
}

Observation prefill(const CsvTable& table, std::size_t row, const Name& name, const MachineFacts& machine) {
  const auto [heads, qk_dim, v_dim] = name.numbers;
  const double seq_len = table.integer(row, "seq_len", 1, kMostLength);
  const AttentionShape shape{.batch = 1,
                             .heads = heads,
                             .kv_heads = heads,
                             .query_len = seq_len,
                             .kv_len = seq_len,
                             .qk_dim = qk_dim,
                             .v_dim = v_dim};
  Observation o = observed(table, row, prefill_core(shape), table.positive(row, "latency_us"), machine);
  if (seq_len > kShortestPrefill) o.fold = fmt::format("prefill of {}", seq_len);
  return o;
}

AttentionShape decode_shape(const CsvTable& table, std::size_t row) {
  AttentionShape shape;
  shape.batch = table.integer(row, "batch_size", 1, kMostLength);
  shape.query_len = 1;
  shape.kv_len = table.integer(row, "kv_len", 1, kMostLength);
  return shape;
}

Observation mla_decode(const CsvTable& table, std::size_t row, const Name& name, const MachineFacts& machine) {
  AttentionShape shape = decode_shape(table, row);
  shape.kv_heads = 1;
  std::tie(shape.heads, shape.qk_dim, shape.v_dim) = std::tuple_cat(name.numbers);
  Observation o = observed(table, row, mla_decode_core(shape), table.positive(row, "latency_us"), machine);
  keep_branch(o.curves[0], "compute");
  o.host_timed = true;
  o.fold = fmt::format("mla_decode of batch {}", shape.batch);
  return o;
}

Observation gqa_decode(const CsvTable& table, std::size_t row, const Name& name, const MachineFacts& machine) {
  AttentionShape shape = decode_shape(table, row);
  std::tie(shape.heads, shape.kv_heads, shape.qk_dim) = std::tuple_cat(name.numbers);
  shape.v_dim = shape.qk_dim;
  Observation o = observed(table, row, gqa_decode_core(shape), table.positive(row, "latency_us"), machine);
  o.host_timed = true;
  if (shape.heads / shape.kv_heads < kComputeBoundGroup) o.fold = table.stem();
  return o;
}

}  // namespace

void set_unfitted_overheads(Constants& constants) {
  const auto at = [&](Constant c) -> double& { return constants[static_cast<std::size_t>(c)]; };
  if (!std::isnan(at(Constant::attention_forward)) && std::isnan(at(Constant::attention_latency))) {
    at(Constant::attention_latency) = 0;
  }
  const auto known = [&](Constant c) { return !std::isnan(constants[static_cast<std::size_t>(c)]); };
  if (!known(Constant::mla_compute) || known(Constant::mla_startup)) return;
  for (const Constant overhead : {Constant::mla_startup, Constant::mla_merge, Constant::mla_queries}) {
    constants[static_cast<std::size_t>(overhead)] = 0;
  }
}

bool is_attention_table(const CsvTable& table) { return table.has("latency_us") && name_of(table).has_value(); }

std::vector<Observation> attention_observations(const CsvTable& table, const MachineFacts& machine) {
  const std::optional<Name> name = name_of(table);
  if (!name) throw SpecError(table.file(), 1, "its name tells no attention kernel");
  const auto read = name->kernel == "mla_prefill" ? prefill : name->kernel == "mla_decode" ? mla_decode : gqa_decode;
  std::vector<Observation> observations;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    expect_bf16(table, row, "dtype");
    if (table.has("kv_dtype")) expect_bf16(table, row, "kv_dtype");
    observations.push_back(read(table, row, *name, machine));
  }
  return observations;
}

std::vector<Observation> flash_mla_observations(const CsvTable& table, const std::string& kernel_set,
                                                const MachineFacts& machine) {
  std::vector<Observation> observations;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!is_for(kernel_set, table, row)) continue;
    const AttentionShape shape{.batch = static_cast<double>(table.integer(row, "batch", 1, kMostLength)),
                               .heads = static_cast<double>(table.integer(row, "heads", 1, kMostLength)),
                               .kv_heads = 1,
                               .query_len = static_cast<double>(table.integer(row, "query_len", 1, kMostLength)),
                               .kv_len = static_cast<double>(table.integer(row, "kv_len", 1, kMostLength)),
                               .qk_dim = 576,
                               .v_dim = 512};
    const Operator op = mla_decode_core(shape);
    const std::string& bound = table.text(row, "flash_mla_bound");
    if (bound != "compute" && bound != "memory") {
      throw SpecError(table.file(), table.line(row),
                      fmt::format("flash_mla_bound: '{}' is neither compute nor memory", bound));
    }
    const double us = bound == "compute" ? flops_at_peak_us(op.flops, table.positive(row, "tflops"))
                                         : bytes_at_peak_us(op.bytes, table.positive(row, "GBps"));
    Observation o = observed(table, row, op, us, machine);
    o.throttled = table.has("clock") && table.text(row, "clock") == "sustained";
    o.curves[0].always.clear();
    keep_branch(o.curves[0], bound);
    observations.push_back(std::move(o));
  }
  return observations;
}

}  // namespace moeline
