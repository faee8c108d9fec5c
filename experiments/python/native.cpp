// The Python module's native part: commands by their command lines, and timelines whose arrays are moeline's own
// memory. moeline/__init__.py is what users see.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdlib>
#include <memory>
#include <moeline_commit.hpp>

#include "base/file.hpp"
#include "experiments/cli/output/simulate_output.hpp"
#include "experiments/cli/program.hpp"
#include "experiments/run/best_run.hpp"

namespace py = pybind11;

namespace moeline {
namespace {

// What a command writes, kept in memory.
class Capture {
 public:
  Capture() : file_(open_memstream(&text_, &size_)) {
    if (file_ == nullptr) throw std::bad_alloc();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    std::fclose(file_);
    std::free(text_);
  }

  [[nodiscard]] std::FILE* file() const { return file_; }
  [[nodiscard]] py::bytes text() const {
    std::fflush(file_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_;
};

// Names and texts of what a caller gave instead of files.
using Given = std::vector<std::pair<std::string, std::string>>;

std::vector<std::unique_ptr<GivenText>> hold(const Given& given) {
  std::vector<std::unique_ptr<GivenText>> held;
  for (const auto& [name, text] : given) held.push_back(std::make_unique<GivenText>(name, text));
  return held;
}

// Exit code, results, messages.
py::tuple call(const std::vector<std::string>& arguments, const Given& given) {
  const Capture results, messages;
  Console console{.results = results.file(), .messages = messages.file()};
  int exit_code = kDone;
  {
    const py::gil_scoped_release others_run;
    const auto held = hold(given);
    exit_code = run_command(arguments, console, MOELINE_VERSION MOELINE_COMMIT);
  }
  return py::make_tuple(exit_code, results.text(), messages.text());
}

// A run with its task graph: arrays by task are views of it.
class PyTimeline {
 public:
  explicit PyTimeline(Run run) : run_(std::make_shared<const Run>(std::move(run))) {}

  [[nodiscard]] const Run& run() const { return *run_; }
  [[nodiscard]] const TaskGraph& graph() const { return run_->program.graph; }
  [[nodiscard]] const Span& first_span() const { return run_->timeline.spans.front(); }

  // One member of each record of an array that has one for each task. Nothing is copied: the view keeps the run alive.
  template <class Value, class Record, class Member>
  [[nodiscard]] py::array column(const Record& first, Member Record::*member) const {
    static_assert(sizeof(Member) == sizeof(Value));
    const py::capsule run(new std::shared_ptr<const Run>(run_),
                          [](void* held) { delete static_cast<std::shared_ptr<const Run>*>(held); });
    const auto tasks = static_cast<py::ssize_t>(graph().size());
    py::array array(py::dtype::of<Value>(), {tasks}, {static_cast<py::ssize_t>(sizeof(Record))}, &(first.*member), run);
    array.attr("setflags")(false);
    return array;
  }

 private:
  std::shared_ptr<const Run> run_;
};

PyTimeline timeline(const std::string& scenario, const std::vector<std::string>& assignments, const Given& given) {
  const py::gil_scoped_release others_run;
  const auto held = hold(given);
  return PyTimeline(best_run(scenario, assignments));
}

py::list streams_of(const PyTimeline& timeline) {
  py::list streams;
  for (const Stream& each : timeline.graph().streams()) {
    py::dict stream;
    stream["rank"] = each.rank;
    stream["stream"] = each.id;
    stream["name"] = each.name;
    streams.append(stream);
  }
  return streams;
}

py::list phases_of(const PyTimeline& timeline) {
  py::list phases;
  for (const Phase& each : timeline.graph().phases()) {
    py::dict phase;
    phase["name"] = each.name;
    phase["rank"] = each.rank;
    phase["micro_batch"] = each.micro_batch;
    phase["layer"] = each.layer;
    phases.append(phase);
  }
  return phases;
}

py::list classes_of(const PyTimeline& timeline) {
  py::list classes;
  for (const TaskClass& each : timeline.graph().classes()) classes.append(each.name);
  return classes;
}

py::list names_of(const PyTimeline& timeline) {
  py::list names;
  for (const std::string& name : timeline.graph().names()) names.append(name);
  return names;
}

// C++ errors become the package's own, with their attributes.
template <class... Arguments>
void raise(const char* name, const Arguments&... arguments) {
  const py::object error = py::module_::import("moeline").attr(name)(arguments...);
  PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
}

void translate(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const UsageError& error) {
    raise("UsageError", error.what());
  } catch (const SpecError& error) {
    raise("BadInput", error.what(), error.file(), error.line(), error.key());
  }
}

}  // namespace
}  // namespace moeline

PYBIND11_MODULE(_native, module) {
  using namespace moeline;
  py::register_exception_translator(&translate);
  module.attr("version") = MOELINE_VERSION MOELINE_COMMIT;
  module.def("call", &call);
  module.def("timeline", &timeline);
  using T = const PyTimeline&;
  py::class_<PyTimeline>(module, "Timeline")
      .def("metrics_json", [](T t) { return to_json(t.run(), {}); })
      .def("names", &names_of)
      .def("classes", &classes_of)
      .def("streams", &streams_of)
      .def("phases", &phases_of)
      .def("ready_ps", [](T t) { return t.column<std::int64_t>(t.first_span(), &Span::ready); })
      .def("start_ps", [](T t) { return t.column<std::int64_t>(t.first_span(), &Span::start); })
      .def("end_ps", [](T t) { return t.column<std::int64_t>(t.first_span(), &Span::end); })
      .def("solo_ps", [](T t) { return t.column<std::int64_t>(t.graph().task(0), &Task::solo); })
      .def("sms", [](T t) { return t.column<std::uint16_t>(t.graph().task(0), &Task::sms); })
      .def("name_id", [](T t) { return t.column<std::uint32_t>(t.graph().label(0), &Label::name); })
      .def("class_id", [](T t) { return t.column<std::uint16_t>(t.graph().label(0), &Label::task_class); })
      .def("stream_id", [](T t) { return t.column<std::uint16_t>(t.graph().label(0), &Label::stream); })
      .def("phase_id", [](T t) { return t.column<std::uint32_t>(t.graph().label(0), &Label::phase); });
}
