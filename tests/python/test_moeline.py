"""The Python module, against the program: run with PYTHONPATH and MOELINE_BINARY set (tests/CMakeLists.txt)."""

import gc
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import moeline

SOURCE = Path(__file__).resolve().parents[2]
DECODE = SOURCE / "experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml"
PREFILL = SOURCE / "experiments/studies/prefill_deepseek_v3_h800_ep32/scenario.yaml"
CHUNK = SOURCE / "experiments/studies/train_chunk_deepseek_v3_h800/scenario.yaml"
SCENARIO = {
    "schema": 1,
    "model": "deepseek-v3",
    "hardware": "h800",
    "schedule": "decode-two-batch",
    "parallelism": {"ep": 128},
    "workload": {"phase": "decode", "batch_size": 128, "kv_len": 4096},
}


def printed(*arguments):
    """What the program prints. A sanitizer's library, which a sanitized module needs, is not for it."""
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    words = [os.environ["MOELINE_BINARY"], *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout


def program(*arguments):
    """The same as a dict."""
    return json.loads(printed(*arguments, "--format", "json"))


def without_clock(answer):
    """Without the one number that differs from run to run."""
    answer = json.loads(json.dumps(answer))
    answer.get("metrics", {}).pop("simulate_ms", None)
    return answer


class Commands(unittest.TestCase):
    def test_a_file_gives_what_the_program_prints(self):
        self.assertEqual(without_clock(moeline.simulate(DECODE)), without_clock(program("simulate", DECODE)))
        self.assertEqual(moeline.explain(PREFILL), program("explain", PREFILL))
        self.assertEqual(
            moeline.price("h800", ["gemm:m=128,n=7168,k=2048", "mla_decode:batch=64"]),
            program("price", "h800", "gemm:m=128,n=7168,k=2048", "mla_decode:batch=64"),
        )
        self.assertEqual(moeline.model("deepseek-v3"), program("model", "deepseek-v3"))
        self.assertEqual(moeline.list("hardware", "h800"), program("list", "hardware", "h800"))

    def test_a_dict_gives_what_its_file_gives(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "scenario.yaml")
            file.write_text(json.dumps(SCENARIO))
            of_file, of_dict = moeline.simulate(file), moeline.simulate(SCENARIO)
        self.assertEqual(of_file["metrics"]["tpot_ms"], of_dict["metrics"]["tpot_ms"])
        self.assertEqual(of_file["phases"], of_dict["phases"])

    def test_set_takes_a_dict_a_list_or_a_text(self):
        batches = [{"workload.batch_size": 64}, ["workload.batch_size=64"], "workload.batch_size=64"]
        times = [moeline.simulate(SCENARIO, set=each)["metrics"]["step_ms"] for each in batches]
        self.assertEqual(len(set(times)), 1)
        self.assertLess(times[0], moeline.simulate(SCENARIO)["metrics"]["step_ms"])
        nested = moeline.simulate(SCENARIO, set={"parallelism": {"ep": 32}, "schedule": "sequential"})
        self.assertEqual(nested["scenario"]["parallelism"]["ep"], 32)

    def test_both_sides_of_a_comparison_may_be_dicts(self):
        faster = {**SCENARIO, "workload": {**SCENARIO["workload"], "batch_size": 64}}
        same = moeline.compare(SCENARIO, SCENARIO)
        other = moeline.compare(SCENARIO, faster)
        self.assertNotEqual(same, other)

    def test_every_command_of_the_program_is_a_function_with_types_and_text(self):
        commands = [line.split()[0] for line in printed("--help").split("Subcommands:\n")[1].splitlines() if line.startswith("  ")]
        commands = [name for name in commands if name.isalpha()]
        self.assertGreaterEqual(len(commands), 15)
        for name in commands:
            function = getattr(moeline, name)
            self.assertGreater(len(inspect.getdoc(function)), 40, name)
            for parameter in inspect.signature(function).parameters.values():
                self.assertIsNot(parameter.annotation, inspect.Parameter.empty, f"{name}({parameter.name})")

    def test_exit_code_and_messages_come_with_the_answer(self):
        self.assertEqual(moeline.simulate(DECODE).exit_code, 0)
        strict = moeline.simulate(DECODE, strict=True)
        self.assertEqual(strict.exit_code, 1)
        self.assertTrue(any("--strict" in line for line in strict.messages))

    def test_files_are_written_as_by_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder, "trace.json")
            moeline.simulate(DECODE, trace=trace)
            self.assertIn("traceEvents", json.loads(trace.read_text()))
            self.assertGreater(moeline.analyze(trace)["ranks"][0]["span_us"], 0)

    def test_a_sweep_is_a_table(self):
        study = {"schema": 1, "scenario": str(DECODE), "axes": {"workload.batch_size": [32, 64, 128]},
                 "metrics": ["tpot_ms", "tokens_per_s_per_gpu"]}
        answer = moeline.sweep(study)
        self.assertEqual(len(answer["points"]), 3)
        if importlib.util.find_spec("pandas"):
            import pandas

            table = pandas.DataFrame(moeline.table(answer))
            self.assertEqual(list(table["workload.batch_size"]), [32, 64, 128])
            self.assertTrue((table["tpot_ms"].diff().dropna() > 0).all())


