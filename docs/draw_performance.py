"""Draw docs/performance.svg from the figures of a run of the benchmarks.

python -m benchmarks --groups models,kernels,overhead --quick --json docs/reference/benchmarks.json
python docs/draw_performance.py
"""

import html
import json
import math
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
FIGURES = HERE / "reference" / "benchmarks.json"
TARGET = HERE / "performance.svg"

ROW, LEFT, WIDTH, LEAST, MOST = 22, 490, 920, 0.25, 2.0


def place(ratio: float) -> float:
    """Return the position of a ratio on the logarithmic axis."""
    share = math.log(min(max(ratio, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return LEFT + share * (WIDTH - LEFT - 60)


def rows(results: list[dict[str, Any]]) -> list[tuple[str, float, float, float]]:
    """Return the name, ratio and quartiles of each training step, and the medians of the other groups."""
    shown = [
        (row["case"], row["ratio"], row["ratio_low"], row["ratio_high"]) for row in results if row["group"] == "models"
    ]
    shown.sort(key=lambda row: row[1])
    for group, title in (("overhead", "calls on small tensors"), ("kernels", "kernels")):
        ratios = sorted(row["ratio"] for row in results if row["group"] == group)
        if ratios:
            quarter = len(ratios) // 4
            shown.append((f"{title}: median of {len(ratios)}", median(ratios), ratios[quarter], ratios[-quarter - 1]))
    return shown


def picture(figures: dict[str, Any]) -> str:
    """Draw a dot for each ratio, and a line from quartile to quartile."""
    shown = rows(figures["results"])
    height = 58 + ROW * len(shown)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height + 30}"',
        'font-family="system-ui, sans-serif" font-size="13">',
        "<title>Time of adjoint divided by that of PyTorch</title>",
        "<style>text { fill: #3b4048; } .axis { stroke: #9aa0a8; }",
        "@media (prefers-color-scheme: dark) { text { fill: #c9d1d9; } }</style>",
        f'<text x="{LEFT}" y="18" font-weight="600">time of adjoint / time of PyTorch; left of 1 adjoint is faster</text>',
    ]
    for tick in (0.25, 0.5, 0.75, 1.0, 1.5, 2.0):
        line = 'stroke-width="1.5"' if tick == 1 else 'stroke-dasharray="2 4"'
        parts.append(f'<line class="axis" x1="{place(tick):.1f}" x2="{place(tick):.1f}" y1="46" y2="{height}" {line}/>')
        parts.append(f'<text x="{place(tick):.1f}" y="38" text-anchor="middle" font-size="11">{tick:g}</text>')
    for number, (name, ratio, low, high) in enumerate(shown):
        y = 60 + ROW * number
        colour = "#2f6db3" if ratio <= 1 else "#e07b39"
        parts += [
            f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{html.escape(name)}</text>',
            f'<line x1="{place(low):.1f}" x2="{place(high):.1f}" y1="{y}" y2="{y}"',
            f'stroke="{colour}" stroke-width="3" opacity="0.4"/>',
            f'<circle cx="{place(ratio):.1f}" cy="{y}" r="5" fill="{colour}"/>',
            f'<text x="{WIDTH - 8}" y="{y + 4}" text-anchor="end">{ratio:.2f}</text>',
        ]
    about = figures["machine"]
    described = f"{about['processor']}, {about['threads']} threads, {about['compiled kernels'].split(',')[0]}; "
    described += (
        f"Python {about['python']}, NumPy {about['numpy']}, PyTorch {about['torch']}. Dots: medians; lines: quartiles."
    )
    parts.append(f'<text x="8" y="{height + 22}" font-size="11">{html.escape(described)}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    TARGET.write_text(picture(json.loads(FIGURES.read_text(encoding="utf-8"))), encoding="utf-8")
