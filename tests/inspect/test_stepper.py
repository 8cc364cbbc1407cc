"""The stepper for a backward, with commands from a string instead of a terminal."""

import builtins
import io
import re

import numpy
import pytest

import adjoint as torch
from adjoint.inspect import step


@pytest.fixture
def leaves():
    return torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)


def go(leaves, commands):
    """Step through the backward of `(w * exp(v)).sum()`, and return the output."""
    w, v = leaves
    w.grad = v.grad = None
    e = v.exp()
    y = w * e
    output = io.StringIO()
    trace = step(y.sum(), params={"w": w, "v": v}, commands=io.StringIO(commands), output=output)
    assert [numpy.array_equal(w.grad._array, e._array), numpy.array_equal(v.grad._array, y._array)] == [True, True]
    assert len(trace.steps) == 5
    return output.getvalue()


LINE = next(line for _, _, line in go.__code__.co_lines() if line and line > go.__code__.co_firstlineno + 3)


def stops(text):
    """Return the nodes before which the stepper stopped, in order."""
    found, node = [], None
    for line in text.splitlines():
        if re.match(r"\w+ n\d+  ", line):
            node = line.split()[0]
        if line.startswith("(step) ") and (not found or found[-1] is not node):
            found.append(node)
    return found


def test_the_command_next(leaves):
    text = go(leaves, "n\n\nn\nn\nn\n")
    assert stops(text) == ["SumBackward0", "MulBackward0", "AccumulateGrad", "ExpBackward0", "AccumulateGrad"]
    assert "arrives: [1, 1]" in text
    assert "→ w (self)  [20.09, 54.6]" in text
    assert "w.grad = [20.09, 54.6]" in text
    assert "freed " in text
    assert "y = w * e" in text


def test_continue_and_the_end_of_the_commands(leaves):
    assert stops(go(leaves, "c\n")) == ["SumBackward0"]
    assert stops(go(leaves, "")) == ["SumBackward0"]
    assert stops(go(leaves, "n\nq\n")) == ["SumBackward0", "MulBackward0"]


@pytest.mark.parametrize(
    ("words", "node"),
    [
        ("ExpBackward0", "ExpBackward0"),
        ("n2", "ExpBackward0"),
        ("v", "AccumulateGrad"),
        (f"test_stepper.py:{LINE}", "ExpBackward0"),
    ],
)
def test_breakpoints(leaves, words, node):
    assert stops(go(leaves, f"b {words}\nc\nc\n")) == ["SumBackward0", node]


def test_breakpoints_are_listed_and_checked(leaves):
    text = go(leaves, "b\nb MulBackward0\nb\nb Nonsense\nc\nq\n")
    assert "no breakpoints" in text
    assert "Nonsense: no such node" in text
    assert stops(text) == ["SumBackward0", "MulBackward0"]


def test_print(leaves):
    text = go(leaves, "n\np\np ExpBackward0\np w\np Nonsense\nn\nn\np w\nc\n")
    assert "gradient of output 0: tensor([1., 1.])" in text
    assert "saved other: float32[2] [20.09, 54.6] (ok)" in text
    assert "def grad_self(grad, result):" in text
    assert "Nonsense: no such node" in text
    assert text.count("w.grad = [20.09, 54.6]") == 2


def test_help_and_unknown_commands(leaves):
    text = go(leaves, "h\nwhat\nc\n")
    assert "b NODE" in text
    assert "what: no such command; h for help" in text


def test_in_a_terminal(leaves, monkeypatch, capsys):
    answers = iter(["n", "c"])
    prompts = []

    def answer(prompt):
        prompts.append(prompt)
        return next(answers)

    monkeypatch.setattr(builtins, "input", answer)
    w, v = leaves
    step((w * v).sum())
    assert prompts == ["(step) "] * 2
    assert "MulBackward0" in capsys.readouterr().out


def test_interruption_leaves_nothing_behind(leaves, monkeypatch):
    def interrupt(prompt):
        raise KeyboardInterrupt

    monkeypatch.setattr(builtins, "input", interrupt)
    w, v = leaves
    loss = (w * v).sum()
    with pytest.raises(KeyboardInterrupt):
        step(loss, output=io.StringIO())
    loss.backward()
    assert numpy.array_equal(w.grad._array, v._array)
