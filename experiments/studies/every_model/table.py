#!/usr/bin/env python3
"""All published config.json files: what they hold, and how fast they decode and prefill on H200 and B200.

    table.py CONFIGS MOELINE [FOLDER...]

CONFIGS holds one folder per model. Writes models.csv and speed.csv beside this script (of the FOLDERs named alone: prints
them) and prints what the README says of them. README.md states the formulas of the roofline.
"""
import collections
import csv
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PUBLISHED = os.path.join(HERE, "../../../tests/architecture/published_configs.csv")
MACHINES = ("h200", "b200")
BATCHES, LENGTHS, PROMPTS = (16, 32, 64), (2048, 4096, 16384), (4096, 8192, 16384)
SCENARIO = """schema: 1
model: deepseek-v3
hardware: h200
kernels: sglang
schedule: sequential
parallelism: {ep: 1}
workload: {phase: decode, batch_size: 32, kv_len: 4096}
"""
# What multiplies a format: the peak of the machine; NVFP4 in BF16 where there are no FP4 tensor cores, INT4 always, MXFP4 with
# rows in MXFP8 where there are.
PEAKS = {"bf16": "bf16", "fp8": "fp8", "fp8_static": "fp8", "fp8_tensor": "fp8", "nvfp4": "fp4", "mxfp4": "mxfp4", "int4": "bf16"}


class Moeline:
    def __init__(self, program, configs, scenario):
        self.program, self.configs, self.scenario = program, configs, scenario
        self.known, self.calls = {}, 0

    def ask(self, *arguments):
        """Its JSON, or its refusal as a string."""
        self.calls += 1
        done = subprocess.run([self.program, *arguments, "--format", "json"], capture_output=True, text=True)
        if done.returncode == 0:
            return json.loads(done.stdout)
        return done.stderr.strip().splitlines()[-1].replace("moeline: --set: ", "").replace("moeline: ", "")

    def model(self, folder, tokens):
        return self.kept(("model", os.path.join(self.configs, folder), "--seq-len", str(tokens)))

    def simulate(self, folder, machine, layout, workload):
        split = ", ".join(f"{key}: {size}" for key, size in layout.items())
        return self.kept(("simulate", self.scenario, "--set", "model=" + os.path.join(self.configs, folder), "--set",
                          "hardware=" + machine, "--set", f"parallelism={{{split}}}", "--set", f"workload={{{workload}}}"))

    def kept(self, arguments):
        if arguments not in self.known:
            self.known[arguments] = self.ask(*arguments)
        return self.known[arguments]


def decode(batch=32, tokens=4096):
    return f"phase: decode, batch_size: {batch}, kv_len: {tokens}"


def prefill(tokens=8192):
    return f"phase: prefill, tokens: {tokens}, prompt_len: {tokens}"


def name_of(layout):
    names = [f"TP{layout['tp']}"] if layout.get("tp", 1) > 1 else []
    names += [f"DP{layout['dp']}"] if layout.get("dp", 1) > 1 else []
    names += [f"EP{layout['ep']}"] if layout.get("ep", 1) > 1 else []
    return " ".join(names) or "one GPU"


def gpus_of(layout):
    return max(layout.get("tp", 1) * layout.get("dp", 1), layout.get("ep", 1))


