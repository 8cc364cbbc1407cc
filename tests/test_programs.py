"""The command `python -m tests.programs`: the list of programs, the comparison, and a run of one program."""

import importlib.metadata
import sys

import pytest

from tests.programs import results
from tests.programs.__main__ import main
from tests.programs.catalogue import chosen, programs
from tests.programs.comparison import difference
from tests.programs.environment import CONSTRAINTS
from tests.programs.running import EQUAL, run

HERE = [sys.executable, "-m", "adjoint", "run"]


def pinned():
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    return {line.partition("==")[0].lower().replace("_", "-").replace(".", "-") for line in lines}


def test_the_versions_of_all_libraries_are_fixed():
    required = {library.lower().replace("_", "-") for program in programs() for library in program.requires}
    assert required - pinned() == set()


def test_each_program_has_the_output_of_pytorch():
    assert [program.name for program in programs() if not program.expected.exists()] == []


def test_programs_that_do_not_run_have_a_reason():
    verdicts = results.read()
    assert {program.name for program in programs()} == set(verdicts)
    unexplained = [p.name for p in programs() if verdicts[p.name] != EQUAL and not p.stops]
    assert unexplained == []
    assert [p.name for p in programs() if verdicts[p.name] == EQUAL and p.stops] == []


def test_the_documentation_tells_the_results():
    text = results.PAGE.read_text(encoding="utf-8")
    assert results.page(text) == text


@pytest.mark.parametrize(
    ("theirs", "ours", "is_same"),
    [
        ("loss 0.1234", "loss 0.1235", True),
        ("loss 0.1234", "loss 0.1239", False),
        ("norm 1.234e+05:", "norm 1.2341e+05:", True),
        ("-0.000", "0.000", True),
        ("3 steps", "4 steps", False),
        ("a 1.0", "b 1.0", False),
        ("one\ntwo", "one", False),
        ("7e-11 left", "3e-12 left", True),
    ],
)
def test_outputs_are_compared_to_the_digits_printed(theirs, ours, is_same):
    assert (difference(theirs, ours) is None) is is_same


def installed(program):
    try:
        return all(importlib.metadata.version(name) for name in program.requires)
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.mark.thorough
def test_a_program_runs():
    (program,) = chosen(["plain_training"])
    status, printed, errors = run(program, HERE, 60)
    assert status == 0, errors
    assert difference(program.expected.read_text(encoding="utf-8"), printed) is None


@pytest.mark.thorough
@pytest.mark.parametrize("program", [p for p in programs() if installed(p) and not p.stops], ids=lambda p: p.name)
def test_programs_whose_libraries_are_here(program):
    status, printed, errors = run(program, HERE, 300)
    assert status == 0, errors
    assert difference(program.expected.read_text(encoding="utf-8"), printed) is None


def test_a_program_that_does_not_end_is_stopped():
    (program,) = chosen(["plain_training"])
    assert run(program, [sys.executable, "-c", "import time; time.sleep(60)"], 0.2)[0] is None


def test_the_command_lists_programs_and_refuses_unknown_names(capsys):
    assert main(["--list", "einops_layers"]) == 0
    assert capsys.readouterr().out.split()[:2] == ["einops_layers", "einops"]
    with pytest.raises(SystemExit):
        main(["no_such_program"])
    assert "there is no program 'no_such_program'" in capsys.readouterr().err
