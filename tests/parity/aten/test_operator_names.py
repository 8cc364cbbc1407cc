"""The operators that a `TorchDispatchMode` receives in calls and in backward, for one sample of each of PyTorch's operators.

All of them are operators of PyTorch's dispatcher. They are the same operators as in PyTorch, except for the functions in
`other_operators.txt`. The mode changes neither results nor gradients.
"""

from contextlib import nullcontext
from pathlib import Path

import pytest

import adjoint

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode as TheirMode

from adjoint.utils._python_dispatch import TorchDispatchMode as OurMode
from tests.parity import samples
from tests.parity.candidate import seed

LEFT_OUT = frozenset("detach alias lift_fresh clone".split())
"""Aliases of saved values and of gradients, and data that becomes a tensor."""

UNRELATED = frozenset(("zero_", "normal", "rand_like", "randn_like", *samples.UNINITIALISED))
"""Functions whose samples change leaves, or whose results are random or not initialized."""


def listed():
    """Return the functions that consist of other operators, with the reasons."""
    reasons, reason = {}, ""
    for line in Path(__file__).with_name("other_operators.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            reason = line[2:]
        else:
            reasons.update(dict.fromkeys(line.split(), reason))
    return reasons


OTHER = listed()


def dtype_of(op):
    accepted = samples.dtypes(op)
    return torch.float64 if torch.float64 in accepted else accepted[0]


def recorder(mode, names):
    class Recorder(mode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            name = str(func).removeprefix("aten.")
            if name.partition(".")[0] not in LEFT_OUT:
                names.add(name)
            return func(*args, **(kwargs or {}))

    return Recorder()


def tensors_in(value, library):
    leaves = library.utils._pytree.tree_leaves(value)
    return [each for each in leaves if isinstance(each, library.Tensor)]


def run(op, library, mode, sample):
    """Return the names of the operators in a mode, or None without a mode, with the results and the gradients."""
    seed(library, 0)
    args, keywords, inputs = sample.build(library)
    names = None if mode is None else set()
    watched = nullcontext() if mode is None else recorder(mode, names)
    with watched:
        results = tensors_in(samples.function(op, library)(*args, **keywords), library)
    roots = [each for each in results if each.grad_fn is not None]
    leaves = [each for each in inputs if each.requires_grad]
    gradients = []
    if roots and leaves:
        grads = [library.linspace(0.5, 1.5, each.numel()).to(each.dtype).reshape(each.shape) for each in roots]
        with nullcontext() if mode is None else recorder(mode, names):
            gradients = library.autograd.grad(roots, leaves, grads, allow_unused=True)
    return names, results, gradients


def first_sample(op):
    derived = op.supports_autograd and dtype_of(op).is_floating_point
    return next(iter(samples.samples(op, dtype_of(op), 1, requires_grad=derived)), None)


NAMES = sorted(name for name, op in samples.operators().items() if op.name not in UNRELATED)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_modes_receive_pytorchs_operators(name):
    op = samples.operators()[name]
    sample = first_sample(op)
    if sample is None:
        pytest.skip("no sample with few elements")
    try:
        theirs = run(op, torch, TheirMode, sample)[0]
    except (RuntimeError, TypeError):
        pytest.skip("PyTorch refuses the sample")
    names, results, gradients = run(op, adjoint, OurMode, sample)
    unknown = {each for each in names if each.rpartition(".")[2] not in overloads(each.rpartition(".")[0])}
    assert not unknown, f"not operators of PyTorch: {sorted(unknown)}"
    if name in OTHER:
        assert names != theirs, f"{name} consists of the same operators: remove it from other_operators.txt"
    else:
        assert names == theirs, f"without {sorted(theirs - names)}, with {sorted(names - theirs)}"
    for found, expected in zip((*results, *gradients), values_without_mode(op, sample), strict=True):
        adjoint.testing.assert_close(found, expected, rtol=1e-7, atol=1e-9, equal_nan=True)


def overloads(packet):
    found = getattr(torch.ops.aten, packet, None)
    return [] if found is None else found.overloads()


def values_without_mode(op, sample):
    _, results, gradients = run(op, adjoint, None, sample)
    return *results, *gradients
