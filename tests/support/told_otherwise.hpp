// Ways to tell a trace otherwise: edits of its text, and of its events.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/nsight_export.hpp"
#include "tests/support/trace_text.hpp"

namespace moeline::testing {

using Lines = std::vector<std::string>;

// A trace, cut at its events.
struct TraceParts {
  std::string before;
  Lines events;
  std::string behind;

  explicit TraceParts(const std::string& text) {
    const std::size_t from = text.find('[', text.find("\"traceEvents\"")) + 1;
    const std::size_t to = text.rfind(']');
    before = text.substr(0, from);
    behind = text.substr(to);
    const std::string list = text.substr(from, to - from);
    for (std::size_t at = 0; at < list.size();) {
      const std::size_t end = std::min(list.find(",\n", at), list.size());
      events.push_back(list.substr(at, end - at));
      at = end + 2;
    }
  }
  [[nodiscard]] std::string text(const std::string& between = ",\n") const {
    std::string list;
    for (const std::string& event : events) list += (list.empty() ? "" : between) + event;
    return before + list + behind;
  }
};

using Edit = std::function<std::string(const std::string&)>;

inline Edit events(const std::function<void(Lines&)>& change) {
  return [change](const std::string& text) {
    TraceParts parts(text);
    change(parts.events);
    return parts.text();
  };
}

// Events of these, among the others.
inline Edit with(const Lines& more) {
  return events([more](Lines& lines) {
    for (std::size_t i = 0; i < more.size(); ++i) {
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(i * 7 % (lines.size() + 1)), more[i]);
    }
  });
}

inline Edit each(const std::function<std::string(const std::string&)>& change) {
  return events([change](Lines& lines) { std::transform(lines.begin(), lines.end(), lines.begin(), change); });
}

inline Edit replaced(const std::string& from, const std::string& to) {
  return [=](const std::string& text) { return replace_all(text, from, to); };
}

inline Edit then(const Edit& first, const Edit& second) {
  return [=](const std::string& text) { return second(first(text)); };
}

inline Edit numbers(const std::string& key, const std::function<std::string(std::int64_t)>& change) {
  return [=](const std::string& text) { return change_numbers(text, "\"" + key + "\": ", change); };
}

inline Edit at_root(const std::string& members) {
  return [=](const std::string& text) { return "{" + members + ", " + text.substr(1); };
}

inline Edit exported(const NsightVersion& version = {}) {
  return [=](const std::string& text) { return nsight_export(text, version); };
}

inline std::string same(const std::string& text) { return text; }

inline std::string host_event(const std::string& cat, const std::string& name, int ts, int dur,
                              const std::string& args = "") {
  return slice(cat, name, kMainThread, times(std::to_string(ts), std::to_string(dur)), args);
}

inline std::string without(std::string text, const std::string& what) { return replace_all(text, what, ""); }

inline Lines reversed(Lines lines) {
  std::reverse(lines.begin(), lines.end());
  return lines;
}

// Annotations of modules, numbered by layer; what stands behind them differs from layer to layer, too.
inline Edit of_modules(const std::string& before, const std::string& behind, const std::string& end) {
  return events([=](Lines& lines) {
    std::map<std::string, int> layers;
    for (std::string& line : lines) {
      for (const std::string module : {"dispatch", "mlp"}) {
        const std::string name = R"("name": ")" + module + R"(")";
        if (line.find(name) == std::string::npos) continue;
        const std::string layer = std::to_string(layers[module]++);
        const std::string numbers = behind.empty() ? "" : behind + layer + end;
        line = replace_all(line, name, R"("name": ")" + before + layer + "." + module + numbers + R"(")");
      }
    }
  });
}

}  // namespace moeline::testing
