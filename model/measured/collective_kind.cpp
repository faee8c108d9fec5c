#include "measured/collective_kind.hpp"

#include <algorithm>
#include <iterator>

namespace moeline {
namespace {

// "ncclDevKernel_ReduceScatter_Sum_bf16", "_reduce_scatter_base" and "reduce-scatter" alike.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') letters.push_back(static_cast<char>(c - 'A' + 'a'));
    if (c >= 'a' && c <= 'z') letters.push_back(c);
  }
  return letters;
}

struct KindWord {
  std::string_view word;
  CollectiveKind kind;
};

// The first that is found: "reducescatter" before "reduce" and "scatter", "allgather" before "gather".
constexpr KindWord kKindWords[] = {
    {"allreduce", CollectiveKind::all_reduce},
    {"reduceall", CollectiveKind::all_reduce},
    {"crossdevicereduce", CollectiveKind::all_reduce},
    {"allgather", CollectiveKind::all_gather},
    {"reducescatter", CollectiveKind::reduce_scatter},
    {"alltoall", CollectiveKind::all_to_all},
    {"barrier", CollectiveKind::barrier},
    {"broadcast", CollectiveKind::broadcast},
    {"sendrecv", CollectiveKind::send_recv},
    {"send", CollectiveKind::send_recv},
    {"recv", CollectiveKind::send_recv},
    {"receive", CollectiveKind::send_recv},
    {"gather", CollectiveKind::gather},
    {"scatter", CollectiveKind::scatter},
    {"reduce", CollectiveKind::reduce},
};

CollectiveKind kind_by_word(std::string_view name) {
  const std::string letters = letters_of(name);
  const auto* const found = std::find_if(std::begin(kKindWords), std::end(kKindWords), [&](const KindWord& known) {
    return letters.find(known.word) != std::string::npos;
  });
  return found == std::end(kKindWords) ? CollectiveKind::other : found->kind;
}

}  // namespace

const char* name_of(CollectiveKind kind) {
  constexpr const char* kNames[] = {"all-reduce", "all-gather", "reduce-scatter", "all-to-all",
                                    "barrier",    "broadcast",  "reduce",         "gather",
                                    "scatter",    "message",    "transfer",       "collective"};
  return kNames[static_cast<std::size_t>(kind)];
}

CollectiveKind collective_kind(std::string_view stated, std::string_view kernel, KernelClass kernel_class) {
  if (is_transfer(kernel_class)) return CollectiveKind::transfer;
  if (!stated.empty()) return kind_by_word(stated);
  return kernel_class == KernelClass::barrier ? CollectiveKind::barrier : kind_by_word(kernel);
}

bool leave_together(CollectiveKind kind) { return kind <= CollectiveKind::barrier; }

bool has_one_size(CollectiveKind kind) {
  return leave_together(kind) ? kind != CollectiveKind::all_to_all
                              : kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
}

}  // namespace moeline
