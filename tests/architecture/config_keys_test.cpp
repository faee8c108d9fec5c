// Every key that published config.json files hold is modelled, refused by name, or says nothing about size and time.
// config_keys.txt is made by list_config_keys.py.
#include "architecture/config_keys.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "architecture/config_json.hpp"
#include "base/file.hpp"
#include "base/spec.hpp"
#include "tests/support/data.hpp"
#include "tests/support/model_configs.hpp"

TEST_SUITE("architecture/config_keys") {

using namespace moeline;
using namespace moeline::testing;

namespace {

struct ListedKey {
  std::string kind, name, value;
  [[nodiscard]] std::string entry() const { return "\"" + name + "\": " + value; }
};

std::vector<ListedKey> listed_keys() {
  std::ifstream file(source("tests/architecture/config_keys.txt"));
  std::vector<ListedKey> keys;
  for (ListedKey key; file >> key.kind >> key.name && std::getline(file >> std::ws, key.value);) keys.push_back(key);
  REQUIRE(keys.size() > 250);
  return keys;
}

bool stands_in(const std::string& config, const ListedKey& key) {
  return config.find("\"" + key.name + "\"") != std::string::npos;
}

// In latent attention the dimension of a head follows from the others: it may be written down.
bool follows_from_others(const std::string& config, const ListedKey& key) {
  return config == kPlainLatent && field_of(key.name) == "head_dim";
}

}  // namespace

TEST_CASE("a key that changes an architecture is modelled or refused in every other family, never ignored") {
  for (const std::string& plain : {kPlainDense, kPlainRouted, kPlainLatent}) {
    const Architecture before = load_config(plain);
    for (const ListedKey& key : listed_keys()) {
      if (key.kind != "changes" || stands_in(plain, key) || follows_from_others(plain, key)) continue;
      CAPTURE(plain);
      CAPTURE(key.entry());
      const std::string changed = with(plain, key.entry());
      const std::string refusal = config_refusal(changed);
      if (refusal.empty()) {
        Architecture after = load_config(changed);
        after.name = before.name;
        CHECK_FALSE(after == before);
      } else {
        CHECK(refusal.find("missing") == std::string::npos);
        CHECK(refusal.find(key.name) != std::string::npos);
      }
    }
  }
}

TEST_CASE("a key that says nothing about size and time is accepted and changes nothing") {
  Architecture before = load_config(kPlainDense);
  for (const ListedKey& key : listed_keys()) {
    if (key.kind != "neutral") continue;
    CAPTURE(key.entry());
    Architecture after = load_config(with(kPlainDense, key.entry()));
    after.name = before.name;
    CHECK(after == before);
  }
}

TEST_CASE("a key that nobody has met is refused, unless it asks for nothing") {
  CHECK(config_refusal(with(kPlainDense, "\"num_twists\": 3")) ==
        ":1: not modelled: what an unknown key asks for (num_twists)");
  for (const char* nothing : {"null", "false", "0", "0.0", "\"\"", "[]", "{}", "[0, 0]", "[null]"}) {
    CHECK(config_refusal(with(kPlainDense, std::string("\"num_twists\": ") + nothing)).empty());
  }
}

TEST_CASE("every key of the published files stands in the list") {
  const std::filesystem::path folder = measured_data() / "configs";
  if (!present(folder)) return;
  std::set<std::string> listed;
  for (const ListedKey& key : listed_keys()) listed.insert(key.name);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.is_directory()) continue;
    for (const ModelFields::Key& key : ModelFields::load(entry.path() / "config.json").keys()) {
      CHECK_MESSAGE(listed.contains(key.name), entry.path().filename().string() << " has " << key.name);
    }
  }
}

TEST_CASE("no key is both neutral and of an architecture, and none stands twice") {
  std::set<std::string> seen;
  for (const KeyMeaning& meaning : key_meanings()) {
    CAPTURE(meaning.key);
    CHECK_FALSE(is_neutral(meaning.key));
    CHECK(seen.insert(meaning.key).second);
  }
}

}  // TEST_SUITE("architecture/config_keys")
