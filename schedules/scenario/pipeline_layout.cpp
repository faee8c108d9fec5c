#include "schedules/scenario/pipeline_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace moeline {
namespace {

constexpr int kMostRepeats = 4096;

// Repeats and groups written out: a text of E, t, m, L and |.
class Expansion {
 public:
  explicit Expansion(std::string layout) : text_(std::move(layout)) {
    std::erase_if(text_, [](char letter) { return letter == ',' || letter == ' '; });
    if (text_.size() > kMostRepeats) throw std::invalid_argument("is longer than 4096 letters");
  }

  std::string all() {
    std::string expanded = until_end_of_group();
    if (at_ < text_.size()) throw std::invalid_argument("has a ) without its (");
    return expanded;
  }

 private:
  std::string until_end_of_group() {
    std::string expanded;
    while (at_ < text_.size() && text_[at_] != ')') {
      const std::string part = next_part();
      for (int i = repeats(); i > 0; --i) expanded += part;
      if (expanded.size() > kMostRepeats) throw std::invalid_argument("is longer than 4096 layers and stages");
    }
    return expanded;
  }

  std::string next_part() {
    const char letter = text_[at_++];
    if (letter == '(') {
      const std::string group = until_end_of_group();
      if (at_ == text_.size()) throw std::invalid_argument("has a ( without its )");
      ++at_;
      return group;
    }
    if (std::string("EtmL|").find(letter) != std::string::npos) return {letter};
    if (letter == '*') throw std::invalid_argument("has a * with nothing before it");
    throw std::invalid_argument(fmt::format("has '{}': E, t, m, L, |, *, ( and ) alone are known", letter));
  }

  int repeats() {
    if (at_ == text_.size() || text_[at_] != '*') return 1;
    const char* begin = text_.data() + at_ + 1;
    int count = 0;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), count);
    if (error != std::errc() || count < 1 || count > kMostRepeats) {
      throw std::invalid_argument("has a * without a number from 1 to 4096 behind it");
    }
    at_ += 1 + static_cast<std::size_t>(end - begin);
    return count;
  }

  std::string text_;
  std::size_t at_ = 0;
};

int count_of(const std::string& stage, char layer) {
  return static_cast<int>(std::count(stage.begin(), stage.end(), layer));
}

int count_of(const std::vector<std::string>& stages, char layer) {
  int sum = 0;
  for (const std::string& stage : stages) sum += count_of(stage, layer);
  return sum;
}

}  // namespace

std::vector<std::string> expanded_layout(const std::string& layout) {
  std::vector<std::string> stages(1);
  for (const char layer : Expansion(layout).all()) {
    if (layer == '|') {
      stages.emplace_back();
    } else {
      stages.back() += layer;
    }
  }
  return stages;
}

std::string complaint_of_layout(const std::vector<std::string>& stages, int decoders, int mtp) {
  if (count_of(stages, 'E') != 1 || !stages.front().starts_with('E'))
    return "needs one E, at the begin of its first stage";
  if (count_of(stages, 'L') != 1 || !stages.back().ends_with('L')) return "needs one L, at the end of its last stage";
  if (count_of(stages, 't') != decoders) {
    return fmt::format("has {} decoder layers; there are {}", count_of(stages, 't'), decoders);
  }
  if (count_of(stages, 'm') != mtp) return fmt::format("has {} MTP layers; there are {}", count_of(stages, 'm'), mtp);
  if (mtp > 0 && !stages.back().ends_with(std::string(static_cast<std::size_t>(mtp), 'm') + "L")) {
    return "has MTP layers apart from the loss, which is not modelled";
  }
  const auto empty = std::find(stages.begin(), stages.end(), "");
  if (empty != stages.end()) return fmt::format("has nothing on stage {}", empty - stages.begin());
  return "";
}

std::vector<int> decoders_of(const std::vector<std::string>& stages) {
  std::vector<int> counts;
  for (const std::string& stage : stages) counts.push_back(count_of(stage, 't'));
  return counts;
}

}  // namespace moeline
