"""What learning from a trace is worth: python3 findings.py MOELINE [DATA], by default ../shared/data beside the project."""
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
MOELINE = sys.argv[1]
DATA = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT.parent / "shared/data"
SMALL = str(HERE / "qwen1.5-0.5b.json")
SCRATCH = tempfile.TemporaryDirectory()


def config(name):
    return str(DATA / "configs" / name)


# What nobody reads off a trace is given, from the README of the traces.
TRACES = {
    "b300_sglang_qwen3_30b_decode": (config("Qwen--Qwen3-30B-A3B"), []),
    "mi300x_sglang_qwen3_30b_decode": (config("Qwen--Qwen3-30B-A3B"), []),
    "mi300x_sglang_qwen3_8b_decode": (config("Qwen--Qwen3-8B"), []),
    "mi300x_vllm_gpt_oss_20b_decode": (config("openai--gpt-oss-20b"), []),
    "b200_vllm_gpt_oss_120b_tp8_prefill_eager": (config("openai--gpt-oss-120b"), []),
    "mi300x_transformers_qwen1.5_0.5b_prefill": (SMALL, ["workload.prompt_len=559"]),
    "h100_transformers_qwen1.5_0.5b_prefill": (SMALL, ["workload.prompt_len=559"]),
}


def learn(trace, name, hardware=None):
    model, given = TRACES[trace]
    call = [MOELINE, "learn", str(DATA / "traces/real" / f"{trace}.json.gz"), "--model", model, "--format", "json"]
    call += ["--force", "-o", f"{SCRATCH.name}/{name}", "--quiet"]
    call += ["--hardware", hardware] if hardware else []
    for setting in given:
        call += ["--set", setting]
    done = subprocess.run(call, capture_output=True, text=True)
    if not done.stdout:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def error(report, key):
    return report["step_us"][key] / report["step_us"]["measured"] - 1


def percent(value):
    return f"{100 * value:+.1f} %"


def in_sample():
    print("The traces themselves: share of the time with an operator, error of the step before anything is learnt,")
    print("with the experts reached, and after; and the operators that were furthest off, us.\n")
    for trace in TRACES:
        report = learn(trace, trace)
        off = sorted(report["operators"], key=lambda o: -abs(o["before_us"] - o["measured_us"]))[:3]
        worst = ", ".join(f"{o['operator']} {o['before_us'] - o['measured_us']:+.0f}" for o in off)
        errors = " ".join(f"{percent(error(report, key)):>9}" for key in ("before", "settled", "after"))
        print(f"{trace:<42} {100 * report['assigned']:6.1f} % {errors}  {worst}")


def data_sheet():
    """MI300X's facts without the kernels that were fitted to these very traces: an H100's are in their place."""
    text = (ROOT / "hwprofiles/mi300x.yaml").read_text()
    path = pathlib.Path(SCRATCH.name) / "sheet.yaml"
    path.write_text(text[: text.index("\n# Written by")].replace("name: mi300x", "name: sheet") + "\n")
    return str(path)


def carried_over():
    sheet = data_sheet()
    traces = [trace for trace in TRACES if trace.startswith("mi300x")]
    before = {trace: learn(trace, f"from_{trace}", sheet) for trace in traces}
    print("\nFrom one trace to another, on a machine of data-sheet facts: error of the step with nothing learnt, with one")
    print("factor for all kernels, and with what was learnt.\n")
    for source in traces:
        for target in traces:
            if source == target:
                continue
            after = learn(target, "to", f"{SCRATCH.name}/from_{source}/machine.yaml")
            nothing = error(before[target], "settled")
            one = (1 + nothing) / (1 + error(before[source], "settled")) - 1
            learnt = error(after, "settled")
            print(f"{source:<42} -> {target:<42} {percent(nothing):>9} {percent(one):>9} {percent(learnt):>9}")


in_sample()
carried_over()
