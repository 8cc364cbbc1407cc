"""Write docs/compatibility.md: the public PyTorch names that this package has, and the reason for each missing name.

The script also writes `adjoint/torch_names/missing_names.txt`, which the package searches for missing names. The names
come from `scripts/pytorch_names.txt`, which `scripts/list_pytorch_names.py` writes. PyTorch is not needed.
"""

from __future__ import annotations

import importlib
import warnings
from collections import defaultdict
from functools import cache
from pathlib import Path

from adjoint._runtime.absent import is_absent
from adjoint.missing import names_in, reason

NAMES = Path(__file__).with_name("pytorch_names.txt")
TARGET = Path(__file__).parents[1] / "docs" / "compatibility.md"
EXPLAINED = {
    f"torch{name}"
    for name in " .accelerator .cuda .distributed .fft .linalg .mps .mtia .sparse .special .xpu".split(" ")
}
"""The modules that call `adjoint.missing.stand_in`."""

OTHER_REASONS = (
    (
        r"torch\.Tensor\.(xpu|mtia|ipu|hpu|is_\w*(xpu|mtia|ipu|hpu|xla|vulkan|maia)|record_stream)",
        "there is only the CPU",
    ),
    (r"torch\.nn\.Module\.(xpu|mtia|ipu)", "there is only the CPU"),
    (r"torch\.Tensor\.to_mkldnn", "it names a library that is not used"),
    (r"torch\.Tensor\.to_padded_tensor", "there are no nested tensors"),
    (r"torch\.onnx\b.*", "it belongs to PyTorch's older exporter, or to its own machinery"),
    (r"torch\.jit\..*", "there is no TorchScript; functions run as they are"),
    (
        r"torch\.utils\.(ThroughputBenchmark|throughput_\w+|cpp\w*|get_cpp\w*|rename_priv\w*|generate_methods\w*|backend_reg\w*)",
        "there is no compiled part",
    ),
    (
        r"torch\.utils\.data\.(DF|Iter|Map|functional|guar|non_|runtime|argument|data|datapipes|graph).*",
        "there are no data pipes; use `Dataset`",
    ),
)
"""Reasons for missing names, in the form of `adjoint.missing`, for modules without stand-ins."""

MISSING = Path(__file__).parents[1] / "adjoint" / "torch_names" / "missing_names.txt"

HEAD = """# Compatibility

This page counts PyTorch's public names by module, and lists the missing names with the reason. `adjoint run SCRIPT` runs a
program written for PyTorch. A missing name raises an error when the program uses it.

`python scripts/write_compatibility.py` writes this page, and a test checks it.

| module | available | missing |
|---|---|---|
"""


def owner_of(module: str) -> object:
    """Return this package's module or class with PyTorch's name, or None."""
    own = f"adjoint{module.removeprefix('torch')}"
    try:
        return importlib.import_module(own)
    except ImportError:
        parent, _, last = own.rpartition(".")
        try:
            return getattr(importlib.import_module(parent), last, None)
        except ImportError:
            return None


def is_there(owner: object, name: str) -> bool:
    """Return whether a name exists and is not a stand-in."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return not is_absent(getattr(owner, name))
        except ModuleNotFoundError as error:  # the name comes from a package that is not installed
            return (error.name or "").partition(".")[0] not in ("", "adjoint")
        except (AttributeError, ImportError, NotImplementedError):
            return False
        except Exception:  # noqa: BLE001  (some class attributes raise errors)
            return True


@cache
def missing_names() -> dict[str, list[str]]:
    """Return the missing names, by module."""
    return {
        module: sorted(name for name in names if (owner := owner_of(module)) is None or not is_there(owner, name))
        for module, names in names_in(NAMES).items()
    }


def page() -> str:
    """Return the text of the page."""
    rows, details = [], []
    for module, names in names_in(NAMES).items():
        missing: dict[str, list[str]] = defaultdict(list)
        for name in missing_names()[module]:
            missing[reason(f"{module}.{name}", OTHER_REASONS)].append(name)
        count = sum(map(len, missing.values()))
        rows.append(f"| `{module}` | {len(names) - count} of {len(names)} | {count or ''} |")
        if not missing or module == "torch.ops.aten":
            continue
        details.append(f"\n## {module}\n\n| reason | missing names |\n|---|---|")
        for why, absent_names in sorted(missing.items()):
            details.append(f"| {why} | {', '.join(f'`{name}`' for name in absent_names)} |")
    return HEAD + "\n".join([*rows, *details]) + "\n"


def listed() -> str:
    """Return the text of `missing_names.txt`: the missing names of modules with stand-ins, and all dispatcher operators."""
    version, *lines = NAMES.read_text(encoding="utf-8").splitlines()
    operators = [line for line in lines if line.startswith("torch.ops.aten:")]
    found = [f"{module}: {' '.join(names)}" for module, names in missing_names().items() if module in EXPLAINED]
    return "\n".join([version, *found, *operators]) + "\n"


if __name__ == "__main__":
    MISSING.write_text(listed(), encoding="utf-8")
    TARGET.write_text(page(), encoding="utf-8")
