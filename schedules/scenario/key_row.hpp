// What a row of the table of keys (keys.hpp) says of a key: what may stand there, which field it is read into, when the
// resolved scenario has it, and what it means; and how such rows are made.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/spec.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline::keys {

/// What may stand at a key.
struct Type {
  std::string schema;  ///< members of its JSON Schema
  double least = 0, most = 0;
  std::vector<std::string> words{};
};
[[nodiscard]] Type whole(int least, int most);
[[nodiscard]] Type number(double least, double most);
[[nodiscard]] Type flag();
[[nodiscard]] Type text();
[[nodiscard]] Type words(std::vector<std::string> words);
/// A list of some of these words, each once.
[[nodiscard]] Type some_of(const std::vector<std::string>& words);
[[nodiscard]] Type list_of(const Type& items);
[[nodiscard]] Type either(const Type& one, const Type& other);

/// What a resolved scenario has at a key. Nothing: it does not have the key.
struct Entry;
using Value = std::variant<std::monostate, bool, int, double, std::string, std::vector<int>, std::vector<double>,
                           std::vector<std::string>, std::vector<Entry>>;
struct Entry {
  std::string name;
  Value value;
  bool operator==(const Entry&) const = default;
};
[[nodiscard]] inline bool stands(const Value& value) { return value.index() != 0; }
/// A list of one number is that number.
template <class T>
[[nodiscard]] Value one_or_list(const std::vector<T>& numbers) {
  return numbers.size() == 1 ? Value(numbers.front()) : Value(numbers);
}

/// Whether a resolved scenario has a key.
enum class Resolved { always, sometimes, never };

/// What of a key the schemas have.
struct Row {
  std::string name;
  Type type;
  std::string meaning;
  std::string fallback{};     ///< the default as JSON; "": the key is needed, or its default depends on others
  std::vector<Row> keys{};    ///< of a mapping
  bool is_list = false;       ///< of such mappings
  bool is_needed = false;     ///< it must stand in every file
  bool of_one_phase = false;  ///< a mixed step does not have it
  bool of_words = false;      ///< a mixed step has its words alone
  bool of_pipelines = false;  ///< no other schedule has it
  bool enters_slots = false;  ///< it has a use where a pipeline's slots have given lengths
  Resolved in_resolved = Resolved::always;
  Type resolved_type = type;  ///< what a resolved scenario may have there, and what it means there
  std::string resolved_meaning = meaning;

  // What stands there, which is needed, within the bounds of its type.
  [[nodiscard]] int integer(const Spec& spec) const;
  [[nodiscard]] double real(const Spec& spec) const { return spec.number(name, type.least, type.most); }
  [[nodiscard]] std::string word(const Spec& spec) const { return spec.choice(name, type.words); }
  [[nodiscard]] std::vector<int> integers(const Spec& spec) const;
  [[nodiscard]] std::vector<double> reals(const Spec& spec) const;
};

template <class Of>
struct Key : Row {
  std::function<void(const Spec&, Of&)> read{};  ///< into its field; none: the mapping's reader has a function for it
  std::function<Value(const Of&)> resolved{};    ///< where it is in_resolved

