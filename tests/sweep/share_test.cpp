// Which share of a study a process takes: variables as Slurm, Open MPI and MPICH set them. tests/mpi has real
// launchers.
#include "experiments/sweep/run_study.hpp"

#include <map>

#include "base/error.hpp"
#include "tests/support/sweep.hpp"

TEST_SUITE("sweep/share") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// Variables of this process, and of those it starts, until the end of the scope.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& variables) : variables_(variables) {
    for (const auto& [name, value] : variables_) setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (const auto& [name, value] : variables_) unsetenv(name.c_str());
  }

 private:
  std::map<std::string, std::string> variables_;
};

using Variables = std::map<std::string, std::string>;

Variables array_task(int id, int count, int first, int last, int step) {
  return {{"SLURM_ARRAY_TASK_ID", std::to_string(id)},
          {"SLURM_ARRAY_TASK_COUNT", std::to_string(count)},
          {"SLURM_ARRAY_TASK_MIN", std::to_string(first)},
          {"SLURM_ARRAY_TASK_MAX", std::to_string(last)},
          {"SLURM_ARRAY_TASK_STEP", std::to_string(step)}};
}

std::string share_of(const Variables& variables) {
  const Environment environment(variables);
  const Share share = share_of_environment();
  return std::to_string(share.index) + " of " + std::to_string(share.count);
}

Variables both(Variables one, const Variables& other) {
  one.insert(other.begin(), other.end());
  return one;
}

const Variables kThirdOfMpi = {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
const Variables kStepOfDaemons = {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_NTASKS", "8"}};

}  // namespace

TEST_CASE("a process that nobody launched with others takes the whole study") { CHECK(share_of({}) == "0 of 1"); }

TEST_CASE("ranks of Open MPI, MPICH and srun take theirs") {
  CHECK(share_of(kThirdOfMpi) == "2 of 4");
  CHECK(share_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}}) == "1 of 3");
  CHECK(share_of({{"SLURM_PROCID", "7"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_NTASKS", "8"}}) == "7 of 8");
}

TEST_CASE("a batch script takes the whole study, however many tasks it was given to launch") {
  CHECK(share_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}) == "0 of 1");
  CHECK(share_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}) == "0 of 1");
}

TEST_CASE("under mpirun in a Slurm job mpirun's ranks count, not the step of its daemons") {
  CHECK(share_of(both(kThirdOfMpi, kStepOfDaemons)) == "2 of 4");
  CHECK(share_of(both({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}, kStepOfDaemons)) == "0 of 1");
}

TEST_CASE("tasks of a job array count from the array's first index in its steps") {
  CHECK(share_of(array_task(1, 3, 1, 3, 1)) == "0 of 3");
  CHECK(share_of(array_task(3, 3, 1, 3, 1)) == "2 of 3");
  CHECK(share_of(array_task(4, 4, 0, 6, 2)) == "2 of 4");    // --array=0-6:2
  CHECK(share_of(array_task(11, 3, 1, 11, 5)) == "2 of 3");  // --array=1-15:5
  CHECK(share_of(array_task(5, 1, 5, 5, 1)) == "0 of 1");    // one of them again, with --array=5
  CHECK(share_of({{"SLURM_ARRAY_TASK_ID", "1"}, {"SLURM_ARRAY_TASK_COUNT", "3"}}) == "1 of 3");
}

TEST_CASE("ranks in a task of a job array share the task's share") {
  CHECK(share_of(both(array_task(0, 3, 0, 2, 1), kThirdOfMpi)) == "2 of 12");
  CHECK(share_of(both(array_task(2, 3, 0, 2, 1), kThirdOfMpi)) == "10 of 12");
  CHECK(share_of(both(array_task(2, 3, 0, 2, 1), {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}})) == "2 of 3");
}