def layouts(gpus, dense):
    """In the order in which they are tried: heads and whole experts split by all; heads and every expert; whole experts
    alone. Past a node a group of each node's attention, and experts over all nodes."""
    if gpus == 1:
        return [{"ep": 1}]
    if gpus > 8:
        return [] if dense else [{"tp": 8, "dp": gpus // 8, "ep": gpus}]
    if dense:
        return [{"tp": gpus}]
    return [{"tp": gpus, "ep": gpus}, {"tp": gpus}, {"ep": gpus}]


def choose(moeline, folder, machine, facts, known):
    """The smallest layout that holds the model, and what was refused on the way."""
    refused = []
    for gpus in (1, 2, 4, 8, 16, 32):
        if facts["weights_gb"] / 1.073741824 / gpus > known["memory_gib"]:
            continue
        for layout in layouts(gpus, facts["moe_layers"] == 0):
            runs = [moeline.simulate(folder, machine, layout, workload) for workload in (decode(), prefill())]
            refusals = [run for run in runs if isinstance(run, str)]
            if refusals:
                refused.append(f"{name_of(layout)}: {refusals[0]}")
                continue
            if all(run["fits_memory"] for run in runs):
                return layout, refused
            break
    return None, refused


def entries(config):
    """Every key of a config.json with its value, those of nested objects too; what stands higher wins."""
    found, nested = {}, []
    for key, value in config.items():
        if isinstance(value, dict):
            nested.append(value)
        else:
            found[key] = value
    for each in nested:
        for key, value in entries(each).items():
            found.setdefault(key, value)
    return found


def config_of(moeline, folder):
    with open(os.path.join(moeline.configs, folder, "config.json")) as file:
        return entries(json.load(file))


def selected(layer):
    match = re.search(r"(\d+) selected", layer)
    return int(match.group(1)) if match else None


def one_of(layer):
    match = re.search(r"1 of (\d+)", layer)
    return int(match.group(1)) if match else 1


def flops_of(facts):
    return sum(module["flops"] for module in facts["modules"])


def is_expert(module):
    return module["module"] == "routed experts"


class Roofline:
    """The least time of a step by the bytes of the checkpoint and its FLOPs; nothing here is a price of moeline's."""

    def __init__(self, moeline, folder, machine_facts, layout):
        self.moeline, self.folder, self.machine = moeline, folder, machine_facts
        self.tp, self.gpus = layout.get("tp", 1), gpus_of(layout)
        self.dp = self.gpus // self.tp
        self.config = config_of(moeline, folder)

    def peak(self, weights):
        """FLOP/s of the fastest format of a module."""
        fp4, fp8, bf16 = (self.machine[f"{name}_tflops"] * 1e12 for name in ("fp4", "fp8", "bf16"))
        by = {"bf16": bf16, "fp8": fp8, "fp4": fp4 or bf16, "mxfp4": fp8 if fp4 else bf16}
        return max(by[PEAKS[each]] for each in weights.split("+"))

    def weight_bytes(self, tokens):
        """Of one GPU, read once: all that is not experts by the ranks of its group, and the experts that are hit."""
        modules = self.moeline.model(self.folder, 4096)["modules"]
        tied = all(module["module"] != "LM head" for module in modules)
        total = 0
        for module in modules:
            if is_expert(module):
                chosen = module["active_parameters"] / module["parameters"]
                total += module["weight_bytes"] * (1 - (1 - chosen) ** (tokens * self.dp)) / self.gpus
            elif module["module"] != "embedding" or tied:
                total += module["weight_bytes"] / self.tp
        return total

    def cache_bytes(self, tokens, selects):
        """What one query reads of one sequence, on one GPU; states are read and written."""
        facts = self.moeline.model(self.folder, tokens)
        state = facts.get("state_bytes_per_sequence", 0)
        cache = facts["kv_bytes_per_sequence"] - state
        if selects:  # of the keys that are not chosen the index key alone
            for each in facts["attention_layers"]:
                keys = selected(each["attention"])
                entries_kept = tokens // one_of(each["attention"])
                if keys and entries_kept > keys:
                    cache -= each["layers"] * (entries_kept - keys) * self.key_bytes()
        if facts["kv_cache"] == "fp8":
            cache /= 2
        latent = "kv_lora_rank" in self.config
        heads = 1 if latent else self.config.get("num_key_value_heads") or self.config["num_attention_heads"]
        return cache / min(self.tp, heads) + 2 * state / self.tp

    def key_bytes(self):
        """BF16 bytes of a cached token in one layer that selects."""
        if "kv_lora_rank" in self.config:
            return 2 * (self.config["kv_lora_rank"] + self.config["qk_rope_head_dim"])
        heads, size = self.config["num_key_value_heads"], self.config["head_dim"]
        return 2 * heads * size * (1 if heads == 1 else 2)  # a single head of V4 is key and value at once

    def compute_s(self, flops_by_module):
        """flops_by_module: those of one group; matrices at their format's peak, what has no parameters at BF16's."""
        bf16 = self.peak("bf16")
        return sum(matrix / self.peak(weights) + core / bf16 for matrix, core, weights in flops_by_module) / self.tp

    def flops(self, tokens):
        """Of a whole sequence by module: FLOPs of matrices, of the core, format."""
        for module in self.moeline.model(self.folder, tokens)["modules"]:
            matrix = min(2 * module["active_parameters"], module["flops"])
            yield module["module"], matrix * tokens, (module["flops"] - matrix) * tokens, module["weights"]

    def decode_ms(self, batch=32, tokens=4096):
        """The token at the end: what a sequence takes less what it takes without it."""
        last = [(batch * (matrix - before), max(0, batch * (core - core_before)), weights)
                for (_, matrix, core, weights), (_, before, core_before, _)
                in zip(self.flops(tokens), self.flops(tokens - 1))]
        moved = self.weight_bytes(batch) + batch * self.cache_bytes(tokens, selects=True)
        return self.least(moved, self.compute_s(last))

    def prefill_ms(self, tokens=8192):
        """All matrices see all tokens, the LM head the last one; the cache is written."""
        by_module = [(matrix / (tokens if name == "LM head" else 1), core, weights)
                     for name, matrix, core, weights in self.flops(tokens)]
        moved = self.weight_bytes(tokens) + self.cache_bytes(tokens, selects=False)
        return self.least(moved, self.compute_s(by_module))

    def least(self, moved, compute_s):
        memory_s = moved / (self.machine["hbm_GBps"] * 1e9)
        return 1e3 * max(memory_s, compute_s), "memory" if memory_s > compute_s else "compute"


def shares(run):
    """Of the kernels' solo time in %: extrapolated, and priced by the peaks of the machine."""
    kernels = [each for each in run["provenance"] if "kernels" in each]
    total = sum(each["solo_us"] for each in kernels)
    return [100 * sum(each["solo_us"] for each in kernels if each["provenance"] == kind) / total
            for kind in ("extrapolated", "roofline")]


def step_ms(run):
    return None if isinstance(run, str) else run["metrics"]["step_ms"]


def drops(pairs):
    """`yes`, or the worst place where more work takes less time. Pairs: (name, less work, more work) in ms."""
    worst = min(((after / before - 1, name) for name, before, after in pairs if before and after), default=(0, ""))
    return "yes" if worst[0] >= 0 else f"{100 * worst[0]:.2f} % {worst[1]}"


def monotone(moeline, folder, machine, layout):
    steps = {(batch, tokens): step_ms(moeline.simulate(folder, machine, layout, decode(batch, tokens)))
             for batch in BATCHES for tokens in LENGTHS}
    by_batch = drops((f"batch {low} to {high} at KV {tokens}", steps[low, tokens], steps[high, tokens])
                     for low, high in zip(BATCHES, BATCHES[1:]) for tokens in LENGTHS)
    by_length = drops((f"KV {low} to {high} at batch {batch}", steps[batch, low], steps[batch, high])
                      for low, high in zip(LENGTHS, LENGTHS[1:]) for batch in BATCHES)
    of_prompts = {tokens: step_ms(moeline.simulate(folder, machine, layout, prefill(tokens))) for tokens in PROMPTS}
    by_prompt = drops((f"prompt {low} to {high}", of_prompts[low], of_prompts[high])
                      for low, high in zip(PROMPTS, PROMPTS[1:]))
    return by_batch, by_length, by_prompt


def rounded(value, digits=4):
    return "" if value is None else float(f"{value:.{digits}g}")


def machine_facts(moeline, machine):
    return {name: fact["value"] for name, fact in moeline.ask("list", "hardware", machine)["facts"].items()}


def speed_row(moeline, folder, machine, facts_of):
    facts = moeline.model(folder, 4096)
    layout, refused = choose(moeline, folder, machine, facts, facts_of[machine])
    row = {"folder": folder, "machine": machine, "layout": name_of(layout) if layout else "none",
           "gpus": gpus_of(layout) if layout else "", "refused_before": "; ".join(refused)}
    if not layout:
        return row, None
    roofline = Roofline(moeline, folder, facts_of[machine], layout)
    for phase, workload, least in (("decode", decode(), roofline.decode_ms()), ("prefill", prefill(), roofline.prefill_ms())):
        run = moeline.simulate(folder, machine, layout, workload)
        extrapolated, by_roofline = shares(run)
        row |= {f"{phase}_ms": rounded(step_ms(run)), f"{phase}_roofline_ms": rounded(least[0]),
                f"{phase}_ratio": rounded(step_ms(run) / least[0], 3), f"{phase}_bound": least[1],
                f"{phase}_memory_gib": rounded(run["metrics"]["memory_gib"]), f"{phase}_fits": run["fits_memory"],
                f"{phase}_extrapolated": round(extrapolated, 1), f"{phase}_by_roofline": round(by_roofline, 1)}
    columns = ("monotone_batch", "monotone_length", "monotone_prompt")
    row |= dict(zip(columns, monotone(moeline, folder, machine, layout)))
    return row, layout


def beside_h200(moeline, folder, layout):
    """B200's time over H200's, in H200's layout."""
    def ratio(workload):
        first, second = (step_ms(moeline.simulate(folder, machine, layout, workload)) for machine in MACHINES)
        return rounded(second / first, 3) if first and second else ""
    return {"b200_over_h200_decode": ratio(decode()), "b200_over_h200_prefill": ratio(prefill())}


def attention_of(facts):
    kinds = [f"{each['layers']} x {each['attention']}" for each in facts["attention_layers"]]
    return "; ".join(kinds)


def model_row(moeline, folder, published):
    short, long = moeline.model(folder, 4096), moeline.model(folder, 131072)
    state = short.get("state_bytes_per_sequence", 0)
    total = short["parameters"] / 1e9
    given = published.get(folder, {})
    deviation = 100 * (total / float(given["parameters"]) - 1) if given else None
    return {"folder": folder, "model_type": short["model_type"], "layers": short["num_hidden_layers"],
            "attention": attention_of(short), "parameters_1e9": rounded(total, 5),
            "active_1e9": rounded(short["active_parameters"] / 1e9),
            "published_1e9": given.get("parameters", ""), "deviation_percent": "" if deviation is None else round(deviation, 2),
            "exception": given.get("exception", ""), "kv_cache": short["kv_cache"],
            "kv_bytes_per_token_4k": round((short["kv_bytes_per_sequence"] - state) / 4096),
            "kv_bytes_per_token_128k": round((long["kv_bytes_per_sequence"] - state) / 131072),
            "state_bytes_per_sequence": state, "weights_gb": rounded(short["weights_gb"]),
            "experts": next((module["weights"] for module in short["modules"] if is_expert(module)), "")}


def published_totals():
    with open(PUBLISHED) as file:
        lines = [line.rstrip("\n").split(",", 2) for line in file if not line.startswith("#")]
    return {folder: {"parameters": parameters, "exception": exception} for folder, parameters, exception in lines[1:]}


def write(name, rows, to_stdout):
    columns = list(dict.fromkeys(column for row in rows for column in row))
    file = sys.stdout if to_stdout else open(os.path.join(HERE, name), "w", newline="")
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    if not to_stdout:
        file.close()


FAMILIES = [("dense", r"Qwen3-(0|1|8|32|VL-(2|4|8|32)B)|qwen3-8B|MiMo-7B|Llama-3\.1|Llama-3_3"),
            ("Qwen3, MoE", r"[Qq]wen3-(30|235|Coder|VL-(30|235))"), ("Mixtral", "Mixtral"), ("Llama-4", "Llama-4"),
            ("MiniMax-M2", "MiniMax-M2"), ("DeepSeek-V3, R1", r"(?i)deepseek[-_](v3(?!\.2)|r1)"),
            ("Kimi-K2", "Kimi-K2"), ("windows: gpt-oss, Gemma-4, MiMo-V2, Step", "gpt-oss|[Gg]emma|MiMo-V2|Step"),
            ("sparse: DeepSeek-V3.2, GLM-5, MiniMax-M3", r"(?i)deepseek[-_]v3\.2|GLM-5|MiniMax-M3"),
            ("compressed: DeepSeek-V4", "DeepSeek-V4"), ("Kimi-K3", "Kimi-K3"),
            ("delta nets: Qwen3-Next, Qwen3.5, Qwen3.6", r"(?i)qwen3(-next|\.[56])"), ("Mamba-2: Nemotron", "Nemotron-(3|H)")]


def family_of(folder):
    return next((name for name, pattern in FAMILIES if re.search(pattern, folder)), "other")


def span(values):
    low, high = min(values), max(values)
    return f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"


def summary(models, rows, refused_models):
    print(f"\n{len(models)} models, {len(refused_models)} refused: {refused_models}")
    print("\nmore than 1 % off:")
    for row in models:
        if row["deviation_percent"] != "" and abs(row["deviation_percent"]) > 1:
            print(f"  {row['folder']}: {row['parameters_1e9']} for {row['published_1e9']}, {row['deviation_percent']:+} %"
                  f"  {row['exception']}")
    ran = [row for row in rows if row.get("decode_ms")]
    print("\n| family | models | parameters, 10^9 | active | deviation, % | KV at 4K, KB per token | at 128K | state, MB |"
          " weights, GB |\n|---|" + "---:|" * 8)
    for family, _ in FAMILIES:
        of = [row for row in models if family_of(row["folder"]) == family]
        cells = [[float(row["parameters_1e9"]) for row in of], [row["active_1e9"] for row in of],
                 [row["deviation_percent"] for row in of if row["deviation_percent"] != ""],
                 [row["kv_bytes_per_token_4k"] / 1e3 for row in of], [row["kv_bytes_per_token_128k"] / 1e3 for row in of],
                 [row["state_bytes_per_sequence"] / 1e6 for row in of], [row["weights_gb"] for row in of]]
        print(f"| {family} | {len(of)} | " + " | ".join(span(values) if values else "" for values in cells) + " |")
    print("\npredicted over roofline: range (median)\n\n| family | " + " | ".join(
        f"{phase} {machine}" for phase in ("decode", "prefill") for machine in MACHINES) + " |\n|---|---:|---:|---:|---:|")
    for family, _ in FAMILIES:
        cells = []
        for phase in ("decode", "prefill"):
            for machine in MACHINES:
                ratios = [row[f"{phase}_ratio"] for row in ran
                          if row["machine"] == machine and family_of(row["folder"]) == family]
                cells.append(f"{span(ratios)} ({statistics.median(ratios):.2g})" if ratios else "")
        print(f"| {family} | " + " | ".join(cells) + " |")
    print("without a family:", [row["folder"] for row in models if family_of(row["folder"]) == "other"])
    for phase in ("decode", "prefill"):
        print(f"\n{phase}: median ratio", {machine: round(statistics.median(
            row[f"{phase}_ratio"] for row in ran if row["machine"] == machine), 2) for machine in MACHINES})
        ordered = sorted(ran, key=lambda row: row[f"{phase}_ratio"])
        for row in ordered[:3] + ordered[-8:]:
            print(f"  {row[f'{phase}_ratio']:>6} {row['machine']} {row['folder']} {row['layout']}: {row[f'{phase}_ms']} ms,"
                  f" roofline {row[f'{phase}_roofline_ms']} ({row[f'{phase}_bound']}), extrapolated"
                  f" {row[f'{phase}_extrapolated']} %, by roofline {row[f'{phase}_by_roofline']} %")
    print("\nlayouts:", dict(collections.Counter((row["machine"], row["layout"]) for row in rows)))
    for phase in ("decode", "prefill"):
        ratios = [row[f"b200_over_h200_{phase}"] for row in rows if row.get(f"b200_over_h200_{phase}")]
        print(f"\n{phase}: B200 over H200 in H200's layout {min(ratios)} to {max(ratios)}, median {statistics.median(ratios)}")
        for machine in MACHINES:
            for kind, what in (("extrapolated", "extrapolated"), ("by_roofline", "priced by roofline")):
                values = [row[f"{phase}_{kind}"] for row in ran if row["machine"] == machine]
                print(f"  {machine}: {what}: median {statistics.median(values):.1f} %, below 1 % in"
                      f" {sum(v < 1 for v in values)}, above half in {sum(v > 50 for v in values)} of {len(values)},"
                      f" at most {max(values)} %")
    print("\nviolations:")
    for row in ran:
        for column in ("monotone_batch", "monotone_length", "monotone_prompt"):
            if row[column] != "yes":
                print(f"  {column} {row['machine']} {row['folder']} {row['layout']}: {row[column]}")
        for column in ("decode_ratio", "prefill_ratio"):
            if row[column] < 1:
                print(f"  {column} below 1 {row['machine']} {row['folder']} {row['layout']}: {row[column]}")
        for column in ("b200_over_h200_decode", "b200_over_h200_prefill"):
            if row.get(column) and row[column] > 1:
                print(f"  {column} {row['folder']} {row['layout']}: {row[column]}")
        for column in ("decode_fits", "prefill_fits"):
            if not row[column]:
                print(f"  {column} {row['machine']} {row['folder']}")
    for row in rows:
        if not row.get("decode_ms"):
            print(f"  no layout {row['machine']} {row['folder']}: {row['refused_before']}")


def main():
    configs, program = os.path.abspath(sys.argv[1]), sys.argv[2]
    named = sys.argv[3:]
    published = published_totals()
    with tempfile.TemporaryDirectory() as scratch:
        scenario = os.path.join(scratch, "scenario.yaml")
        with open(scenario, "w") as file:
            file.write(SCENARIO)
        moeline = Moeline(program, configs, scenario)
        facts_of = {machine: machine_facts(moeline, machine) for machine in MACHINES}
        models, speeds, refused_models = [], [], []
        for folder in named or sorted(os.listdir(configs)):
            if not os.path.isdir(os.path.join(configs, folder)):
                continue
            if isinstance(refusal := moeline.model(folder, 4096), str):
                refused_models.append(f"{folder}: {refusal}")
                continue
            models.append(model_row(moeline, folder, published))
            rows = [speed_row(moeline, folder, machine, facts_of) for machine in MACHINES]
            if rows[0][1]:
                rows[0][0].update(beside_h200(moeline, folder, rows[0][1]))
            speeds += [row for row, _ in rows]
            moeline.known.clear()
        write("models.csv", models, bool(named))
        write("speed.csv", speeds, bool(named))
        summary(models, speeds, refused_models)
        print(f"\n{moeline.calls} calls")


if __name__ == "__main__":
    main()
