// Pages as tests ask about them: their code blocks, their words, the tables of a program inside them.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace moeline::testing {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// A fenced block: what stands behind the fence, its lines, and the number of its first line, from 1.
struct CodeBlock {
  std::string language;
  std::vector<std::string> lines;
  std::size_t first_line = 0;
};

struct Page {
  std::vector<CodeBlock> blocks;
  std::size_t words = 0;  ///< outside of them, the bars of tables included
};

inline Page page_of(const std::string& text) {
  Page page;
  bool inside = false;
  std::size_t number = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) page.blocks.push_back({line.substr(3), {}, number + 1});
    } else if (inside) {
      page.blocks.back().lines.push_back(line);
    } else {
      std::istringstream words(line);
      for (std::string word; words >> word;) ++page.words;
    }
  }
  return page;
}

/// The paragraph of `text` that holds `part`, indented as a block of Markdown.
inline std::string indented_block_with(const std::string& part, const std::string& text) {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  const std::size_t before = text.rfind("\n\n", at);
  const std::size_t begin = before == std::string::npos ? 0 : before + 2;
  const std::size_t end = std::min(text.find("\n\n", at), text.size());
  std::string block;
  for (const std::string& line : lines_of(text.substr(begin, end - begin))) block += "    " + line + "\n";
  return block;
}

}  // namespace moeline::testing
