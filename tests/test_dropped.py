"""What a program drops is freed, and what it leaves open is finished at exit: the library keeps nothing of it.

The library has many tables for the whole process. None of them may hold what is the user's: globals, code, frames, tensors,
functions, classes. Each program of `dropped_programs` runs in globals of its own, which are dropped then.
"""

import gc
import subprocess
import sys
import textwrap
import warnings
import weakref

import pytest

import adjoint as torch
from tests.dropped_programs import PERMANENT, SIMPLE, WITH_CYCLES
from tests.mistakes import MISTAKES, SETUP


class Large:
    """Stands in the globals of a program for all that they hold."""


def run(name, source):
    """Run a program, drop its globals, and return weak references to what it has made, by name."""
    code = compile(textwrap.dedent(source), f"<{name}>", "exec")
    own = {"__name__": "dropped", "torch": torch, "large": Large()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(code, own)
    found = {"code": weakref.ref(code)}
    for name, value in own.items():
        own_kind = getattr(value, "__module__", None) == "dropped" and type(value).__weakrefoffset__
        if own_kind or isinstance(value, (Large, torch.Tensor, torch.nn.Module)):
            found[name] = weakref.ref(value)
    return found


def alive(references):
    return [name for name, reference in references.items() if reference() is not None]


@pytest.fixture(autouse=True)
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("name", SIMPLE)
def test_reference_counting_frees_a_dropped_program(name):
    assert alive(run(name, SIMPLE[name])) == []


@pytest.mark.parametrize("name", WITH_CYCLES)
def test_a_dropped_program_with_functions_and_classes_is_freed(name):
    if name == "onnx":
        pytest.importorskip("onnx")
    made = run(name, WITH_CYCLES[name])
    gc.collect()
    assert alive(made) == []


@pytest.mark.parametrize("name", PERMANENT)
def test_what_is_registered_for_ever_stays(name):
    made = run(name, PERMANENT[name])
    gc.collect()
    assert "large" in alive(made)


@pytest.mark.thorough
def test_an_error_that_has_been_caught_keeps_no_frame():
    own = {"torch": torch, "Large": Large, "reference": weakref.ref}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(SETUP, own)
        for mistake in MISTAKES:
            lines = [
                "large = Large()",
                "seen = reference(large)",
                f"try: {mistake}",
                "except Exception: pass",
                "return seen",
            ]
            try:
                exec("def run():\n" + textwrap.indent("\n".join(lines), "    "), own)
            except SyntaxError:  # a mistake of several lines
                continue
            assert own["run"]()() is None, mistake


ENDING = """
import os, warnings
import adjoint as torch
class Last:
    def __del__(self):
        os.write(1, b"finalised ")
last = Last()
warnings.simplefilter("ignore")
out = os.fdopen(os.dup(1), "w")
if __name__ == "__main__":
{program}
    out.write("written")
"""

PROGRAMS = SIMPLE | WITH_CYCLES | PERMANENT


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if number % 120 == 0 else pytest.mark.thorough)
        for number, name in enumerate(PROGRAMS)
    ],
)
def test_at_exit_everything_is_finalised_and_written(name):
    program = ENDING.format(program=textwrap.indent(textwrap.dedent(PROGRAMS[name]), "    "))
    if name == "onnx":
        pytest.importorskip("onnx")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    kept = name in PERMANENT  # a registration may keep the program's globals, as PyTorch's does
    assert ("written" in ended.stdout, kept or "finalised" in ended.stdout) == (True, True), ended.stderr
