"""The tests of tutorials and of threads pass with PyTorch itself, so their expectations are correct."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

TESTS = Path(__file__).parents[2]


def of_pytorch(name):
    """Return the tests of a module, with PyTorch in place of adjoint."""
    path = TESTS / name
    source = path.read_text(encoding="utf-8")
    for ours, theirs in (
        ("import adjoint as torch\n", "import torch\n"),
        ("from adjoint import nn\n", "from torch import nn\n"),
    ):
        assert ours in source
        source = source.replace(ours, theirs)
    names = {"__name__": f"{name} with PyTorch"}
    exec(compile(source, str(path), "exec"), names)
    return {name: value for name, value in names.items() if name.startswith("test_") or name == "eager_switching"}


# In these tests, PyTorch may hang, or its threads share a state that adjoint's threads do not share.
OURS = """
    test_an_error_in_one_thread_leaves_the_others_alone test_transforms_in_many_threads_do_not_mix
    test_choices_of_one_thread_do_not_reach_another test_a_trace_in_one_thread_leaves_the_modules_of_others_alone
    test_tracing_asks_for_attributes_of_its_own_thread_only
""".split()

globals().update(of_pytorch("autograd/test_tutorials.py"), **of_pytorch("autograd/test_threads.py"))
for each in OURS:
    del globals()[each]
