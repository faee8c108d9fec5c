#!/usr/bin/env python3
"""Checks traces by the rules that HolisticTraceAnalysis (HTA) follows, most of them silently: what breaks one is dropped
or miscounted there, without a message. Prints HTA's temporal breakdown, and compares it with HTA's own where that is
installed.
    hta_rules.py TRACE..."""
import bisect
import collections
import decimal
import gzip
import json
import pathlib
import re
import sys
import tempfile

try:
    from hta.trace_analysis import TraceAnalysis
except ImportError:
    TraceAnalysis = None

KNOWN = json.loads(pathlib.Path(__file__).with_name("peculiarities.json").read_text())
FIELDS = {"name", "cat", "ts", "dur", "pid", "tid"}
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
LAUNCH = ("cuda_runtime", "cuda_driver")
NOT_COMPUTE = re.compile(r"dma|Memcpy|Memset|^.*Sync")  # HTA's patterns for memory and synchronisation
COMMUNICATION = {
    "HTA's names": re.compile(r"^nccl|ncclKernel"),
    "DeepEP's names": re.compile(r"^(?!.*get_dispatch_layout).*(ncclKernel|deep_ep::|dpsk::ep::)"),
}


class Slice:
    """A complete event, times in ns: decimals never pass through a double."""

    def __init__(self, event):
        self.name, self.category = event["name"], event["cat"]
        self.track = (event["pid"], event["tid"])
        self.args = event.get("args", {})
        self.start = ns(event["ts"])
        self.end = self.start + ns(event["dur"])


def complete_slices(events):
    return [Slice(event) for event in events if event["ph"] == "X" and FIELDS <= event.keys()]


def ns(us):
    return int(decimal.Decimal(us) * 1000)


def read(file):
    text = (gzip.open if file.suffix == ".gz" else open)(file, "rb").read().decode()
    return text, json.loads(text, parse_float=decimal.Decimal)


def broken_rules(text, trace):
    """Yields (rule, example)."""
    events = trace["traceEvents"]
    yield from rank_rules(text, trace)
    for event in events:
        if event["ph"] == "X" and not FIELDS <= event.keys():
            yield "slices have all fields", event
    slices = complete_slices(events)
    yield from kernel_rules(slices)
    yield from launch_rules(slices)
    yield from annotation_rules(slices)
    yield from nesting_rules(slices)
    yield from flow_rules(events, slices)
    yield from renaming_rules(slices)


def rank_rules(text, trace):
    found = re.search(r'"rank":\s+(\d+)', text)
    info = trace.get("distributedInfo", {})
    if not found or int(found[1]) != info.get("rank"):
        yield "HTA finds the rank", found and found[0]
    if next(iter(trace)) != "distributedInfo":
        yield "distributedInfo is first", next(iter(trace))


def kernel_rules(slices):
    for s in slices:
        if s.category not in ON_GPU:
            continue
        if any(not isinstance(s.args.get(key), int) for key in ("device", "correlation", "context", "stream")):
            yield "kernels have device, correlation, context and stream", s.name
        elif s.args["stream"] <= 0:
            yield "streams are positive", s.name
        if s.end < s.start:
            yield "durations are not negative", s.name
        if s.category == "kernel" and NOT_COMPUTE.search(s.name):
            yield "no kernel is named like a copy", s.name


def renaming_rules(slices):
    """Where --kernel-naming hta renamed one kernel, it renamed all, and HTA sees the communication that we see."""
    kernels = {s.name for s in slices if s.category == "kernel"}
    if any("ncclKernel_deep_ep" in name for name in kernels):
        for name in kernels:
            if len({bool(pattern.search(name)) for pattern in COMMUNICATION.values()}) > 1:
                yield "HTA knows renamed kernels for communication", name


