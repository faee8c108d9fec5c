#include "measured/operations.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "trace/short_names.hpp"

namespace moeline {

Operation OperationReader::read(const RankTrace& rank, std::size_t event) {
  const GpuEvent& e = rank.trace.gpu_events[event];
  const std::int64_t zero = rank.trace.time_zero_ns;
  Operation operation = known_of(rank, e, rank.classes[event]);
  operation.stream = e.stream;
  operation.bytes = e.bytes;
  operation.visit = {zero + e.start_ns, zero + e.end_ns};
  return operation;
}

const Operation& OperationReader::known_of(const RankTrace& rank, const GpuEvent& event, KernelClass kernel_class) {
  const auto [known, added] = known_.try_emplace({event.name, event.collective, kernel_class});
  if (!added) return known->second;
  const std::string name = short_kernel_name(rank.trace.name(event));
  const auto [number, is_new] = numbers_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (is_new) names_.push_back(name);
  const std::string stated =
      event.collective < 0 ? "" : rank.trace.collectives[static_cast<std::size_t>(event.collective)].name;
  known->second.name = number->second;
  known->second.kind = collective_kind(stated, name, kernel_class);
  return known->second;
}

namespace {

bool is_message(const Operation& operation) { return operation.kind == CollectiveKind::send_recv; }

}  // namespace

OfRanks only(const OfRanks& all, bool messages) {
  OfRanks some;
  for (const auto& [rank, operations] : all) {
    for (const Operation& each : operations) {
      if (is_message(each) == messages) some[rank].push_back(each);
    }
  }
  return some;
}

OfMembers of_members(const OfRanks& operations, const std::vector<std::size_t>& members) {
  OfMembers all;
  for (const std::size_t member : members) {
    const auto own = operations.find(member);
    all.push_back(own == operations.end() ? Operations() : own->second);
  }
  return all;
}

std::string fewest_to_most(const OfMembers& members) {
  const auto [least, most] = std::minmax_element(
      members.begin(), members.end(), [](const Operations& a, const Operations& b) { return a.size() < b.size(); });
  return fmt::format("{} to {} of them on a rank", least->size(), most->size());
}

bool are_equally_many(const OfMembers& members) {
  return std::all_of(members.begin(), members.end(),
                     [&](const Operations& each) { return each.size() == members.front().size(); });
}

namespace {

bool agree_in_size(const Operation& a, const Operation& b) {
  return !has_one_size(a.kind) || a.bytes == 0 || b.bytes == 0 || a.bytes == b.bytes;
}

bool agree(const Operation& a, const Operation& b) { return a.kind == b.kind && agree_in_size(a, b); }

}  // namespace

std::optional<Mismatch> mismatch_of(const OfMembers& members) {
  for (std::size_t k = 0; k < members.front().size(); ++k) {
    for (std::size_t m = 1; m < members.size(); ++m) {
      if (!agree(members[0][k], members[m][k])) return Mismatch{m, k};
    }
  }
  return std::nullopt;
}

std::map<std::uint32_t, Operations> by_stream(const Operations& operations) {
  std::map<std::uint32_t, Operations> streams;
  for (const Operation& each : operations) streams[each.stream].push_back(each);
  return streams;
}

std::map<std::uint32_t, Operations> by_name(const Operations& operations) {
  std::map<std::uint32_t, Operations> names;
  for (const Operation& each : operations) names[each.name].push_back(each);
  return names;
}

std::vector<OfMembers> sequences_of(const OfMembers& members) {
  std::map<std::uint32_t, OfMembers> streams;
  for (const Operations& member : members) {
    for (auto& [stream, operations] : by_stream(member)) streams[stream].push_back(std::move(operations));
  }
  std::vector<OfMembers> sequences;
  for (auto& [stream, sequence] : streams) {
    const bool agrees =
        sequence.size() == members.size() && are_equally_many(sequence) && !mismatch_of(sequence).has_value();
    if (!agrees) return {members};
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

}  // namespace moeline
