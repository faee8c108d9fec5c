"""Stretches with one winner, of the JSON of `moeline decide` on stdin: a line for each, with the margin at both ends."""
import json
import sys

text = sys.stdin.read()
if not text.startswith("{"):
    sys.exit("    " + text.strip())
answer = json.loads(text)


def ahead(margin):
    if margin["ratio"] is None:
        return "alone"
    return f"{100 * (margin['ratio'] - 1):.1f} %{'' if margin['sure'] else '?'} ahead"


stretches = []
for point, margin in zip(answer["points"], answer["margin"]):
    place = (point.get("beside"), point["winner"])
    if not stretches or stretches[-1][0] != place:
        stretches.append((place, []))
    stretches[-1][1].append((point["at"], margin))
for (beside, winner), points in stretches:
    (first, begin), (last, end) = points[0], points[-1]
    line = f"{answer['beside']} {beside}: " if beside else ""
    line += f"{first} to {last}: " if first != last else f"{first}: "
    line += winner or "nobody"
    if winner:
        line += ", " + ahead(begin) + (f" to {ahead(end)}" if first != last else "")
    print("    " + line)