def launch_rules(slices):
    launched = {s.args.get("correlation") for s in slices if s.category in LAUNCH}
    on_gpu = {s.args.get("correlation") for s in slices if s.category in ON_GPU}
    for s in slices:
        if s.category in LAUNCH and ("stream" in s.args or "correlation" not in s.args):
            yield "launches have a correlation and no stream", s.name
        if s.name in ("cudaLaunchKernel", "cudaGraphLaunch") and s.args.get("correlation") not in on_gpu:
            yield "launches have a kernel", s.name
        if s.category in ON_GPU and s.args.get("correlation") not in launched:
            yield "kernels have a launch", s.name


def annotation_rules(slices):
    bounds = collections.defaultdict(lambda: (set(), set()))
    for s in slices:
        if s.category in ON_GPU:
            bounds[s.track][0].add(s.start)
            bounds[s.track][1].add(s.end)
    for s in slices:
        if s.category != "gpu_user_annotation":
            continue
        if "stream" in s.args:
            yield "annotations have no stream", s.name
        if s.track not in bounds:  # of their own, beside the streams
            continue
        starts, ends = bounds[s.track]
        if s.start not in starts or s.end not in ends:
            yield "annotations begin and end with a kernel", s.name
    steps = {s.name for s in slices if s.name.startswith("ProfilerStep#")}
    if len(steps) > 1:
        yield "at most one ProfilerStep", sorted(steps)


def by_track(slices):
    tracks = collections.defaultdict(list)
    for s in slices:
        tracks[s.track].append(s)
    return tracks


def nesting_rules(slices):
    for track in by_track(slices).values():
        around = []
        # The order of the file decides between equal starts: what encloses is written first.
        for s in sorted(track, key=lambda s: s.start):
            while around and around[-1].end <= s.start:
                around.pop()
            if around and around[-1].end < s.end:
                yield "slices of a track nest or are disjoint", f"{around[-1].name} and {s.name}"
            if around and around[-1].category == "kernel" and s.category == "gpu_user_annotation":
                yield "annotations are written before their kernels", s.name
            around.append(s)


def flow_rules(events, slices):
    ends = {"s": {}, "f": {}}
    for event in events:
        if event["ph"] in ends:
            key = (event["cat"], event["id"])
            if key in ends[event["ph"]]:
                yield "a flow starts once and ends once", key
            ends[event["ph"]][key] = event
    for key in ends["s"].keys() ^ ends["f"].keys():
        yield "flows have both ends", key
    for key in ends["s"].keys() & ends["f"].keys():
        if ns(ends["f"][key]["ts"]) <= ns(ends["s"][key]["ts"]):
            yield "flows end after they start", key
    yield from flows_outside(ends, slices)


def flows_outside(ends, slices):
    starts, last_ends = {}, {}
    for track, inside in by_track(slices).items():
        inside.sort(key=lambda s: s.start)
        starts[track] = [s.start for s in inside]
        last_ends[track] = []  # of this slice and all before it
        for s in inside:
            last_ends[track].append(max(s.end, last_ends[track][-1] if last_ends[track] else s.end))
    for ph, flows in ends.items():
        for key, event in flows.items():
            track, at = (event["pid"], event["tid"]), ns(event["ts"])
            before = bisect.bisect_right(starts.get(track, []), at)
            if before == 0 or last_ends[track][before - 1] < at:
                yield "flows begin and end in a slice", key
            if ph == "f" and event.get("bp") != "e":
                yield "flows bind to the slice around their end", key


