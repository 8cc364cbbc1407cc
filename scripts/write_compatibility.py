"""Write docs/compatibility.md: which of PyTorch's public names this package has, and why the others are missing.

The names are those of `adjoint/pytorch_names.txt`, which `scripts/list_pytorch_names.py` writes. PyTorch is not needed.
"""

from __future__ import annotations

import importlib
import warnings
from collections import defaultdict
from pathlib import Path

from adjoint.absent import is_absent
from adjoint.missing import pytorch_names, reason

TARGET = Path(__file__).parents[1] / "docs" / "compatibility.md"

HEAD = """# Compatibility

Which of PyTorch's public names there are, by module: counted, and those that are missing with the reason. `adjoint run
SCRIPT` runs a program written for PyTorch; a name that is missing says so when the program uses it.

`python scripts/write_compatibility.py` writes this page; a test checks that it is true.

| module | there | missing |
|---|---|---|
"""


def owner_of(module: str) -> object:
    """Our module, or class, of PyTorch's name; None if there is none."""
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
    """Whether a name exists and is not a stand-in."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return not is_absent(getattr(owner, name))
        except ModuleNotFoundError as error:  # of a package that the name is from, which is not installed here
            return (error.name or "").partition(".")[0] not in ("", "adjoint")
        except (AttributeError, ImportError, NotImplementedError):
            return False
        except Exception:  # noqa: BLE001  (a property of tensors, asked of the class)
            return True


def page() -> str:
    """The text of the page."""
    rows, details = [], []
    for module, names in pytorch_names().items():
        owner = owner_of(module)
        missing: dict[str, list[str]] = defaultdict(list)
        for name in sorted(names):
            if owner is None or not is_there(owner, name):
                missing[reason(f"{module}.{name}")].append(name)
        count = sum(map(len, missing.values()))
        rows.append(f"| `{module}` | {len(names) - count} of {len(names)} | {count or ''} |")
        if not missing or module == "torch.ops.aten":
            continue
        details.append(f"\n## {module}\n")
        for why, absent_names in sorted(missing.items()):
            details.append(f"- Because {why}: {', '.join(f'`{name}`' for name in absent_names)}.")
    return HEAD + "\n".join([*rows, *details]) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
