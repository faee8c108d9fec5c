"""DeepSeek's decode unit, and what moeline says of it."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from ask import ask  # noqa: E402
from loads import Loads, as_csv  # noqa: E402

SCENARIO = os.path.join(os.path.dirname(HERE), "skewed_decode_deepseek_v3_h800_ep144", "scenario.yaml")
NODES, GPUS, SLOTS, COPIES = 18, 144, 288, 32
LAYERS, BATCH = 58, 128
EXPERT_BYTES = 3 * 7168 * 2048 + 4 * 3 * 7168 * 2048 // 128**2  # FP8, and an FP32 scale for each 128x128
EPLB = f"redundant_experts: {COPIES}, placement: eplb"
NO_COPIES = "redundant_experts: 0, placement: static"


def written(folder: str, steps: list[Loads]) -> str:
    path = os.path.join(folder, "loads.csv")
    with open(path, "w") as file:
        file.write(as_csv(steps))
    return path


def balance(path: str, every: int, newest_weight: float = 0.5) -> dict:
    return ask("balance", path, "--nodes", str(NODES), "--gpus", str(GPUS), "--replicas", str(SLOTS), "--tokens", "2",
               "--rebalance-every", str(every), "--newest-weight", str(newest_weight))


def simulate(routing: str, *changes: str) -> dict:
    """Metrics of a decode step, all ranks simulated."""
    return ask("simulate", SCENARIO, changes=("ranks=all", f"routing={{{routing}}}", *changes))["metrics"]


def simulate_loads(path: str, placement: str, *changes: str) -> dict:
    """Of the file's last step, placed by those before it."""
    return simulate(f"distribution: file, file: {path}, {placement}", *changes)


def nic_bytes_per_s() -> float:
    return ask("list", "hardware", "h800")["facts"]["nic_GBps"]["value"] * 1e9
