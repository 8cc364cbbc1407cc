"""Compare the type stubs with the package: `python scripts/check_stubs.py`.

`stubtest` of mypy imports the package, and compares the package with the stubs. This takes a minute or more. Only modules with
stubs are compared, because mypy checks the other modules. `ON_PURPOSE` lists the intended differences.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

STUBBED = re.compile(
    r"adjoint\.(\w+|(linalg|special|fft|nn\.functional|operators\.tensor_methods\.TensorMethods)\.[\w.]+) "
)
"""A line of the output about a name in a module with a stub."""

ON_PURPOSE = (
    (
        "should be positional-only",
        "",
        "five functions accept their argument only by position; the stubs also allow the name",
    ),
    (
        "runtime parameter",
        "has a default value but stub parameter does not",
        "a missing argument is refused in PyTorch's words",
    ),
    ("metaclass differs", "", "the older typed constructors are classes with a metaclass that the stubs omit"),
    ('stub does not have parameter "x"', "", "NumPy's names of arguments"),
    ('stub does not have parameter "axis"', "", "NumPy's names of arguments"),
    ("is not keyword-only", "", "the schema requires a keyword; the function also accepts a position"),
    ('runtime parameter "decimals"', "", "the function distinguishes a number from None"),
)
"""Two parts of a message, and the reason for the difference."""


def overloaded() -> set[str]:
    """Return the functions with several signatures, because stubtest expects one signature."""
    found = set()
    for path in (ROOT / "adjoint").rglob("*.pyi"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for indent, name in re.findall(r"@overload\n(\s*)def (\w+)", path.read_text(encoding="utf-8")):
            found.add(f"{module}.{'TensorMethods.' if indent else ''}{name}")
    return found


def differences() -> list[str]:
    """Return the output of stubtest for the modules with stubs."""
    configuration = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    quiet = 'disable_error_code = ["annotation-unchecked"]\n'  # stubtest counts mypy's notes as errors
    plugin = "scripts/mypy_declarations.py"
    text = configuration.replace("enable_error_code", f"{quiet}enable_error_code", 1).replace(
        plugin, str(ROOT / plugin)
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pyproject.toml"
        path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "mypy.stubtest", "adjoint", "--concise", "--ignore-missing-stub"]
        command += ["--ignore-disjoint-bases", "--mypy-config-file", str(path)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if "not checking stubs" in done.stdout or not done.stdout:
        return [done.stdout + done.stderr]
    return [line for line in done.stdout.splitlines() if STUBBED.match(line)]


def main() -> int:
    """Print the unintended differences, and return the exit status."""
    several = overloaded()
    found = [
        line
        for line in differences()
        if not any(start in line and end in line for start, end, _ in ON_PURPOSE)
        and not (" is inconsistent, " in line and line.split()[0] in several)
    ]
    print("\n".join(found) or "the stubs agree with the package")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
