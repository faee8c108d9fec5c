// Whole files: read with clear refusals, written all or nothing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moeline {

/// The file's text, of "-" that of stdin, or what is given in its place (file.hpp).
/// Throws SpecError for a file that is missing, a folder, empty, larger than 64 MiB, or not text: at the line of the
/// first byte that text does not hold.
[[nodiscard]] std::string read_text(const std::filesystem::path& path);

/// The same bytes, whatever they are. Throws SpecError for a file that is missing, a folder, or larger than 64 MiB.
[[nodiscard]] std::string read_content(const std::filesystem::path& path);

/// A pipe, a device, or stdout or stderr, whatever they lead to: nothing is read from it, and no file takes its place.
[[nodiscard]] bool is_special(const std::filesystem::path& path);

/// Writes beside the target and renames: a reader sees the old file or the new one, never half of one, also where the
/// process is killed: that leaves FILE.PROCESS.tmp, which nobody reads. (It is not synced to the disk: what a power
/// failure may lose can be computed again.) Of a link the file that it stands for is written.
/// What is special is written directly, /dev/stdout like all that is printed. Throws SpecError where it cannot be
/// written.
void write_text(const std::filesystem::path& path, std::string_view content);

/// By its name, what a killed write_text left.
[[nodiscard]] bool is_unfinished(const std::filesystem::path& path);

/// What lies at this path in the folder of the running program, or of the library that moeline is in, or in one above
/// it; links are followed.
[[nodiscard]] std::optional<std::filesystem::path> above_program(const std::filesystem::path& relative);

/// Where moeline's own data lives (model/zoo, hwprofiles, schedules): $MOELINE_HOME, else share/moeline above the
/// program: of a build a link to the source tree. Throws SpecError where there is neither.
[[nodiscard]] std::filesystem::path home();

/// Where measured data of others lies, which the project does not ship: $MOELINE_DATA, else ../shared/data beside
/// home().
[[nodiscard]] std::filesystem::path measured_data();

/// Names of the files of a folder below home() that end so, without their ending, sorted.
[[nodiscard]] std::vector<std::string> names_in(const std::filesystem::path& folder, const char* ending = ".yaml");

/// A path written in a file lies beside that file; where nothing lies there, below the working directory.
[[nodiscard]] std::filesystem::path beside(const std::filesystem::path& file, const std::filesystem::path& path);

/// The file that `reference` means: a path when it ends in .yaml or .yml or holds a slash, else a name in the folder,
/// whatever its case. `written_in`: the file that holds the reference, if any. Throws UnknownName with the nearest
/// name, or where there is no such file.
[[nodiscard]] std::filesystem::path find_named(std::string_view kind, const std::string& reference,
                                               const std::filesystem::path& folder,
                                               const std::filesystem::path& written_in = {});

// Text that stands for a file: what comes through stdin, or what a program that uses moeline as a library has in
// memory.

/// While it lives, files of this name have this text, for this thread. Names that no file has, as "<scenario>", are
/// best. Of equal names the youngest counts.
class GivenText {
 public:
  GivenText(std::string name, std::string text);
  GivenText(const GivenText&) = delete;
  GivenText& operator=(const GivenText&) = delete;
  ~GivenText();
};

/// The text given for this name; nothing where none is.
[[nodiscard]] std::optional<std::string> given_text(const std::filesystem::path& name);

/// Stdin, whose text is read once however often it is asked for.
[[nodiscard]] inline bool is_stdin(const std::filesystem::path& name) { return name == "-"; }

}  // namespace moeline
