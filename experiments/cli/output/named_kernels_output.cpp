#include "experiments/cli/output/named_kernels_output.hpp"

#include <fmt/format.h>

#include <optional>

#include "base/text.hpp"
#include "trace/kernel_names.hpp"

namespace moeline {
namespace {

constexpr std::size_t kNameShown = 100;  // characters of a name that tell most kernels of one template apart

std::optional<std::string> stack_in_table(const NamedKernel& kernel) {
  if (kernel.meaning.known_by != KnownBy::row) return std::nullopt;
  return std::string(kernel.meaning.row->stack);
}

// Where no row names a stack, why the kernel has its class all the same.
std::string stack_or_why(const NamedKernel& kernel) {
  switch (kernel.meaning.known_by) {
    case KnownBy::nothing:
      return "?";
    case KnownBy::word:
      return "(a general word)";
    case KnownBy::row:
      return std::string(kernel.meaning.row->stack);
    case KnownBy::pattern:
      return "(your pattern)";
    case KnownBy::trace:
      break;
  }
  return "(the trace says so)";
}

// "3 of 40 names, 12 us or 0.4 % of the kernels' time: WHAT"; empty where there are none.
std::string how_many(const std::vector<NamedKernel>& kernels, KnownBy known_by, const char* what) {
  std::size_t names = 0;
  Time sum{};
  double share = 0;
  for (const NamedKernel& kernel : kernels) {
    if (kernel.meaning.known_by != known_by) continue;
    ++names;
    sum += kernel.sum;
    share += kernel.share;
  }
  if (names == 0) return "";
  return fmt::format("{} of {} names, {:.0f} us or {:.1f} % of the kernels' time: {}\n", names, kernels.size(),
                     to_us(sum), 100 * share, what);
}

}  // namespace

Fields<NamedKernel> named_kernel_fields() {
  return Fields<NamedKernel>()
      .add("class", "class", [](auto& k) { return name_of(k.meaning.kernel_class); },
           {.words = words_to(KernelClass::unclassified), .heading = "class"})
      .add("known_by",
           "why it is of that class: a row of the table of names, a general word alone, your pattern, the "
           "trace itself, or nothing",
           [](auto& k) { return name_of(k.meaning.known_by); }, {.words = words_to(KnownBy::trace)})
      .add("stack", "library or server that it is of, by that row", stack_in_table)
      .column("stack", stack_or_why)
      .add("count", "how many", &NamedKernel::count, {.heading = "count"})
      .add("us", "us, sum", &NamedKernel::sum, {.heading = "us", .format = "{:.0f}"})
      .add("share", "of the time of all kernels", &NamedKernel::share,
           {.decimals = 5, .most = 1, .heading = "of all", .format = "%"})
      .add("kernel", "name", &NamedKernel::name)
      .column("kernel", [](auto& k) { return one_line(k.name, kNameShown); });
}

std::string to_table(const std::vector<NamedKernel>& kernels) {
  const std::string unknown = how_many(kernels, KnownBy::nothing, "nothing is known of them.");
  return (unknown.empty() ? fmt::format("All {} names of kernels are known.\n", kernels.size()) : unknown) +
         how_many(kernels, KnownBy::word, "only a general word in them tells their class.") +
         named_kernel_fields().table(kernels).text() + "\n";
}

}  // namespace moeline
