// What kind of work a GPU event is, told by the name of its kernel, or by the user's own words for it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/task.hpp"
#include "trace/name_regex.hpp"

namespace moeline {

/// The function without return type, template arguments, parameters and wrappers that say nothing:
/// "void cutlass::device_kernel<flash::FlashAttnBwd<...>>(...)" gives "flash::FlashAttnBwd", and
/// "std::enable_if<!(false), void>::type internal::gemvx::kernel<...>(...)" gives "internal::gemvx::kernel". Anonymous
/// namespaces stay, as "(anonymous namespace)" or, in Nsight Systems' traces, "<unnamed>".
[[nodiscard]] std::string_view subject_of(std::string_view kernel_name);

enum class KernelClass : std::uint8_t {
  attention,
  gemm,
  grouped_gemm,
  memory,  ///< memory-bound: casts, norms, copies by kernels, element-wise
  small,   ///< fixed cost; only traces of our own say so
  other,   ///< routing: top-k, layouts, counts
  dispatch,
  combine,
  barrier,     ///< of all ranks, in front of a transfer
  collective,  ///< any other communication: NCCL, NVSHMEM, all-reduce kernels
  copy,        ///< memcpy and memset of the copy engines
  unclassified,
};
inline constexpr int kKernelClasses = static_cast<int>(KernelClass::unclassified) + 1;

[[nodiscard]] const std::string& name_of(KernelClass kernel_class);
[[nodiscard]] const std::vector<std::string>& kernel_class_names();
[[nodiscard]] std::optional<KernelClass> class_named(std::string_view name);
[[nodiscard]] bool is_communication(KernelClass kernel_class);
/// Transfers of the all-to-all, barriers apart.
[[nodiscard]] bool is_transfer(KernelClass kernel_class);

/// A regular expression (RE2's syntax, case ignored) and what a name that it finds itself in means.
struct NamePattern {
  std::string pattern;
  std::string meaning;
};

/// Compiled patterns; the first that is found in a name wins.
class NameMatcher {
 public:
  /// Throws SpecError for a pattern that is no regular expression.
  explicit NameMatcher(const std::vector<NamePattern>& patterns);
  /// The meaning of the first pattern found, or nullptr.
  [[nodiscard]] const std::string* find(std::string_view name) const;

 private:
  struct Compiled {
    NameRegex regex;
    std::string meaning;
  };
  std::vector<Compiled> compiled_;
};

struct KernelNameRow;  // kernel_names.hpp

/// Why a kernel is of its class.
enum class KnownBy : std::uint8_t {
  nothing,  ///< it is unclassified, or the user's pattern for communication says that it is none
  word,     ///< a general word in its name
  row,      ///< a row of the table of kernel names
  pattern,  ///< the user's
  trace,    ///< the trace states it
};
[[nodiscard]] const std::string& name_of(KnownBy known_by);

struct KernelMeaning {
  KernelClass kernel_class = KernelClass::unclassified;
  KnownBy known_by = KnownBy::nothing;
  const KernelNameRow* row = nullptr;  ///< the row that was met, or the word; null: none decided
};

/// Knows the kernels of kernel_names.hpp. Unknown ones stay unclassified.
class KernelClassifier {
 public:
  /// `classes` (pattern -> name of a class) go before what is built in. `communication`, where not empty, decides alone
  /// what is communication.
  explicit KernelClassifier(const std::vector<NamePattern>& classes = {}, const std::string& communication = "");
  [[nodiscard]] KernelMeaning meaning_of(std::string_view name) const;
  [[nodiscard]] KernelClass of_kernel(std::string_view name) const { return meaning_of(name).kernel_class; }

 private:
  NameMatcher given_;
  NameMatcher communication_;
  bool has_communication_ = false;
};

// The user's own words for kernels: a mapping file, and what counts as communication.

/// How to read a trace whose kernels or phases moeline does not know.
struct KernelMap {
  std::vector<NamePattern> classes;    ///< pattern -> class, before the built-in ones
  std::vector<NamePattern> phases;     ///< pattern -> phase; where there are any, annotations do not count
  std::string communication;           ///< pattern that alone decides what communicates; empty: the built-in ones
  std::vector<NamePattern> modules{};  ///< pattern -> module of the model
};

/// A YAML file:
///     schema: 1
///     communication: "my_a2a|nccl"                             # optional
///     classes: {dispatch: my_a2a_send, attention: "mha|gqa"}   # optional; first match wins
///     phases: {attn: "mha|gqa", dispatch: my_a2a_send}         # optional; first match wins
///     modules: {router/gate: "gate_gemm"}                      # optional; first match wins
/// Names of modules are not checked here (moe/module_names.hpp has them). Patterns are regular expressions, found
/// anywhere in a kernel's name, case ignored. Throws SpecError.
[[nodiscard]] KernelMap load_kernel_map(const std::filesystem::path& path);

}  // namespace moeline
