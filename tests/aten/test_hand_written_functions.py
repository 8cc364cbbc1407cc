"""Modes and classes receive functions written by hand as PyTorch's operators. They change neither results nor histories."""

import pytest

import adjoint as torch
from adjoint.utils._python_dispatch import TorchDispatchMode

CHANGES = {
    "uniform_": lambda x: x.uniform_(1, 2),
    "bernoulli_": lambda x: x.bernoulli_(0.3),
    "random_": lambda x: x.random_(3),
    "normal_": lambda x: x.normal_(),
    "set_": lambda x: x.set_(torch.ones(3)),
    "set_ to a recorded tensor": lambda x: torch.ones(3).set_(x),
}


class Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func).removeprefix("aten."))
        return func(*args, **(kwargs or {}))


class Wrapper(torch.Tensor):
    names = []

    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.names.append(str(func).removeprefix("aten."))
        unwrapped = [each.inner if isinstance(each, Wrapper) else each for each in args]
        return Wrapper(func(*unwrapped, **(kwargs or {})))


@pytest.mark.parametrize("name", CHANGES)
def test_changes_under_a_mode_are_recorded(name):
    changed = CHANGES[name]((torch.ones(3, requires_grad=True)) * 2)
    with Recorder():
        found = CHANGES[name]((torch.ones(3, requires_grad=True)) * 2)
    assert found.grad_fn.name() == changed.grad_fn.name()


def test_random_numbers_under_a_mode_end_gradients():
    x = torch.ones(3, requires_grad=True)
    with Recorder():
        y = (x * 2).uniform_()
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [0, 0, 0]


def test_errors_under_a_mode_are_those_without():
    with Recorder() as mode:
        with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
            torch.ones(3, requires_grad=True).resize_(2)
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            torch.ones(3, requires_grad=True).set_(torch.ones(3))
        with pytest.raises(RuntimeError, match="not supported for conjugate view"):
            torch.ones(3, dtype=torch.complex64).conj().view(torch.float32)
    assert not [each for each in mode.names if each.startswith(("resize_", "set_"))]


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x.view(torch.int32), "view.dtype"),
        (lambda x: x.resize_as_(torch.ones(3)), "resize_as_.default"),
        (lambda x: torch.ones(1).new_tensor(x), "_to_copy.default"),
        (lambda x: torch.randint_like(x, 3), "randint_like.default"),
        (lambda x: torch.randint_like(x, 2, 3), "randint_like.low_dtype"),
        (lambda x: x.uniform_(True), "uniform_.default"),
    ],
)
def test_modes_and_classes_receive_the_operator(function, expected):
    with Recorder() as mode:
        function(torch.ones(2, 3))
    assert expected in mode.names
    Wrapper.names.clear()
    function(Wrapper(torch.ones(2, 3)))
    assert expected in Wrapper.names


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x.resize_(1), "resize_.default"),
        (lambda x: x.set_(), "set_.default"),
        (lambda x: x.set_(torch.ones(2)), "set_.source_Tensor"),
        (lambda x: x.set_(torch.ones(2).untyped_storage()), "set_.source_Storage"),
        (lambda x: x.set_(torch.ones(2), 1, (1,)), "set_.source_Tensor_storage_offset"),
        (lambda x: x.set_(torch.ones(2).untyped_storage(), 1, (1,)), "set_.source_Storage_storage_offset"),
    ],
)
def test_modes_receive_changes_of_memory(function, expected):
    x, y = torch.zeros(3), torch.zeros(3)
    with Recorder() as mode:
        function(x)
    function(y)
    assert mode.names[-1] == expected
    assert x.equal(y)
