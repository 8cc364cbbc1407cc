"""`python -O` removes assert statements. Assert statements do not check arguments, so -O changes no errors."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import adjoint

PACKAGE = Path(adjoint.__file__).parent

MISTAKES = """
nn.Embedding(4, 3, padding_idx=4)
nn.Embedding(4, 3, padding_idx=-5)
nn.Embedding(4, 3, _weight=torch.ones(2, 2))
nn.Embedding.from_pretrained(torch.ones(2))
nn.EmbeddingBag(4, 3, padding_idx=9)
nn.EmbeddingBag(4, 3, _weight=torch.ones(2, 2))
nn.EmbeddingBag.from_pretrained(torch.ones(2))
nn.Hardtanh(1, -1)
nn.Hardtanh(1, 1)
nn.MultiheadAttention(5, 2)
nn.LSTM(2, 3, proj_size=3)
nn.GLU(0)(torch.ones(3))
F.embedding_bag(torch.tensor([1]), torch.ones(3, 3))
F.multi_head_attention_forward(q, q, q, 4, 1, None, None, None, None, False, 0.0, torch.ones(4, 4), None)
F.multi_head_attention_forward(q, q, q, 4, 1, *[None] * 4, False, 0.0, torch.ones(4, 4), None, use_separate_proj_weight=True)
hooked.load_state_dict(hooked.state_dict())
distributions.Wishart(torch.tensor(3.0))
constraints.independent(3, 1)
constraints.independent(constraints.real, 1.5)
constraints.independent(constraints.real, -1)
constraints.MixtureSameFamilyConstraint(3)
constraints.cat([3])
constraints.stack([3])
constraints.cat([constraints.real], lengths=[1, 2])
constraints.cat([constraints.real], dim=4).check(torch.ones(2))
constraints.stack([constraints.real], dim=4).check(torch.ones(2))
transforms.CatTransform([3])
transforms.StackTransform([3])
transforms.CatTransform([exp], lengths=[1, 2])
transforms.CatTransform([exp], dim=3)(torch.ones(2))
transforms.CatTransform([exp], lengths=[3])(torch.ones(2))
transforms.StackTransform([exp])(torch.ones(2))
replace(traced, lambda x: torch.relu(x), None)
replace(traced, lambda x: torch.relu(x), lambda x, y: torch.tanh(x) + y)
replace(traced, lambda x: torch.relu(x), lambda x: (torch.tanh(x), x))
replace(traced, lambda x: x, lambda x: x)
specialized(torch.ones(1), torch.ones(1))
""".strip().splitlines()  # fmt: skip

PROGRAM = f"""
import torch
import torch.nn as nn, torch.nn.functional as F, torch.distributions as distributions
from torch.distributions import constraints, transforms
from torch.fx import symbolic_trace
from torch.fx.subgraph_rewriter import replace_pattern_with_filters as replace

hooked, q, exp = nn.Linear(2, 2), torch.ones(2, 1, 4), transforms.ExpTransform()
hooked.register_load_state_dict_post_hook(lambda *_: 3)
traced = symbolic_trace(lambda x: torch.relu(x) + 1)
specialized = symbolic_trace(lambda x, y: x if y is None else y, concrete_args={{"y": None}})
for line in {MISTAKES!r}:
    try:
        eval(line)
    except Exception as error:
        print(type(error).__name__, error)
    else:
        print("accepted:", line)
"""


def _printed(tmp_path: Path, *python: str) -> list[str]:
    """Run all mistakes in a process, and return its output."""
    script = tmp_path / "mistakes.py"
    script.write_text(PROGRAM)
    ran = subprocess.run([sys.executable, *python, str(script)], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


@pytest.mark.thorough
def test_what_is_refused_is_refused_without_asserts(tmp_path: Path) -> None:
    run = ("-m", "adjoint", "run")
    printed = _printed(tmp_path, "-OO", *run)
    assert [line for line in printed if line.startswith("accepted")] == []
    assert printed == _printed(tmp_path, *run)


@pytest.mark.thorough
def test_what_is_refused_is_what_pytorch_refuses(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert _printed(tmp_path, "-O", "-m", "adjoint", "run") == _printed(tmp_path, "-O")


def _narrows_a_local(statement: ast.Assert, parameters: set[str]) -> bool:
    """Return whether an assert only declares the type of a local variable for type checkers."""
    test = statement.test
    if (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.IsNot)
        and ast.unparse(test.comparators[0]) == "None"
    ):
        subject = test.left
    elif isinstance(test, ast.Call) and ast.unparse(test.func) == "isinstance":
        subject = test.args[0]
    else:
        return False
    names = {node.id for node in ast.walk(subject) if isinstance(node, ast.Name)}
    return statement.msg is None and not names & parameters


def _checks(node: ast.AST, parameters: set[str]) -> list[int]:
    """Return the lines of asserts below a node, except asserts that only declare types."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        given = node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        parameters = parameters | {one.arg for one in every if one is not None} - {"self"}
    if isinstance(node, ast.Assert):
        return [] if _narrows_a_local(node, parameters) else [node.lineno]
    return [line for child in ast.iter_child_nodes(node) for line in _checks(child, parameters)]


@pytest.mark.thorough
def test_no_check_is_an_assert() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        if "assert " in (text := path.read_text())
        for line in _checks(ast.parse(text), set())
    ]
    assert found == []


def test_a_check_that_is_an_assert_is_found() -> None:
    checks = "def f(a):\n    assert a > 0\n    assert a is not None\n    b = g()\n    assert b is not None\n    assert b, 'b'\n"
    assert _checks(ast.parse(checks), set()) == [2, 3, 6]
