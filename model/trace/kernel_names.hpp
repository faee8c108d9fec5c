// The names of kernels that moeline knows, as data: what each library and server calls its kernels, and which class
// they are of. To know another kernel, add a row.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "trace/kernel_class.hpp"

namespace moeline {

/// Where in a kernel's name a row's pattern is searched.
enum class SearchedPart : std::uint8_t {
  subject,  ///< the function alone: subject_of()
  whole,    ///< the template arguments too, for what only they tell
};

struct KernelNameRow {
  /// A regular expression (RE2's syntax, case ignored). "::" in it also stands for the digits that a mangled name has
  /// between its parts, so that one pattern finds both spellings.
  std::string_view pattern;
  KernelClass kernel_class;
  std::string_view stack;    ///< library or server that the kernel is of
  std::string_view example;  ///< a name as profilers write it
  std::string_view source;   ///< where that name is from: a file of a repository, or a trace
  SearchedPart searched = SearchedPart::subject;
};

/// Rows for kernels of known stacks. The example of each meets the pattern of its own row alone; where a name of a
/// trace meets two, the first counts.
[[nodiscard]] std::span<const KernelNameRow> kernel_name_rows();

/// General words, asked only where a name meets none of the rows above: they tell the class of kernels that nobody has
/// listed. Words overlap ("attn_norm" is a norm), so that the first that is found counts; the example of each meets its
/// own row alone.
[[nodiscard]] std::span<const KernelNameRow> kernel_word_rows();

}  // namespace moeline
