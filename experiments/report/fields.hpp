// A report described once: what each key of a struct means, how it is written as JSON, and the column that shows it.
// From that come the JSON object, its JSON Schema (draft 4) and the table, which cannot contradict each other.
#pragma once

#include <fmt/format.h>

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/text_table.hpp"
#include "base/time.hpp"
#include "experiments/report/json.hpp"

namespace moeline {

constexpr double kAny = -std::numeric_limits<double>::infinity();
constexpr int kAllDigits = -1;
constexpr int kByAmount = -2;  // 6 decimals below 10, else 3: as many as tell a fraction from its measurement

/// How a value is written, what there can be, and the column of the table that shows it.
struct As {
  int decimals = 3;  ///< of numbers
  double least = 0, most = -kAny;
  std::vector<std::string> words = {};  ///< the only texts there are
  std::string heading = "";             ///< no heading: no column
  std::string format = "{}";            ///< of a cell: "%": percent(); "+%": signed_percent(); else of fmt
  char align = 0;                       ///< l or r; 0: texts l, numbers r
};

/// A value whose key is always there: null where it is not known.
template <class V>
struct OrNull {
  std::optional<V> value;
};
template <class V>
[[nodiscard]] OrNull<V> or_null(std::optional<V> value) {
  return {std::move(value)};
}

/// Pairs, each on a line of its own.
using NumberPairs = std::vector<std::array<double, 2>>;

/// Names, and what each means.
using Keys = std::vector<std::pair<std::string, std::string>>;

/// A value whose key is there only where something holds.
template <class V>
[[nodiscard]] std::optional<V> only_if(bool holds, V value) {
  return holds ? std::optional<V>(std::move(value)) : std::nullopt;
}

[[nodiscard]] inline std::optional<std::string> if_any(const std::string& text) { return only_if(!text.empty(), text); }

/// Writes the keywords of a schema into an open object.
using Describe = std::function<void(Json&)>;

namespace report {

struct NotKnown {};
/// What a getter found; std::monostate: nothing, and the key is absent.
using Value = std::variant<std::monostate, NotKnown, bool, std::int64_t, double, std::string, std::vector<double>,
                           std::vector<std::string>, std::vector<std::vector<int>>, NumberPairs, YamlNode>;

enum class Kind { flag, whole, number, text, numbers, texts, lists, pairs, yaml };

void write(Json& json, const std::string& key, const Value& value, const As& as);
[[nodiscard]] std::string cell(const Value& value, const As& as);
/// The keywords of a value's schema, and of others that are made of them.
void describe(Json& json, Kind kind, const As& as, bool or_null);
void describe_list(Json& json, const Describe& item);
/// Names with values of one kind. No `keys`: the names are data.
void describe_map(Json& json, const Describe& value, const Keys& keys);
void describe_key(Json& json, const std::string& key, const std::string& about, const Describe& value);

/// What is behind an optional, a pointer or null.
template <class V>
struct Found {
  using type = V;
  static constexpr bool maybe = false, or_null = false;
};
template <class V>
struct Found<std::optional<V>> : Found<V> {
  static constexpr bool maybe = true;
};
template <class V>
struct Found<V*> : Found<std::remove_cv_t<V>> {
  static constexpr bool maybe = true;
};
template <>
struct Found<const char*> : Found<std::string> {};
template <class V>
struct Found<OrNull<V>> : Found<V> {
  static constexpr bool or_null = true;
};

template <class V>
[[nodiscard]] Value value_of(const V& value) {
  if constexpr (Found<V>::maybe) {
    return value ? value_of(*value) : Value();
  } else if constexpr (Found<V>::or_null) {
    return value.value ? value_of(*value.value) : Value(NotKnown{});
  } else if constexpr (std::is_same_v<V, Time>) {
    return to_us(value);
  } else if constexpr (std::is_integral_v<V> && !std::is_same_v<V, bool>) {
    return static_cast<std::int64_t>(value);
  } else if constexpr (std::is_convertible_v<V, std::string>) {
    return std::string(value);
  } else {
    return value;
  }
}

template <class V>
[[nodiscard]] constexpr Kind kind_of() {
  if constexpr (std::is_same_v<V, bool>) return Kind::flag;
  if constexpr (std::is_same_v<V, double> || std::is_same_v<V, Time>) return Kind::number;
  if constexpr (std::is_integral_v<V>) return Kind::whole;
  if constexpr (std::is_same_v<V, std::vector<double>>) return Kind::numbers;
  if constexpr (std::is_same_v<V, std::vector<std::string>>) return Kind::texts;
  if constexpr (std::is_same_v<V, std::vector<std::vector<int>>>) return Kind::lists;
  if constexpr (std::is_same_v<V, NumberPairs>) return Kind::pairs;
  if constexpr (std::is_same_v<V, YamlNode>) return Kind::yaml;
  return Kind::text;
}

template <class T, class Get>
using Got = std::remove_cvref_t<std::invoke_result_t<const Get&, const T&>>;

}  // namespace report

/// The keys of T's object and the columns of its table, in their order. A getter is a member or a function of a
/// `const T&`; where it returns an optional or a pointer, the key may be absent.
template <class T>
class Fields {
 public:
  struct Field {
    std::string key, about;                        // no key: a column alone
    bool always = true;                            // never absent
    std::function<void(Json&, const T&)> write{};  // with its key
    Describe describe{};
    std::string heading{};
    char alignment = 'r';
    std::function<std::string(const T&)> cell{};  // none: no column
  };

