#include "trace/read_kineto.hpp"

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <cstdlib>

#include "base/error.hpp"
#include "base/text.hpp"
#include "trace/assemble_trace.hpp"
#include "trace/foreign_files.hpp"
#include "trace/trace_handler.hpp"
#include "trace/trace_numbers.hpp"

namespace moeline {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // some editors write it

bool begins_like_json(const GzipStream& stream) {
  const std::size_t mark = stream.beginning().starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  const std::size_t first = stream.beginning().find_first_not_of(" \t\r\n", mark);
  return first != std::string::npos && (stream.beginning()[first] == '{' || stream.beginning()[first] == '[');
}

std::string problem(const rapidjson::ParseResult& result, const TraceHandler& handler, const GzipStream& stream) {
  if (!handler.refusal.empty()) return handler.refusal;
  const bool blank = result.Code() == rapidjson::kParseErrorDocumentEmpty;
  if (blank && stream.at_end()) return "is empty";
  if (stream.at_end()) return fmt::format("truncated: its JSON breaks off at byte {}", stream.Tell());
  const std::string hint = begins_like_json(stream) ? "" : fmt::format("; {}", kWhatIsRead);
  if (blank || !result.IsError()) return fmt::format("not valid JSON at byte {}: a zero byte{}", stream.Tell(), hint);
  return fmt::format("not valid JSON at byte {}: {}{}", result.Offset(), rapidjson::GetParseError_En(result.Code()),
                     hint);
}

// Of RapidJSON's stack, which holds the string at hand and what is open: a few KB of gzip may unpack to gigabytes.
struct BoundedAllocator {
  static constexpr std::size_t kMost = std::size_t{64} << 20U;
  std::string file{};

  // NOLINTBEGIN(readability-identifier-naming, readability-convert-member-functions-to-static): RapidJSON's concept
  void* Malloc(std::size_t size) const { return Realloc(nullptr, 0, size); }
  void* Realloc(void* old, std::size_t /*old_size*/, std::size_t size) const {
    if (size > kMost)
      throw SpecError(file, 0, "is no trace: it has a string, or brackets in each other, of more than 32 MiB");
    return size == 0 ? (std::free(old), nullptr) : std::realloc(old, size);
  }
  static void Free(void* block) { std::free(block); }
  // NOLINTEND
};

void parse(GzipStream& stream, TraceHandler& handler, const std::string& file) {
  // Iterative: deep nesting must not exhaust the stack. NaN: some writers put it in args, where it does no harm.
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag;
  for (std::size_t i = 0; stream.beginning().starts_with(kByteOrderMark) && i < kByteOrderMark.size(); ++i)
    stream.Take();
  BoundedAllocator memory{file};
  rapidjson::GenericReader<rapidjson::UTF8<>, rapidjson::UTF8<>, BoundedAllocator> reader(&memory);
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, handler);
  if (!result.IsError() && stream.at_end()) return;
  const std::optional<std::string_view> foreign = foreign_file(file, stream.beginning());
  if (foreign && !stream.beginning().empty() && !begins_like_json(stream))
    throw SpecError(file, 0, fmt::format("is {}; {}", *foreign, kWhatIsRead));
  const std::string message = problem(result, handler, stream);
  stream.drain();  // if the gzip data is damaged, that is what is wrong
  throw SpecError(file, 0, message);
}

std::optional<std::uint32_t> rank_of(const TraceHandler& handler, const std::string& file) {
  if (handler.rank.empty()) return std::nullopt;
  const auto rank = whole_number<std::uint32_t>(handler.rank);
  if (rank) return rank;
  throw SpecError(file, 0, fmt::format("distributedInfo.rank '{}' is not a rank", one_line(handler.rank)));
}

std::int64_t base_time_ns(const TraceHandler& handler, const std::string& file) {
  if (handler.base_time.empty()) return 0;
  const auto base = whole_number<std::int64_t>(handler.base_time);
  if (base && *base >= 0 && *base <= kLargestTraceTimeNs) return *base;
  throw SpecError(file, 0, fmt::format("baseTimeNanoseconds '{}' is not a time", one_line(handler.base_time)));
}

}  // namespace

Trace read_kineto(GzipStream& stream, const std::filesystem::path& path) {
  const std::string file = path.string();
  TraceHandler handler(stream);
  parse(stream, handler, file);
  if (!handler.has_events) {
    const std::optional<std::string_view> foreign = foreign_json(handler.root_keys);
    if (foreign) throw SpecError(file, 0, fmt::format("is {}; {}", *foreign, kWhatIsRead));
    throw SpecError(file, 0, "not a trace: it has no array traceEvents");
  }
  if (handler.records.gpu.empty()) {
    const std::string others = handler.records.categories();
    throw SpecError(file, 0,
                    fmt::format("no GPU events (kernel, gpu_memcpy, gpu_memset) among its events{}{}",
                                others.empty() ? "" : ", which are ", others));
  }
  TraceFacts facts;
  facts.device = handler.device;
  facts.sms = whole_number<std::uint32_t>(handler.sms).value_or(0);
  facts.base_time_ns = base_time_ns(handler, file);
  facts.rank = rank_of(handler, file);
  return assemble(std::move(handler.records), facts, path);
}

}  // namespace moeline
