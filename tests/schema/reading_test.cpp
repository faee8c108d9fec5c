// What the schemas of files say is what the program reads: the same keys, the same words, the same ranges. The program
// is asked by files with one thing wrong, and what it offers instead is held against the schema, both ways.
#include <doctest/doctest.h>

#include <set>
#include <sstream>

#include "tests/support/schema.hpp"
#include "tests/support/schema_inputs.hpp"

TEST_SUITE("schema/reading") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Names = std::set<std::string>;

// Bounds that depend on another value of the file, or on the schedule: a schema has the widest that there are.
const std::set<std::string> kDependOnOthers = {"/workload/batch_size_spread",
                                               "/workload/kv_len_spread",
                                               "/workload/input_len_spread",
                                               "/workload/output_len_spread",
                                               "/workload/cached_len",
                                               "/workload/prefixes/len",
                                               "/workload/outages/0/replica",
                                               "/workload/scaling/least",
                                               "/parallelism/virtual_pp",
                                               "/routing/placed_before",
                                               "/routing/rows/forward/0",
                                               "/routing/rows/backward/0",
                                               "/stages/0",
                                               "/traffic/input/spread",
                                               "/axes/seed/to",
                                               "/facts/one/simulate/rank"};
// Offered with all the phases that there are, and refused with a reason where they are no gradients of weights.
constexpr const char* kTakesSome = "/side/0";
// A key that is offered for steps of both phases, and refused there with the reason.
constexpr const char* kOfOnePhase = "kv_transfer_MB";

/// A file with one value changed, and what the program says to it.
struct Asked {
  const ReadFile& file;
  const TemporaryFolder& folder;

  [[nodiscard]] std::string refusal(const JsonValue& document) const {
    Arguments call = file.before;
    const std::string path = folder.write("asked.yaml", text_of(document));
    call.push_back(file.before.back() == "--set" ? "overlap=" + path : path);
    call.insert(call.end(), file.after.begin(), file.after.end());
    const Outcome outcome = run_moeline(call);
    CAPTURE(joined(call));
    CAPTURE(text_of(document));
    CHECK_MESSAGE(outcome.exit_code == 3, "not refused: " << outcome.err);
    return outcome.err;
  }
};

rapidjson::Document changed(const rapidjson::Document& document, const rapidjson::Pointer& at, const JsonValue& value) {
  rapidjson::Document copy;
  copy.CopyFrom(document, copy.GetAllocator());
  at.Set(copy, value);
  return copy;
}

// What "...; there is: a, b, c" offers.
Names offered(const std::string& refusal) {
  const std::string list = "there is: ";
  const std::size_t at = refusal.find(list);
  if (at == std::string::npos) return {};
  Names names;
  std::istringstream stream(refusal.substr(at + list.size()));
  for (std::string name; std::getline(stream >> std::ws, name, ',');) names.insert(name.substr(0, name.find('\n')));
  return names;
}

// "must be from LOW to HIGH, not", "must be LOW", "must list numbers from LOW to HIGH".
bool read_range(const std::string& refusal, double& low, double& high) {
  const std::size_t from = refusal.find(" from "), only = refusal.find(" must be ");
  if (from != std::string::npos) {
    std::istringstream text(refusal.substr(from + 6));
    std::string to;
    return static_cast<bool>(text >> low >> to >> high) && to == "to";
  }
  if (only == std::string::npos) return false;
  std::istringstream text(refusal.substr(only + 9));
  if (!(text >> low)) return false;
  high = low;
  return true;
}

// Where a file has several places of one schema, as the elements of a list, one of them is asked about.
enum class Once { in_each_file, in_all };

template <class Visit>
void for_each_place(Once once, Visit visit) {
  const TemporaryFolder folder;
  std::set<const JsonValue*> seen;
  for (const ReadFile& file : files_to_read(folder)) {
    const rapidjson::Document document = json_of_yaml(file.yaml);
    if (once == Once::in_each_file) seen.clear();
    for (const SchemaPlace& place : places_of(file.schema, document)) {
      if (!text_of(place.at).starts_with(file.part) || !seen.insert(place.schema).second) continue;
      visit(Asked{file, folder}, document, place);
    }
  }
}

