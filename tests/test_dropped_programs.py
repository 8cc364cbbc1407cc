"""Objects that a program drops are freed, and unfinished work ends at exit.

The library has many tables that live as long as the process. None of the tables may keep the user's objects alive: globals, code,
frames, tensors, functions, classes. Each program of `dropped_programs` runs in separate globals, which are dropped afterwards.
"""

import gc
import importlib.util
import json
import linecache
import subprocess
import sys
import textwrap
import warnings
import weakref

import pytest

import adjoint as torch
from tests.dropped_programs import PERMANENT, SIMPLE, WITH_CYCLES
from tests.typical_mistakes import MISTAKES, SETUP


class Large:
    """An object in the globals of a program. When this object is freed, the globals have been freed."""


def run(name, source):
    """Run a program, drop its globals, and return weak references to its objects, by name."""
    lines = textwrap.dedent(source).strip().splitlines(keepends=True)
    linecache.cache[f"<{name}>"] = (
        len(source),
        None,
        lines,
        f"<{name}>",
    )  # as in cells of notebooks: `compile` reads the source
    code = compile("".join(lines), f"<{name}>", "exec")
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
            except SyntaxError:  # the mistake has several lines
                continue
            assert own["run"]()() is None, mistake


PROGRAMS = SIMPLE | WITH_CYCLES | PERMANENT

TO_THEIR_END = """
import json, linecache, os, sys, types, warnings
import adjoint

class Last:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        os.write(1, f"finalised {self.name}\\n".encode())

warnings.simplefilter("ignore")
for name, program in json.load(sys.stdin).items():
    module = sys.modules[f"program {name}"] = types.ModuleType("__main__")
    module.__dict__.update(torch=adjoint, last=Last(name), large=object(), out=os.fdopen(os.dup(1), "w"))
    linecache.cache[f"<{name}>"] = (len(program), None, program.splitlines(keepends=True), name)
    exec(compile(program, f"<{name}>", "exec"), module.__dict__)
    module.out.write(f"written {name}\\n")
    del module
"""
"""Run programs, each in a separate module, and exit."""


@pytest.mark.parametrize(
    "names",
    [[*SIMPLE][:2]]
    + [
        pytest.param(names, marks=pytest.mark.thorough)
        for kind in (SIMPLE, WITH_CYCLES, PERMANENT)
        for names in [[*kind][first::4] for first in range(4)]
    ],
)
def test_at_exit_everything_is_finalised_and_written(names):
    programs = {
        name: textwrap.dedent(PROGRAMS[name]) for name in names if name != "onnx" or importlib.util.find_spec("onnx")
    }
    command = [sys.executable, "-c", TO_THEIR_END]
    ended = subprocess.run(command, input=json.dumps(programs), capture_output=True, text=True, check=True)
    said = ended.stdout.splitlines()
    assert [name for name in programs if f"written {name}" not in said] == [], ended.stderr
    kept = [name for name in programs if f"finalised {name}" not in said]
    assert all(name in PERMANENT for name in kept), (kept, ended.stderr)  # registrations keep globals, as in PyTorch
