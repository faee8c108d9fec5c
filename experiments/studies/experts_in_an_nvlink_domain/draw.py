#!/usr/bin/env python3
"""Draws decode.svg: what each GPU generates by the width of expert parallelism, with 128 requests on each.

    experiments/studies/experts_in_an_nvlink_domain/draw.py     reads expected_decode.csv beside it
"""
import csv
import math
import pathlib

HERE = pathlib.Path(__file__).parent
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 640, 300, 56, 14, 42
WIDEST, MOST, DOMAIN = 144, 5500, 72
LINES = {("trtllm", "nvfp4"): "#1b6ca8", ("trtllm", "fp8"): "#6fa8d6", ("sglang", "nvfp4"): "#b3541e",
         ("sglang", "fp8"): "#e0a070"}
NAMES = {"trtllm": "TensorRT-LLM", "sglang": "SGLang"}


def x_of(gpus):
    return LEFT + (WIDTH - LEFT - 150) * math.log2(gpus / 4) / math.log2(WIDEST / 4)


def y_of(tokens):
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - tokens / MOST)


def text(x, y, words, anchor="middle", color="#444"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{words}</text>'


def axes(widths):
    parts = [text(x_of(gpus), HEIGHT - 24, gpus) for gpus in widths]
    for tokens in range(0, MOST, 1000):
        parts.append(f'<path d="M{LEFT} {y_of(tokens):.1f}H{x_of(WIDEST):.1f}" stroke="#ddd"/>')
        parts.append(text(LEFT - 6, y_of(tokens) + 4, tokens, "end"))
    edge = (x_of(DOMAIN) + x_of(WIDEST)) / 2
    parts.append(f'<path d="M{edge:.1f} {TOP}V{y_of(0):.1f}" stroke="#888" stroke-dasharray="4 3"/>')
    parts.append(text(edge - 4, TOP + 10, "one NVLink domain", "end", "#888"))
    parts.append(text((LEFT + x_of(WIDEST)) / 2, HEIGHT - 6, "GPUs that share the experts; tokens/s per GPU"))
    return parts


def line(rows, who, color):
    points = [(int(r["parallelism.ep"]), float(r["tokens_per_s_per_gpu"])) for r in rows]
    path = " ".join(f"{x_of(gpus):.1f},{y_of(tokens):.1f}" for gpus, tokens in points)
    stack, number_format = who
    name = f"{NAMES[stack]}, {number_format.upper()}"
    return [f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>',
            text(x_of(WIDEST) + 6, y_of(points[-1][1]) + 4, name, "start", color)]


def main():
    rows = [r for r in csv.DictReader(open(HERE / "expected_decode.csv")) if r["workload.batch_size"] == "128"]
    parts = axes(sorted({int(r["parallelism.ep"]) for r in rows}))
    for who, color in LINES.items():
        parts += line([r for r in rows if (r["kernels"], r["precision.experts"]) == who], who, color)
    body = "\n".join(parts)
    (HERE / "decode.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12">\n<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n{body}\n</svg>\n')


if __name__ == "__main__":
    main()