  /// A number, a time (in us), a flag, a text, or a list of those.
  template <class Get>
  Fields& add(std::string key, std::string about, Get get, As as = {}) {
    using Found = report::Found<report::Got<T, Get>>;
    constexpr report::Kind kind = report::kind_of<typename Found::type>();
    const GetValue value = [get](const T& t) { return report::value_of(std::invoke(get, t)); };
    add_part(
        key, std::move(about), !Found::maybe, [=](Json& json, const T& t) { report::write(json, key, value(t), as); },
        [=](Json& json) { report::describe(json, kind, as, Found::or_null); });
    if (!as.heading.empty()) show(fields_.back(), kind, value, std::move(as));
    return *this;
  }

  /// An object with fields of its own.
  template <class Get, class U>
  Fields& object(std::string key, std::string about, Get get, Fields<U> of) {
    const auto write = [=](Json& json, const T& t) {
      visit(get, t, [&](const U& value) {
        json.open(key);
        of.write(json, value);
        json.close();
      });
    };
    return add_part(key, about, !report::Found<report::Got<T, Get>>::maybe, write, of.described());
  }

  /// A list of such objects.
  template <class Get, class U>
  Fields& list(std::string key, std::string about, Get get, Fields<U> of) {
    const auto write = [=](Json& json, const T& t) {
      visit(get, t, [&](const auto& values) {
        json.open_list(key);
        for (const U& value : values) {
          json.open();
          of.write(json, value);
          json.close();
        }
        json.close_list();
      });
    };
    const auto describe = [item = of.described()](Json& json) { report::describe_list(json, item); };
    return add_part(key, about, !report::Found<report::Got<T, Get>>::maybe, write, describe);
  }

  /// An object of names with such objects, from a range of pairs. `keys`: the names that there can be.
  template <class Get, class U>
  Fields& map(std::string key, std::string about, Get get, Fields<U> of, Keys keys = {}) {
    const auto value = [=](Json& json, std::string_view name, const U& u) {
      json.open(name);
      of.write(json, u);
      json.close();
    };
    return add_map(key, about, get, value, of.described(), keys);
  }

  /// An object of names with numbers or texts.
  template <class Get>
  Fields& values(std::string key, std::string about, Get get, As as = {.least = kAny}, Keys keys = {}) {
    using Range = typename report::Found<report::Got<T, Get>>::type;
    using V = std::remove_cvref_t<decltype(std::begin(std::declval<const Range&>())->second)>;
    const auto value = [=](Json& json, std::string_view name, const V& v) {
      report::write(json, std::string(name), report::value_of(v), as);
    };
    constexpr report::Kind kind = report::kind_of<V>();
    return add_map(
        key, about, get, value, [=](Json& json) { report::describe(json, kind, as, false); }, keys);
  }

  /// The fields of a part of T, as T's own; absent with the part.
  template <class Get, class U>
  Fields& all(Get get, const Fields<U>& of) {
    for (const auto& each : of.fields()) {
      Field field{.key = each.key, .about = each.about, .describe = each.describe};
      field.always = each.always && !report::Found<report::Got<T, Get>>::maybe;
      field.heading = each.heading;
      field.alignment = each.alignment;
      if (each.write) {
        field.write = [=](Json& json, const T& t) { visit(get, t, [&](const U& part) { each.write(json, part); }); };
      }
      if (each.cell) {
        field.cell = [=](const T& t) {
          std::string text;
          visit(get, t, [&](const U& part) { text = each.cell(part); });
          return text;
        };
      }
      fields_.push_back(std::move(field));
    }
    return *this;
  }

  /// A key that is always there, with functions of its own: `write` writes it with its value, which `describe`
  /// describes.
  Fields& written(std::string key, std::string about, std::function<void(Json&, const T&)> write, Describe describe) {
    return add_part(std::move(key), std::move(about), true, std::move(write), std::move(describe));
  }

