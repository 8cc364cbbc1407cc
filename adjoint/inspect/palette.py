"""The colours of the pictures, light and dark: one set of colours for tensors, and violet for gradients."""

COLOURS = {
    "page": ("#ffffff", "#10151c"),
    "desk": ("#f5f6f9", "#0b0f14"),
    "ink": ("#1d2430", "#e8edf4"),
    "soft": ("#647083", "#98a4b5"),
    "rule": ("#e2e6ec", "#28303b"),
    "line": ("#8d99aa", "#7f8b9c"),
    "back": ("#7a58c8", "#a78bf0"),
    "back-ink": ("#5f3fb0", "#bba6f5"),
    "pill": ("#2a3344", "#dce3ee"),
    "pill-ink": ("#ffffff", "#121820"),
    "leaf": ("#e9f7ee", "#12281c"),
    "leaf-line": ("#34a064", "#43b274"),
    "constant": ("#fff8df", "#2c2510"),
    "constant-line": ("#d3a21b", "#c79d2c"),
    "made": ("#eaf2fd", "#13233a"),
    "made-line": ("#4b88d8", "#5b96e4"),
    "node": ("#f4f2f9", "#1e1c2b"),
    "node-line": ("#9d93be", "#786da0"),
    "group-line": ("#8794a8", "#6d7a8d"),
    "frame": ("#f3f5f980", "#151b2480"),
    "stale": ("#c92a2a", "#ff7b72"),
    "hook": ("#b65c00", "#f0a24b"),
    "focus": ("#1f6feb", "#58a6ff"),
    "chosen": ("#e4eefd", "#142a46"),
    "anchor": ("#1a5fc4", "#79b4ff"),
    "lit": ("#e8710a", "#ff9d3c"),
    "lit-fill": ("#fff1e2", "#3a2410"),
    "lit-ink": ("#8f3f00", "#ffc48a"),
}


def variables() -> str:
    """Return the colours as CSS variables for a page, in the reader's colour scheme or in the scheme of `data-theme`."""
    light = "".join(f"--{name}:{day};" for name, (day, _) in COLOURS.items())
    dark = "".join(f"--{name}:{night};" for name, (_, night) in COLOURS.items())
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}\n"
    )
