"""`explain`: the operation that produced a nan, the line that cut a path, the change of a saved tensor."""

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import adjoint as torch
from adjoint.autograd import explain
from adjoint.utils.checkpoint import checkpoint


@pytest.fixture
def noted() -> Iterator[None]:
    """Record the line of each operation, as `detect_anomaly()` does."""
    torch.autograd.set_detect_anomaly(True)
    yield
    torch.autograd.set_detect_anomaly(False)


def test_first_nan_of_a_forward_from_what_nodes_saved() -> None:
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    y = x * 2
    z = y / y  # the culprit
    found = explain(z.sqrt().exp().sum())
    assert found.startswith("DivBackward0 made 1 nan of numbers.")
    assert "# the culprit" in found.line
    assert "self: float32[2], from 0 to 8" in found
    assert found.node is z.grad_fn


def test_first_nan_of_a_forward_from_notes(noted: None) -> None:
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    y = (x - 2) + torch.tensor([float("inf"), 0.0])
    z = y + torch.tensor([float("-inf"), 0.0])  # the culprit
    found = explain((z + 1).sum())
    assert found.startswith("AddBackward0 made 1 nan of numbers.")
    assert "# the culprit" in found.line
    assert "1 inf" in found


class Quotient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x / x

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> None:
        return None


def test_nan_of_a_custom_function(noted: None) -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = Quotient.apply(x * 1)  # called here
    found = explain((y * 2).sum())
    assert found.startswith("QuotientBackward made 1 nan of numbers.")
    assert "# called here" in found.line
    assert "The nan was made by div" in found
    assert "return x / x" in found


def test_nan_of_a_view_changed_in_place(noted: None) -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = x * 1
    y.view(2, 1)[0].log_().mul_(0)  # the culprit
    found = explain((y * 2).sum())
    assert found.startswith("torch::autograd::CopySlices made 1 nan of numbers.")
    assert "# the culprit" in found.line


def test_nan_that_an_operation_was_given() -> None:
    w = torch.tensor([float("nan"), 1.0], requires_grad=True)
    found = explain((torch.ones(2) * w * 2).sum())  # given here
    assert found.startswith("MulBackward0 was given a nan, which no recorded operation made.")
    assert "# given here" in found.line
    assert "other: float32[2], 1, 1 nan" in found


def test_nan_that_was_computed_unrecorded(noted: None) -> None:
    w = torch.ones(2, requires_grad=True)
    data = torch.tensor([0.0, 1.0])
    data /= data.clone()  # made here
    for found in (explain((w * data).exp().sum()), explain(data * 2)):
        assert "made by div_" in found
        assert "# made here" in found
    out = torch.empty(2)
    torch.log(torch.tensor([-1.0, 1.0]), out=out)  # made there
    assert "# made there" in explain(out)


def test_nan_that_was_put_in() -> None:
    assert "the nan was put in" in explain(torch.tensor([1.0, float("nan")]))
    x = torch.tensor([1.0, float("nan")], requires_grad=True)
    assert "has no history" in explain(x)


def test_first_nan_of_a_backward_by_its_error(noted: None) -> None:
    x = torch.tensor([0.0], requires_grad=True)
    y = x.sqrt()  # the culprit
    loss = (y * 0).sum()
    with pytest.warns(UserWarning, match="Error detected"), pytest.raises(RuntimeError) as caught:
        loss.backward()
    found = explain(caught.value)
    assert found.startswith("The backward of SqrtBackward0 made a nan.")
    assert "# the culprit" in found.line
    assert "input 0: float32[1], 0" in found


def test_first_nan_of_a_backward_by_trying() -> None:
    x = torch.tensor([0.0], requires_grad=True)
    y = x.sqrt()
    loss = (y * 0).sum()
    assert explain(loss).startswith("The backward of SqrtBackward0 made a nan.")
    assert x.grad is None
    loss.backward()  # the graph still exists
    assert "freed" in explain(loss)
    assert "without hooks, makes none" in explain((x * 2).sum())


def test_first_nan_of_a_backward_through_functions_of_ones_own() -> None:
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            assert not torch.is_grad_enabled()
            return grad * float("nan")

    x = torch.ones(2, requires_grad=True)
    loss = Bad.apply(x * 2).sum()  # the culprit
    found = explain(loss)
    assert found.startswith("The backward of BadBackward made a nan.")
    assert "# the culprit" in found.line
    assert torch.is_grad_enabled()
    assert x.grad is None


def test_nan_of_a_backward_within_a_checkpoint() -> None:
    def region(a: torch.Tensor) -> torch.Tensor:
        return torch.where(a > 0, a.sqrt(), a)  # the culprit

    x = torch.tensor([0.0, 1.0], requires_grad=True)
    loss = checkpoint(region, x, use_reentrant=False).sum()
    assert "# the culprit" in explain(loss).line
    loss.backward()  # the graph still exists
    assert x.grad.isnan().tolist() == [True, False]
    found = explain(checkpoint(region, x, use_reentrant=True).sum())
    assert found.startswith("Its backward cannot be tried: RuntimeError: When use_reentrant=True")


