#!/usr/bin/env bash
# Draws the first two layers of the chunk, overlapped and sequential on one time scale, as timeline.svg.
# Colours as in the papers: forward orange, backward green, weight gradients blue; communication paler.
set -euo pipefail
cd "$(dirname "$0")/../.."
scenario=experiments/train_chunk_deepseek_v3_h800/scenario.yaml
two_layers='routing={distribution: balanced}'
phases() {
  build/release/moeline simulate "$scenario" --set layers=2 --set "$two_layers" --set "schedule=$1" --format csv \
    2>/dev/null | sed "s/^/$1,/"
}
{ phases dualpipe-chunk; phases sequential; } | awk -F, '
  BEGIN { left = 150; scale = 1050 / 90000; height = 26 }
  $2 == "rank" { next }
  {
    communication = $6 == 27
    y = 40 + ($1 == "sequential" ? 110 : 0) + (communication ? height + 6 : 0)
    kind = substr($5, length($5) - 1, 1)
    colour = kind == "F" ? (communication ? "#ffd9a8" : "#f5a742") : kind == "B" ? (communication ? "#bfe3bf" : "#63b463") : "#6aa5dc"
    x = left + $7 * scale; width = ($8 - $7) * scale
    end = x + width > end ? x + width : end
    bars = bars sprintf("<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\" stroke=\"#555\" stroke-width=\"0.5\"><title>%s, layer %d: %.0f us</title></rect>\n", x, y, width, height, colour, $5, $4, $8 - $7)
    size = width > 60 ? 11 : width / 6
    if (width > 24) bars = bars sprintf("<text x=\"%.1f\" y=\"%d\" font-size=\"%.1f\" text-anchor=\"middle\">%s</text>\n", x + width / 2, y + 17, size, $5)
  }
  END {
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"240\" font-family=\"sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", end + 20
    names[0] = "overlapped"; names[1] = "sequential"
    for (i = 0; i < 2; ++i) {
      printf "<text x=\"8\" y=\"%d\" font-size=\"13\" font-weight=\"bold\">%s</text>\n", 30 + 110 * i, names[i]
      printf "<text x=\"%d\" y=\"%d\" font-size=\"12\" text-anchor=\"end\">compute</text>\n", left - 8, 58 + 110 * i
      printf "<text x=\"%d\" y=\"%d\" font-size=\"12\" text-anchor=\"end\">communication</text>\n", left - 8, 90 + 110 * i
    }
    printf "%s", bars
    for (ms = 0; ms <= 90; ms += 10) if (left + ms * 1000 * scale < end + 10) printf "<text x=\"%.1f\" y=\"232\" font-size=\"11\" text-anchor=\"middle\">%d ms</text>\n", left + ms * 1000 * scale, ms
    print "</svg>"
  }' >experiments/train_chunk_deepseek_v3_h800/timeline.svg