  // Changes to a row, in the table.
  [[nodiscard]] Key needed() && {
    is_needed = true;
    return std::move(*this).depends();
  }
  [[nodiscard]] Key not_of_mixed() && {
    of_one_phase = true;
    return std::move(*this);
  }
  [[nodiscard]] Key words_alone_if_mixed() && {
    of_words = true;
    return std::move(*this);
  }
  [[nodiscard]] Key pipelines_alone() && {
    of_pipelines = true;
    return std::move(*this);
  }
  [[nodiscard]] Key also_of_slots() && {
    enters_slots = true;
    return std::move(*this);
  }
  /// Its default depends on others.
  [[nodiscard]] Key depends() && { return std::move(*this).otherwise(""); }
  [[nodiscard]] Key otherwise(const char* json) && {
    fallback = json;
    return std::move(*this);
  }
  /// The resolved scenario has it where `has_use`.
  [[nodiscard]] Key when(std::function<bool(const Of&)> has_use) && {
    in_resolved = Resolved::sometimes;
    resolved = [has_use = std::move(has_use), value = std::move(resolved)](const Of& of) {
      return has_use(of) ? value(of) : Value{};
    };
    return std::move(*this);
  }
  /// It has it where it is not what it would be anyway.
  [[nodiscard]] Key unless_default() && {
    in_resolved = Resolved::sometimes;
    resolved = [left_out = resolved(Of{}), value = std::move(resolved)](const Of& of) {
      Value now = value(of);
      return now == left_out ? Value{} : now;
    };
    return std::move(*this);
  }
  /// The resolved scenario has another value than what stands in the field.
  [[nodiscard]] Key as(std::function<Value(const Of&)> value) && {
    resolved = std::move(value);
    return std::move(*this);
  }
  /// That may be of another type, and mean something else.
  [[nodiscard]] Key resolved_as(Type of_resolved, const char* means) && {
    resolved_type = std::move(of_resolved);
    resolved_meaning = means;
    return std::move(*this);
  }
};

/// The keys of one mapping, in the order in which a resolved scenario has them.
template <class Of>
class Table {
 public:
  Table(std::initializer_list<Key<Of>> keys) : keys_(keys) {}

  [[nodiscard]] std::vector<std::string> names(bool of_pipelines = true) const {
    std::vector<std::string> names;
    for (const Key<Of>& key : keys_) {
      if (of_pipelines || !key.of_pipelines) names.push_back(key.name);
    }
    return names;
  }
  [[nodiscard]] std::vector<Row> rows() const { return {keys_.begin(), keys_.end()}; }
  /// REQUIRES: there is such a key.
  [[nodiscard]] const Key<Of>& at(std::string_view name) const {
    const auto is_it = [&](const Key<Of>& key) { return key.name == name; };
    const auto found = std::find_if(keys_.begin(), keys_.end(), is_it);
    MOELINE_CHECK(found != keys_.end(), std::string(name));
    return *found;
  }
  /// A key into its field, which stays as it is where nothing stands, unless the key is needed. Throws SpecError for
  /// what may not stand there.
  void read(const Spec& spec, std::string_view name, Of& of) const { read(spec, at(name), of); }
  /// The same of a key that is needed here.
  void need(const Spec& spec, std::string_view name, Of& of) const { at(name).read(spec, of); }
  /// All that have a field, in turn.
  void read_all(const Spec& spec, Of& of) const {
    for (const Key<Of>& key : keys_) {
      if (key.read) read(spec, key, of);
    }
  }
  /// What `of` has at them.
  [[nodiscard]] std::vector<Entry> resolved(const Of& of) const {
    std::vector<Entry> entries;
    for (const Key<Of>& key : keys_) {
      Value value = key.resolved ? key.resolved(of) : Value{};
      if (stands(value)) entries.push_back({key.name, std::move(value)});
    }
    return entries;
  }

 private:
  void read(const Spec& spec, const Key<Of>& key, Of& of) const {
    if (key.is_needed || spec.has(key.name)) key.read(spec, of);
  }

  std::vector<Key<Of>> keys_;
};

/// A value that needs no more than a word, as JSON; "": it is none, or empty.
[[nodiscard]] std::string as_json(const Value& value);

/// What stands in a field, as a file has it.
template <class T>
[[nodiscard]] Value written(const T& field) {
  if constexpr (std::is_same_v<T, Precision>) {
    return name_of(field);
  } else if constexpr (std::is_enum_v<T>) {
    return word_of(field);
  } else {
    return field;
  }
}

