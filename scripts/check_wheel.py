"""Check a wheel before it is published: `python scripts/check_wheel.py dist/*.whl`.

The wheel must contain exactly the files of `adjoint/` in this checkout, the stubs of `second_names.py`, and metadata.
The wheel must have at most 3 MB, and the installed files must have at most 10 MB.
"""

import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from second_names import stubs

ROOT = Path(__file__).parent.parent
LARGEST, LARGEST_INSTALLED = 3_000_000, 10_000_000


def source() -> dict[str, bytes]:
    """Return the files of the package in this checkout, and the additional stubs of a wheel, by name."""
    files = (path for path in (ROOT / "adjoint").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    found = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in files}
    return found | {name: text.encode() for name, text in stubs(ROOT).items()}


def faults(wheel: Path) -> list[str]:
    """Return the defects of a wheel, one per line."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name: archive.read(name) for name in archive.namelist()}
    held = {name: content for name, content in packed.items() if not name.split("/")[0].endswith(".dist-info")}
    written = source()
    found = [f"not in the source: {name}" for name in sorted(held.keys() - written.keys())]
    found += [f"not in the wheel: {name}" for name in sorted(written.keys() - held.keys())]
    found += [
        f"differs from the source: {name}"
        for name in sorted(held.keys() & written.keys())
        if held[name] != written[name]
    ]
    size, installed = wheel.stat().st_size, sum(map(len, packed.values()))
    print(f"{wheel.name}: {size:,} bytes; installed {installed:,} bytes in {len(packed)} files")
    if size > LARGEST:
        found.append(f"the wheel has more than {LARGEST:,} bytes")
    if installed > LARGEST_INSTALLED:
        found.append(f"what it installs has more than {LARGEST_INSTALLED:,} bytes")
    return found


if __name__ == "__main__":
    (named,) = sys.argv[1:]
    problems = faults(Path(named))
    print(*problems, sep="\n", end="\n" if problems else "")
    sys.exit(bool(problems))