class Errors(unittest.TestCase):
    def test_bad_input_says_file_line_and_key(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "bad.yaml")
            file.write_text(DECODE.read_text().replace("batch_size:", "batch_siz:"))
            with self.assertRaises(moeline.BadInput) as caught:
                moeline.simulate(file)
        self.assertEqual(caught.exception.file, str(file))
        self.assertEqual(caught.exception.key, "workload.batch_siz")
        self.assertGreater(caught.exception.line, 1)
        self.assertIn("did you mean 'workload.batch_size'", str(caught.exception))

    def test_a_bad_dict_says_its_key(self):
        with self.assertRaises(moeline.BadInput) as caught:
            moeline.simulate({**SCENARIO, "hardware": "h8000"})
        self.assertEqual(caught.exception.file, "<scenario>")
        self.assertEqual(caught.exception.key, "hardware")

    def test_a_missing_file_is_bad_input_and_nonsense_wrong_usage(self):
        with self.assertRaises(moeline.BadInput):
            moeline.simulate("nowhere.yaml")
        with self.assertRaises(moeline.UsageError):
            moeline.simulate(DECODE, samples=0)
        self.assertTrue(issubclass(moeline.BadInput, ValueError))
        self.assertTrue(issubclass(moeline.UsageError, ValueError))

    def test_a_refused_call_leaves_nothing_behind_for_the_next(self):
        before = without_clock(moeline.simulate(SCENARIO))
        for _ in range(20):
            with self.assertRaises(moeline.BadInput):
                moeline.simulate({"schema": 1})
        self.assertEqual(without_clock(moeline.simulate(SCENARIO)), before)


class Timelines(unittest.TestCase):
    def setUp(self):
        self.run = moeline.timeline(SCENARIO)

    def test_spans_are_those_of_the_metrics(self):
        step_ps = self.run.end_ps.max() - self.run.start_ps.min()
        self.assertAlmostEqual(step_ps / 1e9, self.run.metrics["metrics"]["step_ms"], places=2)
        self.assertTrue((self.run.ready_ps <= self.run.start_ps).all())
        self.assertTrue((self.run.start_ps <= self.run.end_ps).all())
        self.assertEqual(self.run.metrics["metrics"]["tpot_ms"], moeline.simulate(SCENARIO)["metrics"]["tpot_ms"])

    def test_arrays_are_views_that_keep_the_run_alive(self):
        start = self.run.start_ps
        self.assertFalse(start.flags.owndata)
        self.assertFalse(start.flags.writeable)
        again = self.run.start_ps
        self.assertEqual(start.__array_interface__["data"], again.__array_interface__["data"])
        copy = start.copy()
        del self.run, again
        gc.collect()
        moeline.timeline(CHUNK)  # memory that was freed would be used again
        self.assertTrue((start == copy).all())

    def test_ids_count_in_the_tables_of_names(self):
        for ids, names in [(self.run.name_id, self.run.names), (self.run.class_id, self.run.classes),
                           (self.run.stream_id, self.run.streams), (self.run.phase_id, self.run.phases)]:
            self.assertEqual(len(ids), len(self.run))
            self.assertLess(ids.max(), len(names))
        self.assertIn("dispatch", self.run.classes)

    def test_a_frame_has_one_row_for_each_task_by_start(self):
        if not importlib.util.find_spec("pandas"):
            self.skipTest("pandas is not here")
        frame = self.run.frame()
        self.assertEqual(len(frame), len(self.run))
        self.assertTrue(frame["start_us"].is_monotonic_increasing)
        self.assertGreater(frame.loc[frame["class"] == "attention", "solo_us"].sum(), 0)


class Threads(unittest.TestCase):
    def test_other_threads_run_while_a_command_does(self):
        ticks = []
        done = threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.001)

        ticker = threading.Thread(target=tick, daemon=True)
        ticker.start()
        begin = time.monotonic()
        try:
            moeline.simulate(CHUNK, samples=8)
        finally:
            end = time.monotonic()
            done.set()
        ticker.join()
        self.assertGreater(sum(begin < at < end for at in ticks), 5)

    def test_commands_in_threads_give_what_they_give_alone(self):
        batches = [16, 32, 64, 128] * 2
        alone = [moeline.simulate(SCENARIO, set={"workload.batch_size": each})["phases"] for each in batches]
        together = [None] * len(batches)

        def run(i):
            changed = {**SCENARIO, "workload": {**SCENARIO["workload"], "batch_size": batches[i]}}
            together[i] = moeline.simulate(changed)["phases"]

        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(batches))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(together, alone)


class Example(unittest.TestCase):
    def test_the_example_draws_a_timeline(self):
        if not importlib.util.find_spec("matplotlib"):
            self.skipTest("matplotlib is not here")
        with tempfile.TemporaryDirectory() as folder:
            picture = Path(folder, "timeline.png")
            subprocess.run([sys.executable, SOURCE / "experiments/python/examples/draw_timeline.py", picture], check=True)
            self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")


if __name__ == "__main__":
    unittest.main()
