// Every published config.json with one of its keys changed: what changes an architecture is modelled or refused, never
// ignored.
#include <doctest/doctest.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/file.hpp"
#include "tests/support/data.hpp"
#include "tests/support/json.hpp"
#include "tests/support/model_configs.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("architecture/config_mutations") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Value = rapidjson::Value;

// Keys of tests/architecture/config_keys.txt that change an architecture.
std::set<std::string> changing_keys() {
  std::ifstream file(source("tests/architecture/config_keys.txt"));
  std::set<std::string> keys;
  std::string kind, name, value;
  while (file >> kind >> name && std::getline(file, value)) {
    if (kind == "changes") keys.insert(name);
  }
  return keys;
}

// In such a file these ask for nothing, whatever they are changed to: windows without a size or switched off, a
// vocabulary of embeddings that have no columns, modules beyond those that are used.
bool asks_for_nothing(const std::string& key, const Value& model) {
  const auto is = [&](const char* other) { return model.HasMember(other) && !model[other].IsNull(); };
  const auto off = [&](const char* flag) {
    return model.HasMember(flag) && model[flag].IsBool() && !model[flag].GetBool();
  };
  const auto of_windows = {"max_window_layers", "sliding_window", "use_sliding_window"};
  if (std::find(of_windows.begin(), of_windows.end(), key) != of_windows.end()) {
    return !is("sliding_window") || (key != "use_sliding_window" && off("use_sliding_window"));
  }
  if (key == "vocab_size_per_layer_input") return model["hidden_size_per_layer_input"].GetInt() == 0;
  return key == "num_mtp_modules" && is("num_nextn_predict_layers");
}

// Another value that says something, as far as the kind of value tells.
bool mutate(Value& value, rapidjson::Document::AllocatorType& memory) {
  if (value.IsBool()) return value.SetBool(!value.GetBool()), true;
  if (value.IsInt()) return value.SetInt(value.GetInt() + 1), true;
  if (value.IsString()) return value.SetString("something_else", memory), true;
  if (value.IsArray() && !value.Empty()) return mutate(value[value.Size() - 1], memory);
  if (value.IsObject() && value.MemberCount() > 0) {
    for (rapidjson::SizeType i = 0; i < value.MemberCount(); ++i) {
      Value& member = (value.MemberBegin() + i)->value;
      if (member.IsInt() && mutate(member, memory)) return true;
    }
  }
  return false;
}

std::string text_of(const rapidjson::Document& document) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>, rapidjson::CrtAllocator,
                    rapidjson::kWriteNanAndInfFlag>
      writer(buffer);
  document.Accept(writer);
  return buffer.GetString();
}

struct Mutation {
  std::string key, config;
};

// Of the language model's keys.
std::vector<Mutation> mutations_of(const std::string& text) {
  static const std::set<std::string> changing = changing_keys();
  const auto parse = [&] {
    rapidjson::Document document;
    document.Parse<rapidjson::kParseNanAndInfFlag>(text.c_str());
    return document;
  };
  std::vector<Mutation> mutations;
  const auto model_of = [](rapidjson::Document& document) -> Value& {
    return document.HasMember("text_config") ? document["text_config"] : document;
  };
  rapidjson::Document first = parse();
  const Value& model = model_of(first);
  for (const auto& member : model.GetObject()) {
    const std::string key = member.name.GetString();
    if (!changing.contains(key) || asks_for_nothing(key, model_of(first))) continue;
    rapidjson::Document changed = parse();
    if (mutate(model_of(changed)[key.c_str()], changed.GetAllocator())) mutations.push_back({key, text_of(changed)});
  }
  return mutations;
}

// "" where it loads as another model.
std::string ignored(const Mutation& mutation, const Architecture& before, const TemporaryFolder& folder) {
  try {
    Architecture after = load_architecture(folder.write("config.json", mutation.config));
    after.name = before.name;
    return after == before ? mutation.key : "";
  } catch (const SpecError&) {
    return "";
  }
}

}  // namespace

TEST_CASE("no key of a published file that changes an architecture can be changed in silence") {
  const std::filesystem::path configs = data_folder() / "configs";
  if (!present(configs)) return;
  const TemporaryFolder folder;
  std::size_t tried = 0;
  for (const auto& entry : std::filesystem::directory_iterator(configs)) {
    if (!entry.is_directory()) continue;
    const std::string text = read_text(entry.path() / "config.json");
    CAPTURE(entry.path().filename().string());
    const Architecture before = load_architecture(folder.write("config.json", text));
    for (const Mutation& mutation : mutations_of(text)) {
      if (++tried % 4 != 0 && kSanitized) continue;
      CHECK(ignored(mutation, before, folder) == "");
    }
  }
  CHECK(tried > 1500);
}

}  // TEST_SUITE("architecture/config_mutations")
