#include "architecture/config_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "architecture/config_keys.hpp"
#include "base/file.hpp"

namespace moeline {
namespace {

// What Hunyuan lists for each layer.
bool is_listed_per_layer(const std::string& field) {
  return field == "num_experts_per_tok" || field == "n_shared_experts" || field == "moe_intermediate_size";
}

// A number, or a list that has it for every layer.
int same_integer(const Spec& spec, const std::string& key, int low, int high) {
  if (!spec.is_list(key) || !is_listed_per_layer(field_of(key))) return spec.integer(key, low, high);
  const std::vector<int> each = spec.integers(key, low, high);
  const bool alike = !each.empty() && std::all_of(each.begin(), each.end(), [&](int one) { return one == each[0]; });
  if (!alike) throw spec.error(key, "must be one number: layers that differ in it are not modelled");
  return each[0];
}

bool is_tower(const std::string& key) { return key == "vision_config" || key == "audio_config"; }

void add_keys(const Spec& spec, std::vector<ModelFields::Key>& keys) {
  for (const std::string& key : spec.keys()) {
    if (key != "text_config" && !is_tower(key)) keys.push_back({key, spec.words(key)});
  }
}

// What comes through stdin has no ending.
bool is_json(const std::filesystem::path& path, const std::string& text) {
  return path.extension() == ".json" || (path.extension().empty() && text[text.find_first_not_of(" \t\r\n")] == '{');
}

}  // namespace

std::string json_as_yaml(std::string text) {
  std::replace(text.begin(), text.end(), '\t', ' ');  // JSON has no tabs inside strings
  for (std::size_t at = text.find('\\'); at != std::string::npos; at = text.find('\\', at + 2)) {
    const std::string_view escape = std::string_view(text).substr(at, 6);  // \uD800 to \uDFFF
    if (escape.size() == 6 && escape[1] == 'u' && (escape[2] | 0x20) == 'd' &&
        std::string_view("89abABcdefCDEF").find(escape[3]) != std::string_view::npos) {
      text.replace(at, 6, "?     ");
    }
  }
  return text;
}

ModelFields::ModelFields(Spec inner, Spec outer, std::filesystem::path path, bool is_config_json)
    : inner_(std::move(inner)), outer_(std::move(outer)), path_(std::move(path)), is_config_json_(is_config_json) {}

ModelFields ModelFields::load(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  if (!is_json(path, text)) {
    const Spec spec = Spec::parse(path.string(), text);
    return {spec, spec, path, false};
  }
  const Spec outer = Spec::parse(path.string(), json_as_yaml(text));
  return {outer.stands("text_config") ? outer.map("text_config") : outer, outer, path, true};
}

bool ModelFields::is_wrapped() const { return is_config_json() && outer_.stands("text_config"); }

std::vector<ModelFields::Key> ModelFields::keys() const {
  std::vector<Key> keys;
  add_keys(inner_, keys);
  if (is_wrapped()) add_keys(outer_, keys);
  return keys;
}

std::vector<std::string> ModelFields::towers() const {
  std::vector<std::string> towers = outer_.keys();
  std::erase_if(towers, [&](const std::string& key) { return !is_tower(key) || !outer_.stands(key); });
  return towers;
}

std::string ModelFields::wrapper_type() const {
  const bool both = is_wrapped() && outer_.stands("model_type") && inner_.stands("model_type");
  return both ? outer_.text("model_type") : "";
}

ModelFields::Place ModelFields::find(const std::string& field) const {
  Place place{&inner_, field, false};
  for (const std::string& name : names_of(field)) {
    const Spec* spec = inner_.stands(name) ? &inner_ : outer_.stands(name) ? &outer_ : nullptr;
    if (spec == nullptr) continue;
    if (place.found && place.spec->words(place.name) != spec->words(name)) {
      throw spec->error(name, fmt::format("is not what {} is, which means the same", place.name));
    }
    if (!place.found) place = {spec, name, true};
  }
  return place;
}

bool ModelFields::has(const std::string& field) const { return find(field).found; }

bool ModelFields::is_null(const std::string& field) const {
  return !has(field) && (inner_.is_null(field) || outer_.is_null(field));
}

bool ModelFields::is_list(const std::string& field) const {
  const Place place = find(field);
  return place.found && place.spec->is_list(place.name);
}

void ModelFields::require(const std::vector<std::string>& fields) const {
  std::vector<std::string> missing;
  for (const std::string& field : fields) {
    if (has(field)) continue;
    const std::vector<std::string> names = names_of(field);
    const std::vector<std::string> others(names.begin() + 1, names.end());
    missing.push_back(others.empty() ? field : fmt::format("{} (or {})", names.front(), fmt::join(others, ", ")));
  }
  if (missing.empty()) return;
  const char* where = is_wrapped() ? " in text_config and around it" : "";
  throw outer_.error(fmt::format("{}", fmt::join(missing, ", ")),
                     fmt::format("{} missing{}", missing.size() == 1 ? "is" : "are", where));
}

int ModelFields::integer(const std::string& field, int low, int high) const {
  require({field});
  const Place place = find(field);
  return same_integer(*place.spec, place.name, low, high);
}

int ModelFields::integer_or(const std::string& field, int low, int high, int fallback) const {
  const Place place = find(field);
  return place.found ? same_integer(*place.spec, place.name, low, high) : fallback;
}

bool ModelFields::flag_or(const std::string& field, bool fallback) const {
  const Place place = find(field);
  return place.found ? place.spec->flag(place.name) : fallback;
}

std::string ModelFields::text_or(const std::string& field, const std::string& fallback) const {
  const Place place = find(field);
  return place.found ? place.spec->text(place.name) : fallback;
}

std::vector<int> ModelFields::integers_or_none(const std::string& field, int low, int high) const {
  const Place place = find(field);
  return place.found ? place.spec->integers(place.name, low, high) : std::vector<int>();
}

std::vector<std::string> ModelFields::texts_or_none(const std::string& field) const {
  const Place place = find(field);
  return place.found ? place.spec->texts(place.name) : std::vector<std::string>();
}

std::optional<Spec> ModelFields::map_or_none(const std::string& field) const {
  const Place place = find(field);
  return place.found ? std::optional(place.spec->map(place.name)) : std::nullopt;
}

std::vector<Spec> ModelFields::maps_or_none(const std::string& field) const {
  const Place place = find(field);
  return place.found ? place.spec->maps(place.name) : std::vector<Spec>();
}

SpecError ModelFields::error(const std::string& field, std::string_view message) const {
  const Place place = find(field);
  return place.spec->error(place.name, message);
}

SpecError ModelFields::error_at(const std::string& field, std::string_view message) const {
  const Spec& spec = inner_.stands(field) ? inner_ : outer_;
  return spec.error_at(field, message);
}

}  // namespace moeline