TEST_CASE("a share that cannot be told is refused before anything is simulated") {
  const SweptStudy c;
  const auto refused = [&](const Variables& variables, const std::string& place, const std::string& says) {
    const Environment environment(variables);
    check_refused(c.arguments("table.sqlite"), place, says);
    CHECK_FALSE(std::filesystem::exists(c.path("table.sqlite")));
  };
  refused(array_task(3, 3, 1, 7, 1), "SLURM_ARRAY_TASK_ID=3 of 3 tasks from 1 to 7", "--array=0-2");  // --array=1,3,7
  refused(array_task(4, 4, 0, 3, 1), "SLURM_ARRAY_TASK_ID=4", "which share is that?");
  refused({{"OMPI_COMM_WORLD_RANK", "4"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, "OMPI_COMM_WORLD_RANK=4", "is none of");
  refused({{"PMI_RANK", "-1"}, {"PMI_SIZE", "4"}}, "PMI_RANK='-1'", "is no number of a process");
  refused({{"PMI_RANK", "1"}, {"PMI_SIZE", "4x"}}, "PMI_SIZE='4x'", "is no number of a process");
}

TEST_CASE("processes of a job array take their shares, print no table, and merged they have the whole one") {
  const SweptStudy c;
  const Outcome whole = c.sweep("whole.sqlite");
  for (const int id : {0, 2, 4}) {
    const Environment environment(array_task(id, 3, 0, 4, 2));
    const Outcome share = c.sweep("part.sqlite");
    CAPTURE(share.err);
    CHECK(share.exit_code == 0);
    CHECK(share.out.empty());
    CHECK(share.err.find("8 of 24 points; --merge unites the shares") != std::string::npos);
  }
  const Outcome merged = c.sweep("merged.sqlite", {"--merge", c.path("part.0-of-3.sqlite"),
                                                   c.path("part.1-of-3.sqlite"), c.path("part.2-of-3.sqlite")});
  CAPTURE(merged.err);
  CHECK(merged.exit_code == 0);
  CHECK(merged.out == whole.out);
}

TEST_CASE("a share whose points all fail, or that has none, does not end the other processes") {
  const SweptStudy c;
  (void)c.folder.write("study.yaml", replaced(kStudy, "{from: 8, to: 64, step: 8}", "[8]"));  // EP 16, 24, 32
  for (const char* rank : {"1", "3"}) {
    const Environment environment({{"PMI_RANK", rank}, {"PMI_SIZE", "4"}});
    CHECK(c.sweep("part.sqlite").exit_code == 0);
  }
}

TEST_CASE("the example's batch script sweeps its share, also when it is queued again, and is merged as it says") {
  const std::string experiments = std::string(MOELINE_SOURCE_DIR) + "/experiments/studies/";
  const TemporaryFolder folder;
  for (const std::string name : {"decode_ep_by_batch_h800", "decode_deepseek_v3_h800_ep128"}) {
    std::filesystem::copy(experiments + name, folder / name);
  }
  const std::string submitted = folder / "decode_ep_by_batch_h800";
  std::filesystem::remove(submitted + "/study.sqlite");
  for (const int id : {0, 1, 1}) {
    Variables job = array_task(id, 2, 0, 1, 1);
    job.insert({{"SLURM_SUBMIT_DIR", submitted}, {"SLURM_CPUS_PER_TASK", "2"}, {"SLURM_PROCID", "0"}});
    job.insert({{"SLURM_NTASKS", "1"}, {"MOELINE", MOELINE_BINARY}});
    const Environment environment(job);
    const Outcome task = run_process({"/bin/bash", submitted + "/sweep.sbatch"});
    CAPTURE(task.err);
    CHECK(task.exit_code == 0);
  }
  const Outcome merged = run_process(
      {"/bin/bash", "-c", "cd \"$1\" && \"$2\" sweep study.yaml --merge study.*-of-*.sqlite -o study.sqlite", "bash",
       submitted, MOELINE_BINARY});
  CAPTURE(merged.err);
  CHECK(merged.exit_code == 0);
  CHECK(merged.err.find("40 of 40 points, 0 failed") != std::string::npos);
}

}  // TEST_SUITE("sweep/share")