// What the program offered at all places of a schema, and where the first of them is.
struct Offers {
  Names names;
  std::string where;
};
using OffersBySchema = std::map<const JsonValue*, Offers>;

void add_offers(OffersBySchema& by_schema, const Asked& asked, const SchemaPlace& place, const Names& names) {
  Offers& offers = by_schema[place.schema];
  offers.names.insert(names.begin(), names.end());
  if (offers.where.empty()) offers.where = asked.file.schema + text_of(place.at);
}

std::string listed(const Names& names) { return fmt::format("{}", fmt::join(names, ", ")); }

bool is_number(const JsonValue& schema) {
  if (!schema.HasMember("type") || !schema["type"].IsString()) return false;
  return schema["type"] == "integer" || schema["type"] == "number";
}

// As it is written: RapidJSON's own numbers may be off in the last digit.
double bound(const JsonValue& schema, const char* key) {
  return std::stod(fmt::format("{:.15g}", schema[key].GetDouble()));
}

// More than any bound.
JsonValue beyond(const JsonValue& schema) {
  constexpr std::int64_t kManyTokens = 1'000'000'000'000'000;
  constexpr double kHuge = 1e40;
  return schema["type"] == "integer" ? JsonValue(kManyTokens) : JsonValue(kHuge);
}

// Of all schemas of files, those for which `asks` holds and which are not among the asked ones.
template <class Asks>
void check_all_asked(const std::set<const JsonValue*>& asked, Asks asks) {
  for (const std::string& name : schema_names()) {
    if (name.ends_with("_output") || name == "run_folder") continue;
    for_each_schema(schema_named(name), name, [&](const JsonValue& schema, const std::string& at) {
      if (asks(schema)) CHECK_MESSAGE(asked.contains(&schema), "no file asks about " << at);
    });
  }
}

}  // namespace

TEST_CASE("the files that ask the program are as their schemas say") {
  const TemporaryFolder folder;
  for (const ReadFile& file : files_to_read(folder)) {
    if (!file.part.empty()) continue;  // the others may lack what comes after the part
    CAPTURE(file.yaml);
    check_by_schema(file.schema, json_of_yaml(file.yaml));
  }
}

TEST_CASE("each mapping of a schema has the keys that the program reads there and no others") {
  OffersBySchema by_schema;
  for_each_place(Once::in_each_file,
                 [&](const Asked& asked, const rapidjson::Document& document, const SchemaPlace& place) {
                   if (!place.value->IsObject() || !place.schema->HasMember("properties")) return;
                   if ((*place.schema)["properties"].ObjectEmpty()) return;  // keys that are data
                   const bool workload = text_of(place.at) == "/workload";
                   const std::string key = workload ? asked.file.stranger : "zzzzzzzz";
                   const std::string refusal = asked.refusal(changed(document, below(place.at, key), JsonValue(1)));
                   CAPTURE(refusal);
                   CHECK(refusal.find(key) != std::string::npos);
                   Names keys = offered(refusal);
                   if (workload && (*place.value)["phase"] == "mixed") keys.erase(kOfOnePhase);
                   add_offers(by_schema, asked, place, keys);
                 });
  std::set<const JsonValue*> asked;
  for (const auto& each : by_schema) {
    const JsonValue* schema = each.first;
    const Offers& offers = each.second;
    asked.insert(schema);
    Names keys;
    for (const auto& property : (*schema)["properties"].GetObject()) keys.insert(property.name.GetString());
    CHECK_MESSAGE(keys == offers.names,
                  offers.where << " has " << listed(keys) << "; the program reads " << listed(offers.names));
  }
  check_all_asked(asked, [](const JsonValue& schema) {
    return schema.HasMember("properties") && !schema["properties"].ObjectEmpty();
  });
}