@pytest.mark.parametrize("through", [False, True])
def test_nan_of_a_sum_of_gradients(through: bool) -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = x * 1 if through else x
    first = y.sqrt()  # the last to run
    found = explain((first - (y * 2).sqrt()).sum())
    assert found.startswith("Gradients that arrive at one place add up to nan")
    assert "# the last to run" in found.line


def test_who_saved_and_who_changed() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()  # saves
    y.add_(1)  # changes
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    found = explain(caught.value)
    assert "ExpBackward0 saved it" in found
    assert "# changes" in found
    assert "# saves" in found.line


def test_where_paths_from_a_leaf_were_cut(noted: None) -> None:
    w = torch.ones(2, requires_grad=True)
    v = torch.ones(2, requires_grad=True)
    h = w * 2
    h.detach() * v  # cut here
    with torch.no_grad():
        w.exp()
    (h * 10).long()
    h.argmax()
    found = explain(w)
    for words in ("detach: it has no history", "# cut here", "exp: gradients were switched off (no_grad)"):
        assert words in found
    assert "torch.int64, which has no gradient" in found
    assert "h.detach() * v" in explain(v)
    unused = torch.ones(2, requires_grad=True)
    assert "No use of it has been noted" in explain(unused)


def test_more_ways_to_cut_a_path(noted: None) -> None:
    w = torch.ones(2, requires_grad=True)
    w.data  # by its data
    (w * 2).detach_()  # detached in place
    assert "detach_" not in explain(torch.ones(1).detach_())
    with pytest.warns(UserWarning, match="To copy construct"):
        torch.tensor(w)  # copied
    with pytest.warns(UserWarning, match="To copy construct"):
        w.new_tensor(w)  # copied again
    with torch.no_grad():
        torch.mul(w, 2, out=torch.empty(2))  # into another
        torch.zeros(2).copy_(w)  # copied in place
        w.add_(1)  # cuts nothing
    w.to(torch.int32)  # in integers
    found = explain(w)
    assert "no_grad)" in found
    assert "torch.int32, which has no gradient" in found
    for line in (
        "by its data",
        "detached in place",
        "copied",
        "copied again",
        "into another",
        "copied in place",
        "in integers",
    ):
        assert f"# {line}" in found or f"  {line}" in found
    assert "cuts nothing" not in found


def test_cuts_of_custom_functions(noted: None) -> None:
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2, requires_grad=True)

    class Uses(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * w  # not among its inputs

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad

    Uses.apply(x).sum().backward()
    assert "mul: gradients were switched off (no_grad)" in explain(w)
    assert "# not among its inputs" in explain(w)
    assert explain(x) == "The tensor has a gradient."
    x.grad = None
    Quotient.apply(x * 1).sum().backward()  # called here
    found = explain(x)
    assert "QuotientBackward: its backward returned None" in found
    assert "no_grad" not in found


def test_gradients_that_are_not_retained() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2  # a result
    y.sum().backward()
    found = explain(y)
    assert "only if retain_grad() is called" in found
    assert "# a result" in found
    y = x * 2
    y.retain_grad()
    assert "retain_grad" not in explain(y)


def test_where_a_loss_lost_its_history(noted: None) -> None:
    w = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        y = w * 2  # here
    loss = (y * y).sum()
    assert "# here" in explain(loss)
    with pytest.raises(RuntimeError) as caught:
        loss.backward()
    assert "# here" in explain(caught.value)
    v = torch.ones(2, requires_grad=True)
    (v * 2).sum()
    with pytest.raises(RuntimeError) as caught:
        torch.autograd.grad((w * 2).sum(), v)
    assert "(v * 2).sum()" in explain(caught.value)


def test_notes_die_with_their_tensors(noted: None) -> None:
    from adjoint.tape import anomaly

    w = torch.ones(2, requires_grad=True)
    w.detach()
    w * 2
    before = len(anomaly.USES.held)
    del w
    assert len(anomaly.USES.held) == before - 1


def test_other_subjects_are_refused() -> None:
    with pytest.raises(TypeError, match="expected a Tensor or an exception"):
        explain(3)  # type: ignore[arg-type]


def _changed_in_place(x):
    y = x.exp()
    y[0] *= 2
    y.sum().backward()


def _nan_gradient(x):
    with torch.autograd.detect_anomaly():
        (x * 0).sqrt().sum().mul(0).backward()


WRONG_PROGRAMS = {
    "changed in place": _changed_in_place,
    "no history": lambda x: x.detach().sum().backward(),
    "nan gradient": _nan_gradient,
    "freed": lambda x: [each.backward() for each in [x.exp().sum()] * 2],
    "unused": lambda x: torch.autograd.grad((x * 1).sum(), torch.ones(2, requires_grad=True) * x),
    "a shape": lambda x: x.backward(torch.ones(7)),
    "singular": lambda x: torch.linalg.inv(x[:, None] * x),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # anomaly detection warns about its speed
@pytest.mark.parametrize("kind", WRONG_PROGRAMS)
def test_errors_go_to_files_and_processes(kind):
    with pytest.raises(RuntimeError) as caught:
        WRONG_PROGRAMS[kind](torch.ones(2, requires_grad=True))
    error = caught.value
    for received in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(received) is type(error) and received.args == error.args
        assert getattr(received, "__notes__", ()) == getattr(error, "__notes__", ())
        assert explain(received)