def union(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def length(intervals):
    return sum(end - start for start, end in union(intervals))


def counted_by_hta(slices):
    """What is on the GPU; where there are several profiler steps, without what was launched after the last of them had
    begun, what has no launch, and stream 0. A profiler step's twin on the GPU has no stream: for HTA it is on the CPU."""
    gpu = [s for s in slices if s.category in ON_GPU]
    steps = [s for s in slices if s.name.startswith("ProfilerStep")]
    if len({s.name for s in steps}) < 2:
        return gpu
    last = max(s.start for s in steps)
    on_cpu = (s for s in slices if "stream" not in s.args and s.start < last)
    launched = {s.args["correlation"] for s in on_cpu if "correlation" in s.args}
    return [s for s in gpu if s.args.get("correlation") in launched and s.args["stream"] > 0]


def breakdown(trace, communication):
    """HTA's temporal breakdown in us, and its overlap: copies and sets are neither compute nor communication."""
    gpu = counted_by_hta(complete_slices(trace["traceEvents"]))
    spans = collections.defaultdict(list)
    for s in gpu:
        kind = "communication" if communication.search(s.name) else "memory" if s.category != "kernel" else "compute"
        spans[kind].append((s.start, s.end))
    busy = length(span for of_kind in spans.values() for span in of_kind)
    span = max(s.end for s in gpu) - min(s.start for s in gpu)
    compute, communicating = length(spans["compute"]), length(spans["communication"])
    result = {"idle": span - busy, "compute": compute, "non_compute": busy - compute, "span": span}
    result = {key: value / 1000 for key, value in result.items()}
    if communicating:
        both = compute + communicating - length(spans["compute"] + spans["communication"])
        result["overlap_percent"] = round(100 * both / communicating, 2)
    return result


def hta_breakdown(file):
    """HTA's own numbers, in us."""
    with tempfile.TemporaryDirectory() as folder:  # HTA loads every trace of a folder
        pathlib.Path(folder, file.name).symlink_to(file.resolve())
        row = TraceAnalysis(trace_dir=folder).get_temporal_breakdown(visualize=False).iloc[0]
    unit, ns_per_unit = ("ns", 1000) if "idle_time(ns)" in row else ("us", 1)
    columns = {"idle": "idle_time", "compute": "compute_time", "non_compute": "non_compute_time", "span": "kernel_time"}
    return {key: float(row[f"{column}({unit})"]) / ns_per_unit for key, column in columns.items()}


def check_rules(text, trace, allowed):
    broken = collections.defaultdict(list)
    for rule, example in broken_rules(text, trace):
        broken[rule].append(example)
    for rule in sorted(broken.keys() | allowed.keys()):
        times, examples = len(broken[rule]), broken[rule][:2]
        if times != allowed.get(rule, 0):
            yield f"{rule}: broken {times} times, not {allowed.get(rule, 0)}, by {examples}"


def check_breakdowns(file, trace, known):
    for names, pattern in COMMUNICATION.items():
        found = breakdown(trace, pattern)
        print(f"hta: {file.name}: by {names}:", ", ".join(f"{key} {value}" for key, value in found.items()))
        if names in known and found != known[names]:
            yield f"breakdown by {names}: {found}, not {known[names]}"


def check_hta_itself(file, trace):
    ours, theirs = breakdown(trace, COMMUNICATION["HTA's names"]), hta_breakdown(file)
    # HTA rounds times inwards to whole us: only whole ones come out as they were written.
    gpu = [s for s in complete_slices(trace["traceEvents"]) if s.category in ON_GPU]
    exact = all(s.start % 1000 == 0 and s.end % 1000 == 0 for s in gpu)
    print(f"hta: {file.name}: HTA itself: {theirs}{'' if exact else ' (rounded to us)'}")
    if exact and any(theirs[key] != ours[key] for key in theirs):
        yield f"HTA itself has {theirs}, not {ours}"


def check(file):
    """Returns what is wrong, as lines."""
    try:
        text, trace = read(file)
    except (OSError, EOFError, ValueError) as error:
        return [str(error)]
    known = KNOWN.get(file.name, {})
    wrong = list(check_rules(text, trace, known.get("hta_rules", {})))
    wrong += check_breakdowns(file, trace, known.get("hta_breakdown_us", {}))
    if TraceAnalysis:
        wrong += check_hta_itself(file, trace)
    return wrong


def main():
    if not TraceAnalysis:
        print("hta: HTA itself: skipped: not installed; its rules are checked all the same")
    failed = False
    for file in map(pathlib.Path, sys.argv[1:]):
        wrong = check(file)
        print(f"hta: {file.name}: {'FAILED' if wrong else 'ok'}")
        for line in wrong:
            print("  " + line)
        failed |= bool(wrong)
    sys.exit(failed)


main()
