"""The description of the system for bug reports has PyTorch's form.

`adjoint.utils.collect_env` prints it, also under PyTorch's name.
"""

import subprocess
import sys

import pytest

from adjoint.utils import collect_env


@pytest.mark.thorough
@pytest.mark.parametrize(
    "command", [("-m", "adjoint", "run", "-m", "torch.utils.collect_env"), ("-m", "adjoint.utils.collect_env")]
)
def test_the_command_shows_the_system(command):
    shown = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("Collecting environment information...\nPyTorch version: ")
    assert "numpy==" in shown


def test_names_and_headings_are_pytorchs():
    torch = pytest.importorskip("torch")
    from torch.utils import collect_env as theirs

    assert torch is not None
    assert collect_env.SystemEnv._fields == theirs.SystemEnv._fields

    def headings(text):
        return [line.partition(":")[0] for line in text.splitlines() if "{" in line or line.endswith(":")]

    assert headings(collect_env.env_info_fmt) == headings(theirs.env_info_fmt.strip())


def test_commands_that_fail_give_nothing():
    assert collect_env.run(["no-such-command-at-all"])[0] == 127
    assert collect_env.run_and_read_all(collect_env.run, [sys.executable, "-c", "raise SystemExit(3)"]) is None
    assert collect_env.run_and_return_first_line(collect_env.run, [sys.executable, "-c", "print('a\\nb')"]) == "a"
    assert collect_env.run_and_parse_first_match(collect_env.run, [sys.executable, "-V"], r"Python (\d)") == "3"
