"""Compare the type stubs with the package: `python scripts/check_stubs.py`. It takes about a minute.

mypy's `stubtest` imports the package and compares what is there with what the stubs say. What differs on purpose is listed in
`scripts/stubs_allowed.txt`, by name; anything else is an error.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALLOWED = ROOT / "scripts" / "stubs_allowed.txt"


def main() -> int:
    """Run stubtest; return its exit code."""
    configuration = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    quiet = 'disable_error_code = ["annotation-unchecked"]\n'  # stubtest takes notes for errors
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pyproject.toml"
        text = configuration.replace("enable_error_code", f"{quiet}enable_error_code", 1)
        path.write_text(
            text.replace("scripts/mypy_declarations.py", str(ROOT / "scripts" / "mypy_declarations.py")),
            encoding="utf-8",
        )
        command = [sys.executable, "-m", "mypy.stubtest", "adjoint", "--concise", "--ignore-missing-stub"]
        command += ["--ignore-disjoint-bases", "--mypy-config-file", str(path)]
        if ALLOWED.exists():
            command += ["--allowlist", str(ALLOWED), "--ignore-unused-allowlist"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
