"""A mode receives an operator for each call of a public function or method for which PyTorch's modes receive one."""

import pytest

import adjoint

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode as TheirMode

from adjoint.utils._python_dispatch import TorchDispatchMode as OurMode
from tests import public_calls

UNSEEN = frozenset(
    """
    combinations dense_dim Tensor.dense_dim from_dlpack nn.functional.dropout3d Tensor.is_set_to Tensor.new Tensor.numpy
    Tensor.sparse_dim
    """.split()
)
"""Functions that return numbers, NumPy arrays or uninitialized memory, and calls without any element."""

NAMES = [
    name
    for name in public_calls.public_functions(adjoint)
    if name not in UNSEEN and callable(public_calls.found_in(torch, name))
]


def seen(library, mode, name, call):
    """Return the names of the operators that a mode receives during a call, or None if the call is an error."""
    names = []

    class Recorder(mode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    arguments = public_calls.arguments_of(library, call)
    try:
        with Recorder():
            public_calls.module_of(library, name)(*arguments)
    except Exception:
        return None
    return [each for each in names if not each.startswith("aten.lift_fresh")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_modes_receive_an_operator_where_pytorch_shows_one(name):
    hidden = []
    for call in public_calls.CALLS:
        theirs = seen(torch, TheirMode, name, call)
        if theirs and seen(adjoint, OurMode, name, call) == []:
            hidden.append((call, theirs))
    assert not hidden