  /// A column that JSON does not have.
  template <class Get>
  Fields& column(std::string heading, Get get, As as = {}) {
    as.heading = std::move(heading);
    fields_.emplace_back();
    show(
        fields_.back(), report::kind_of<typename report::Found<report::Got<T, Get>>::type>(),
        [get](const T& t) { return report::value_of(std::invoke(get, t)); }, std::move(as));
    return *this;
  }

  [[nodiscard]] const std::vector<Field>& fields() const { return fields_; }

  /// The keys and values of an open object.
  void write(Json& json, const T& t) const {
    for (const Field& field : fields_) {
      if (field.write) field.write(json, t);
    }
  }

  [[nodiscard]] std::string json(const T& t) const {
    Json json;
    json.open();
    write(json, t);
    return json.close().text();
  }

  /// The keywords of the object's schema.
  [[nodiscard]] Describe described() const {
    return [fields = fields_](Json& json) {
      std::vector<std::string> required;
      for (const Field& field : fields) {
        if (field.always && field.write) required.push_back(field.key);
      }
      json.add("type", "object");
      if (!required.empty()) json.add("required", required);
      json.open("properties");
      for (const Field& field : fields) {
        if (field.write) report::describe_key(json, field.key, field.about, field.describe);
      }
      json.close().flag("additionalProperties", false);
    };
  }

  [[nodiscard]] TextTable table(const std::vector<T>& rows) const {
    std::string alignment;
    std::vector<std::string> heads;
    for (const Field& field : fields_) {
      if (!field.cell) continue;
      alignment += field.alignment;
      heads.push_back(field.heading);
    }
    TextTable table(alignment);
    table.row(heads);
    for (const T& row : rows) table.row(cells(row));
    return table;
  }

  [[nodiscard]] std::vector<std::string> cells(const T& row) const {
    std::vector<std::string> cells;
    for (const Field& field : fields_) {
      if (field.cell) cells.push_back(field.cell(row));
    }
    return cells;
  }

 private:
  using GetValue = std::function<report::Value(const T&)>;

  // `write` adds the key, `describe` the keywords of its value.
  Fields& add_part(std::string key, std::string about, bool always, std::function<void(Json&, const T&)> write,
                   Describe describe) {
    fields_.push_back({.key = std::move(key),
                       .about = std::move(about),
                       .always = always,
                       .write = std::move(write),
                       .describe = std::move(describe)});
    return *this;
  }

  template <class Get, class Write>
  Fields& add_map(std::string key, std::string about, Get get, Write value, Describe describe, Keys keys) {
    const auto write = [=](Json& json, const T& t) {
      visit(get, t, [&](const auto& values) {
        json.open(key);
        for (const auto& [name, each] : values) value(json, name, each);
        json.close();
      });
    };
    return add_part(key, about, !report::Found<report::Got<T, Get>>::maybe, write,
                    [=](Json& json) { report::describe_map(json, describe, keys); });
  }

  static void show(Field& field, report::Kind kind, GetValue value, As as) {
    const bool is_text = kind == report::Kind::text || kind == report::Kind::texts;
    field.heading = as.heading;
    field.alignment = as.align != 0 ? as.align : is_text ? 'l' : 'r';
    field.cell = [value = std::move(value), as = std::move(as)](const T& t) { return report::cell(value(t), as); };
  }

  // With what a getter finds, if it finds anything.
  template <class Get, class Do>
  static void visit(const Get& get, const T& t, Do with) {
    const auto& found = std::invoke(get, t);
    if constexpr (report::Found<report::Got<T, Get>>::maybe) {
      if (found) with(*found);
    } else {
      with(found);
    }
  }

  std::vector<Field> fields_;
};

/// The words of an enumeration up to its last one.
template <class Enum>
[[nodiscard]] std::vector<std::string> words_to(Enum last) {
  std::vector<std::string> words;
  for (int i = 0; i <= static_cast<int>(last); ++i) words.emplace_back(name_of(static_cast<Enum>(i)));
  return words;
}

/// The fields of a whole output, the version of its format first.
template <class T>
[[nodiscard]] Fields<T> output_fields() {
  return Fields<T>().add("schema_version", "version of this format", [](const T&) { return 1; },
                         {.least = 1, .most = 1});
}

/// Parts of a schema that others refer to ("#/definitions/NAME"), by name.
using Definitions = std::vector<std::pair<std::string, Describe>>;

/// The schema of what `moeline COMMAND --format json` prints. `about`: the command line, and what it is for.
[[nodiscard]] std::string output_schema(const std::string& command, const std::string& about, const Describe& output);

/// Of a command that prints one of several objects. `about`: when it prints this one.
struct OneOutput {
  std::string about;
  Describe describe;
};
[[nodiscard]] std::string output_schema(const std::string& command, const std::string& about,
                                        const std::vector<OneOutput>& outputs, const Definitions& definitions = {});

}  // namespace moeline