template <class T>
[[nodiscard]] T read_as(const Spec& spec, const Row& key) {
  if constexpr (std::is_same_v<T, bool>) {
    return spec.flag(key.name);
  } else if constexpr (std::is_same_v<T, int>) {
    return key.integer(spec);
  } else if constexpr (std::is_same_v<T, double>) {
    return key.real(spec);
  } else if constexpr (std::is_same_v<T, Precision>) {
    return precision_named(key.word(spec));
  } else if constexpr (std::is_enum_v<T>) {
    return choice_of<T>(key.word(spec));
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return spec.texts(key.name);
  } else {
    return key.type.words.empty() ? spec.text(key.name) : key.word(spec);
  }
}

/// An ordinary key: it is read into its field, and a resolved scenario has what stands there. Its default is what
/// stands there at first.
template <class Of, class Field>
[[nodiscard]] Key<Of> key_at(Field field, std::string name, Type type, std::string meaning) {
  using T = std::remove_cvref_t<decltype(std::invoke(field, std::declval<Of&>()))>;
  Key<Of> key{{std::move(name), std::move(type), std::move(meaning)}};
  key.resolved = [field](const Of& of) { return written(std::invoke(field, of)); };
  key.fallback = as_json(key.resolved(Of{}));
  key.read = [field, row = Row(key)](const Spec& spec, Of& of) { std::invoke(field, of) = read_as<T>(spec, row); };
  return key;
}
template <class Of, class T>
[[nodiscard]] Key<Of> key(T Of::*field, std::string name, Type type, std::string meaning) {
  return key_at<Of>(field, std::move(name), std::move(type), std::move(meaning));
}
/// Of a part of the scenario.
template <class Part, class T>
[[nodiscard]] Key<Scenario> key(Part Scenario::*part, T Part::*field, std::string name, Type type,
                                std::string meaning) {
  const auto access = [ part, field ](auto& scenario) -> auto& { return scenario.*part.*field; };
  return key_at<Scenario>(access, std::move(name), std::move(type), std::move(meaning));
}
/// Of the scenario itself.
template <class T>
[[nodiscard]] Key<Setup> key(T Scenario::*field, std::string name, Type type, std::string meaning) {
  const auto access = [field](auto& setup) -> auto& { return setup.scenario.*field; };
  return key_at<Setup>(access, std::move(name), std::move(type), std::move(meaning));
}
/// A key that a function of its own reads.
template <class Of>
[[nodiscard]] Key<Of> special(std::string name, Type type, std::string meaning,
                              std::function<Value(const Of&)> resolved = {}) {
  Key<Of> key{{std::move(name), std::move(type), std::move(meaning)}};
  if (!resolved) key.in_resolved = Resolved::never;
  key.resolved = std::move(resolved);
  return key;
}

/// A mapping, whose own reader reads it.
template <class Of>
[[nodiscard]] Key<Of> mapping(std::string name, std::vector<Row> keys, std::string meaning,
                              std::function<Value(const Of&)> resolved = {}) {
  Key<Of> key = special<Of>(std::move(name), {R"("type": "object")"}, std::move(meaning), std::move(resolved));
  key.keys = std::move(keys);
  return key;
}
/// A list of such mappings.
template <class Of>
[[nodiscard]] Key<Of> mappings(std::string name, std::vector<Row> keys, std::string meaning) {
  Key<Of> key = mapping<Of>(std::move(name), std::move(keys), std::move(meaning));
  key.is_list = true;
  return key;
}
/// A mapping into a part of what the table is of: those of its keys that have fields are read with it.
template <class Of, class Part>
[[nodiscard]] Key<Of> part(Part Of::*field, std::string name, const Table<Part>& table, std::string meaning) {
  Key<Of> key = mapping<Of>(std::move(name), table.rows(), std::move(meaning));
  key.read = [field, name = key.name, &table](const Spec& spec, Of& of) {
    const Spec inner = spec.map(name);
    inner.expect(table.names());
    table.read_all(inner, of.*field);
  };
  return key;
}

}  // namespace moeline::keys