TEST_CASE("each list of words of a schema is what the program offers there") {
  OffersBySchema by_schema;
  for_each_place(Once::in_each_file,
                 [&](const Asked& asked, const rapidjson::Document& document, const SchemaPlace& place) {
                   const std::string at = text_of(place.at);
                   if (!place.schema->HasMember("enum") || at == "/workload/phase" || at == kTakesSome) return;
                   const std::string refusal = asked.refusal(changed(document, place.at, JsonValue("zzzzzzzz")));
                   CAPTURE(refusal);
                   const bool lists = refusal.find("there is: ") != std::string::npos;
                   const std::string otherwise = "must be a whole number, not 'zzzzzzzz'";  // of a word or a number
                   CHECK((lists || refusal.find(otherwise) != std::string::npos));
                   if (lists) add_offers(by_schema, asked, place, offered(refusal));
                 });
  CHECK(by_schema.size() > 40);
  for (const auto& each : by_schema) {
    const JsonValue* schema = each.first;
    const Offers& offers = each.second;
    Names words;
    for (const JsonValue& word : (*schema)["enum"].GetArray()) words.insert(word.GetString());
    CHECK_MESSAGE(words == offers.names,
                  offers.where << " has " << listed(words) << "; the program offers " << listed(offers.names));
  }
}

TEST_CASE("a scenario's schema has a workload for each phase that the program knows") {
  Names phases;
  for (const JsonValue& workload : schema_named("scenario")["properties"]["workload"]["oneOf"].GetArray()) {
    phases.insert(resolved(schema_named("scenario"), workload)["properties"]["phase"]["enum"][0].GetString());
  }
  const Outcome outcome = run_moeline({"simulate", chunk_scenario().string(), "--set", "workload.phase=zzzzzzzz"});
  CHECK(phases == offered(outcome.err));
}

TEST_CASE("each bound of a schema is the program's") {
  std::set<const JsonValue*> asked_about;
  std::set<std::string> wider;
  for_each_place(Once::in_all, [&](const Asked& asked, const rapidjson::Document& document, const SchemaPlace& place) {
    const JsonValue& schema = *place.schema;
    if (!is_number(schema)) return;
    const std::string at = text_of(place.at);
    CAPTURE(asked.file.schema);
    CAPTURE(at);
    const rapidjson::Document too_much = changed(document, place.at, beyond(schema));
    const std::string refusal = asked.refusal(too_much);
    CAPTURE(refusal);
    double low = 0, high = 0;
    REQUIRE(read_range(refusal, low, high));
    REQUIRE(schema.HasMember("minimum"));
    const bool depends = kDependOnOthers.contains(at);
    const bool has_most = schema.HasMember("maximum");
    const bool same = bound(schema, "minimum") == low && has_most && bound(schema, "maximum") == high;
    if (!same) wider.insert(at);
    CHECK((same || depends));
    CHECK(bound(schema, "minimum") <= low);
    if (has_most) {
      CHECK(bound(schema, "maximum") >= high);
      CHECK(complaint(schema_named(asked.file.schema), too_much) != "");
    }
    asked_about.insert(&schema);
  });
  CHECK(wider == kDependOnOthers);
  check_all_asked(asked_about, is_number);
}

TEST_CASE("a number with a fraction is refused by the program wherever the schema asks for a whole one") {
  for_each_place(Once::in_all, [&](const Asked& asked, const rapidjson::Document& document, const SchemaPlace& place) {
    if (!is_number(*place.schema) || (*place.schema)["type"] != "integer") return;
    CAPTURE(text_of(place.at));
    const std::string refusal = asked.refusal(changed(document, place.at, JsonValue(1.5)));
    CAPTURE(refusal);
    CHECK(refusal.find("whole number") != std::string::npos);
  });
}

}  // TEST_SUITE("schema/reading")
