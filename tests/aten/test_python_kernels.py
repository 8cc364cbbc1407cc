"""Tests for kernels that programs register for PyTorch's operators."""

import threading

import pytest

import adjoint as torch

pytestmark = pytest.mark.filterwarnings("ignore:Warning only once for all operators")


def test_a_kernel_replaces_an_operator_until_the_library_is_gone():
    x = torch.tensor([2.0], requires_grad=True)
    library = torch.library.Library("aten", "IMPL")
    library.impl("mul.Tensor", lambda x, y: x + y, "CPU")
    y = x * torch.tensor([5.0])
    y.backward()
    assert (y.item(), x.grad.item(), (torch.tensor([2.0]) * 3).item()) == (7.0, 6.0, 5.0)
    assert torch.tensor([2.0]).mul_(5).item() == 10.0
    library._destroy()
    assert (x * torch.tensor([5.0])).item() == 10.0


def test_the_former_kernel_returns_when_a_library_is_gone():
    first, second = torch.library.Library("aten", "IMPL"), torch.library.Library("aten", "IMPL")
    first.impl("neg", lambda x: x * 7, "CPU")
    second.impl("neg", lambda x: x * 8, "CPU")
    assert torch.neg(torch.ones(1)).item() == 8.0
    del second
    assert torch.neg(torch.ones(1)).item() == 7.0
    del first
    assert torch.neg(torch.ones(1)).item() == -1.0


def test_a_kernel_for_autograd_is_recorded_inside():
    x = torch.tensor([2.0], requires_grad=True)
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("neg", lambda x: x * 7, "AutogradCPU")
        y = -x
        y.backward()
        assert (y.item(), x.grad.item(), y.grad_fn.name()) == (14.0, 7.0, "MulBackward0")
        with torch.inference_mode():
            assert x.neg().item() == -2.0
        with torch._C._AutoDispatchBelowAutograd():
            assert x.neg().item() == -2.0


def test_kernels_apply_in_threads_and_inside_modes_and_transforms():
    class Log(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    seen, results = [], []
    x = torch.ones(2)
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("neg", lambda x: x.clone(), "CPU")
        with Log():
            assert torch.neg(x).tolist() == [1.0, 1.0]
        assert torch.vmap(torch.neg)(x).tolist() == [1.0, 1.0]
        thread = threading.Thread(target=lambda: results.append(x.neg().tolist()))
        thread.start()
        thread.join()
    assert (seen, results) == (["aten.neg.default"], [[1.0, 1.0]])


def test_kernels_receive_keys_and_change_arguments():
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("neg", lambda keys, x: x * 3, "CPU", with_keyset=True)
        library.impl("relu_", lambda x: x.fill_(9), "CPU")
        library.impl("cos", lambda x: 5, "CPU")
        library.impl("sin", torch.library.fallthrough_kernel, "CPU")
        x = torch.ones(2)
        assert torch.neg(x).tolist() == [3.0, 3.0]
        assert x.relu_() is x and x.tolist() == [9.0, 9.0]
        assert torch.sin(torch.zeros(1)).item() == 0.0
        with pytest.raises(RuntimeError, match="Unable to cast 5 to Tensor"):
            torch.cos(x)


def test_operators_made_of_operators_refuse_kernels():
    with torch.library._scoped_library("aten", "IMPL") as library, pytest.raises(NotImplementedError, match="linear"):
        library.impl("linear", lambda *args: args[0], "CPU")


def test_losses_that_subtract_from_a_number_run_under_modes():
    class Passing(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    x, y = torch.tensor([[0.5, 2.0]]), torch.tensor([1.0])
    losses = (
        lambda: torch.nn.functional.hinge_embedding_loss(x[0], torch.tensor([-1.0, 1.0])),
        lambda: torch.nn.functional.cosine_embedding_loss(x, x.flip(1), y),
    )
    for loss in losses:
        with Passing():
            found = loss()
        assert torch.equal(found, loss())
