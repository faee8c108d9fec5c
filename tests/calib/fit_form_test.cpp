// Constants of forms from rows: those that made the rows are found again, whatever binds.
#include "calib/fit/fit_form.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "calib/fit/fit_correction.hpp"
#include "hardware/parse_op.hpp"
#include "hardware/profile.hpp"

TEST_SUITE("calib/fit_form") {

using namespace moeline;

namespace {

const MachineFacts& b200() {
  static const MachineFacts kFacts = load_profile("b200").facts;
  return kFacts;
}

// Products of many shapes, whose times a set of constants made.
std::vector<FormRow> rows_of(const Form& form, const std::vector<double>& truth) {
  std::vector<FormRow> rows;
  for (const int m : {1, 16, 64, 256, 1024, 4096, 16384}) {
    for (const int n : {256, 1024, 4096, 16384}) {
      for (const int k : {512, 2048, 8192, 32768}) {
        const RequestedOp op = parse_op(fmt::format("linear:dtype=nvfp4,m={},n={},k={},l2=hot", m, n, k), b200());
        FormRow row;
        for (const Operator& kernel : op.kernels) row.curves.push_back(form.curve(kernel, op.conditions.sms, b200()));
        row.measured_us = predict(row, truth);
        row.slice = fmt::format("{} {}", n, k);
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

const std::vector<double>& truth() {
  static const std::vector<double> kTruth = {5, 1.5, 0.3, 0.7, 1.3, 0.5, 0, 1.9, 0.4};
  return kTruth;
}

double worst_error(const Form& form, const std::vector<FormRow>& rows, const std::vector<double>& predicted) {
  double worst = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    worst = std::max(worst, std::abs(predicted[i] / rows[i].measured_us - 1));
  }
  REQUIRE(form.parts.size() == truth().size());
  return worst;
}

}  // namespace

TEST_CASE("a form's fit gives back the times that its constants made, also of slices that it did not see") {
  const Form& form = *form_named("sglang_cutedsl_nvfp4");
  const std::vector<FormRow> rows = rows_of(form, truth());
  const std::vector<double> found = fit_form(form, rows);
  std::vector<double> predicted;
  for (const FormRow& row : rows) predicted.push_back(predict(row, found));
  CHECK(worst_error(form, rows, predicted) < 0.01);
  CHECK(worst_error(form, rows, predict_left_out({}, rows, fit_without_slices(form, rows, 4))) < 0.03);
}

TEST_CASE("rows that a hiccup made pull little") {
  const Form& form = *form_named("sglang_cutedsl_nvfp4");
  std::vector<FormRow> rows = rows_of(form, truth());
  const std::vector<FormRow> clean = rows;
  for (std::size_t i = 0; i < rows.size(); i += 17) rows[i].measured_us *= 3;
  const std::vector<double> found = fit_form(form, rows);
  std::vector<double> predicted;
  for (const FormRow& row : clean) predicted.push_back(predict(row, found));
  CHECK(worst_error(form, clean, predicted) < 0.05);
}

TEST_CASE("no constant is below the least that its part may have") {
  const Form& form = *form_named("cutlass_moe");
  std::vector<FormRow> rows;
  for (const int tokens : {1, 64, 1024, 16384}) {
    const RequestedOp op = parse_op(fmt::format("moe:dtype=bf16,tokens={},l2=hot", tokens), b200());
    FormRow row;
    for (const Operator& kernel : op.kernels) row.curves.push_back(form.curve(kernel, op.conditions.sms, b200()));
    row.measured_us = 0.1 * tokens + 1;  // far quicker than the machine
    rows.push_back(std::move(row));
  }
  const std::vector<double> found = fit_form(form, rows);
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] >= form.parts[i].least);
}

TEST_CASE("of two algorithms the quicker one is fitted where it is the quicker one") {
  const Form& form = *form_named("nccl");
  const std::vector<double> made = {5, 1.5, 4, 13, 4, 1, 0.5, 1};
  std::vector<FormRow> rows;
  for (const int ranks : {2, 8}) {
    for (double bytes = 256; bytes < 1e9; bytes *= 4) {
      const RequestedOp op = parse_op(fmt::format("all_reduce:ranks={},bytes={:.0f}", ranks, bytes), b200());
      FormRow row{{form.curve(op.kernels[0], op.conditions.sms, b200())}, 1};
      row.measured_us = predict(row, made);
      rows.push_back(std::move(row));
    }
  }
  const std::vector<double> found = fit_form(form, rows);
  for (const FormRow& row : rows) {
    CAPTURE(row.measured_us);
    CHECK(predict(row, found) == doctest::Approx(row.measured_us).epsilon(0.15));
  }
}

TEST_CASE("of one slice alone nothing is left out") {
  const Form& form = *form_named("rows");
  std::vector<FormRow> rows;
  for (const double bytes : {1e6, 1e7, 1e8}) {
    const RequestedOp op = parse_op(fmt::format("memory:kind=rowwise,bytes={:.0f}", bytes), b200());
    rows.push_back({{form.curve(op.kernels[0], op.conditions.sms, b200())}, 3 + bytes / 5e6});
  }
  CHECK(fit_without_slices(form, rows, 6).empty());
}

TEST_CASE("what a curve has without constants is no part of what they are fitted to") {
  const Form& form = *form_named("launch_floor");
  std::vector<FormRow> rows;
  for (const double bytes : {1e5, 1e7, 1e8}) {
    const RequestedOp op = parse_op(fmt::format("memory:kind=norm,bytes={:.0f}", bytes), b200());
    FormRow row;
    row.curves.push_back(form.curve(op.kernels.front(), op.conditions.sms, b200()));
    row.measured_us = predict(row, std::vector<double>{2.4});
    rows.push_back(std::move(row));
  }
  CHECK(fit_form(form, rows).front() == doctest::Approx(2.4));
}

}  // TEST_SUITE("calib/fit_form")
