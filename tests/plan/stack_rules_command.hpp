// A printed command as the program that gets it reads it, and what a rule of that program says of it.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "architecture/architecture.hpp"

namespace moeline::testing {

/// Words as a POSIX shell splits them. Only single quotes and backslashes before line ends are known: no more is
/// printed.
inline std::vector<std::string> shell_words(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false, begun = false;
  for (const char c : command) {
    if (c == '\'') {
      quoted = !quoted;
      begun = true;
    } else if (!quoted && (c == ' ' || c == '\n' || c == '\\')) {
      if (begun) words.push_back(word);
      word.clear();
      begun = false;
    } else {
      word += c;
      begun = true;
    }
  }
  if (begun) words.push_back(word);
  return words;
}

inline std::set<std::string> words_of(const std::string& listed) {
  const std::vector<std::string> words = shell_words(listed);
  return {words.begin(), words.end()};
}

/// Ranks that DeepEP's normal mode has sizes of buffers for (deep_ep/buffer.py:get_dispatch_config at dcfd954).
inline bool has_deep_ep_sizes(int ranks) {
  static const std::set<int> kKnown = {2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 144, 160};
  return kKnown.contains(ranks);
}

struct ReadCommand {
  std::map<std::string, std::string> flags;      ///< "--tp-size": "8"; of several words, with spaces between
  std::map<std::string, std::string> variables;  ///< of the environment
  std::map<std::string, std::string> options;    ///< of TensorRT-LLM's YAML file
  std::vector<std::string> notes;

  [[nodiscard]] bool has(const std::string& flag) const { return flags.contains(flag); }
  [[nodiscard]] std::string word(const std::string& flag, const std::string& otherwise = "") const {
    const auto found = flags.find(flag);
    return found == flags.end() ? otherwise : found->second;
  }
  [[nodiscard]] int number(const std::string& flag, int otherwise) const {
    return has(flag) ? std::atoi(word(flag).c_str()) : otherwise;
  }
  /// Of a variable, or what it is unless set.
  [[nodiscard]] int variable(const std::string& name, int otherwise) const {
    const auto found = variables.find(name);
    return found == variables.end() ? otherwise : std::atoi(found->second.c_str());
  }
  [[nodiscard]] std::string option(const std::string& key) const {
    const auto found = options.find(key);
    return found == options.end() ? "" : found->second;
  }
  /// A note has these words.
  [[nodiscard]] bool says(const std::string& words) const {
    return std::any_of(notes.begin(), notes.end(),
                       [&](const std::string& note) { return note.find(words) != std::string::npos; });
  }
  [[nodiscard]] bool has_others_than(const std::set<std::string>& known) const {
    return std::any_of(flags.begin(), flags.end(), [&](const auto& flag) { return !known.contains(flag.first); });
  }
};

/// The number behind a key of JSON or YAML in one line; 0: it is not there.
inline int number_at(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key);
  if (at == std::string::npos) return 0;
  const std::size_t digits = text.find_first_of("0123456789", at + key.size());
  return digits == std::string::npos ? 0 : std::atoi(text.c_str() + digits);
}

inline ReadCommand read_command(const std::string& command, const std::vector<std::string>& notes = {}) {
  ReadCommand read{.flags = {}, .variables = {}, .options = {}, .notes = notes};
  std::string flag;
  for (const std::string& word : shell_words(command)) {
    const std::size_t colon = word.find(": "), equals = word.find('=');
    if (word.starts_with("--")) {
      flag = word;
      read.flags[flag] = "";
    } else if (!flag.empty()) {
      read.flags[flag] += (read.flags[flag].empty() ? "" : " ") + word;
    } else if (colon != std::string::npos) {
      read.options[word.substr(0, colon)] = word.substr(colon + 2);
    } else if (equals != std::string::npos) {
      read.variables[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  return read;
}

/// What rules ask beside the command: by default DeepSeek-V3's on nodes of eight Blackwell GPUs.
struct StackFacts {
  std::string model_type = "deepseek_v3";
  int experts = 256, heads = 128, mtp = 1;
  int page = 64;  ///< tokens of SGLang's KV cache: 64 on Blackwell (trtllm_mla, trtllm_mha), else 1
  int gpus_per_node = 8;
};

inline StackFacts facts_of(const Architecture& model, bool blackwell, int gpus_per_node) {
  return {.model_type = model.model_type,
          .experts = model.n_routed_experts,
          .heads = model.num_attention_heads,
          .mtp = model.num_nextn_predict_layers,
          .page = blackwell ? 64 : 1,
          .gpus_per_node = gpus_per_node};
}

enum class Effect {
  refused,  ///< the program does not start, or stops before its first step
  changed   ///< it starts, and does other things than it was told
};

struct StackRule {
  Effect effect;
  const char* says;
  const char* source;  ///< file:function at commit, of the program's repository where no other is named
  bool (*breaks)(const ReadCommand&, const StackFacts&);
  const char* broken_by;  ///< a command, of a server of DeepSeek-V3
};

}  // namespace moeline::testing
