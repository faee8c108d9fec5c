#include "curves/form.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace moeline {
namespace {

const std::map<std::string, Form>& all_forms() {
  static const std::map<std::string, Form> kForms = [] {
    std::map<std::string, Form> forms;
    for (const auto& group : {linear_forms, prefill_forms, cudnn_forms, decode_forms, state_forms, sparse_forms,
                              rows_forms, moe_forms, peaks_forms, collective_forms, all_to_all_forms}) {
      for (Form& form : group()) forms.emplace(form.name, form);
    }
    return forms;
  }();
  return kForms;
}

}  // namespace

const Form* form_named(const std::string& name) {
  const auto found = all_forms().find(name);
  return found == all_forms().end() ? nullptr : &found->second;
}

std::vector<std::string> form_names() {
  std::vector<std::string> names;
  for (const auto& [name, form] : all_forms()) names.push_back(name);
  return names;
}

double by_power(double us, const MachineFacts& machine) {
  return machine.clock_share < 1 ? 0 : us * std::clamp(std::log10(std::max(us, 1.0) / 100) / 2, 0.0, 1.0);
}

double l2_share(const Operator& op, double working_set_bytes, const MachineFacts& machine, double whole, double none) {
  if (!op.hot || machine.l2_mb <= 0) return 0;
  const double filled = working_set_bytes / (machine.l2_mb * 1e6);
  return std::clamp((none - filled) / (none - whole), 0.0, 1.0);
}

}  // namespace moeline
