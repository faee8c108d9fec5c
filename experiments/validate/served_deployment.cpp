#include "experiments/validate/served_deployment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"

namespace moeline {
namespace {

std::string named(const std::map<std::string, std::string>& names, const std::string& what, const std::string& name) {
  const auto found = names.find(name);
  if (found == names.end()) throw SpecError(fmt::format("{}: the study has none for '{}'", what, name));
  return found->second;
}

}  // namespace

std::vector<std::string> deployment_of(const ServedStudy& study, const ServedRow& row, const ServedSplit& split) {
  const auto model = std::find_if(study.models.begin(), study.models.end(), [&](const ServedModel& each) {
    const bool same = std::find(each.names.begin(), each.names.end(), row.model) != each.names.end();
    return same && each.precision == row.precision;
  });
  if (model == study.models.end()) {
    throw SpecError(fmt::format("models: the study has none for '{}' in {}", row.model, row.precision));
  }
  std::vector<std::string> set = model->set;
  set.push_back("hardware=" + named(study.machines, "machines", row.system));
  set.push_back("kernels=" + named(study.kernels, "kernels", row.stack));
  std::string keys = fmt::format("tp: {}, dp: {}", split.tp, split.dp);
  if (split.pp > 1) keys += fmt::format(", pp: {}", split.pp);
  keys += fmt::format(", ep: {}", split.ep);
  if (split.ep > 1 || split.dp > 1) keys += fmt::format(", moe_tp: {}", split.moe_tp);  // else all split the layers
  set.push_back(fmt::format("parallelism={{{}}}", keys));
  return set;
}

DeployedRows rows_by_deployment(const ServedStudy& study) {
  DeployedRows deployed;
  std::map<std::vector<std::string>, std::vector<std::size_t>> deployments;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    const ServedRow& row = study.rows[i];
    if (!row.left_out.empty()) continue;
    try {
      deployments[deployment_of(study, row, row.split)].push_back(i);
    } catch (const SpecError& error) {
      deployed.refused.emplace_back(i, error.reason());
    }
  }
  deployed.deployments.assign(deployments.begin(), deployments.end());
  return deployed;
}

}  // namespace moeline
