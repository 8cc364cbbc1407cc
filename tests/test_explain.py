"""`explain`: the operation that made a nan, the line that cut a path, who changed what was saved."""

from collections.abc import Iterator

import pytest

import adjoint as torch
from adjoint.autograd import explain


@pytest.fixture
def noted() -> Iterator[None]:
    """What is computed is noted, as within `detect_anomaly()`."""
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
    loss.backward()  # which still can be
    assert "freed" in explain(loss)
    assert "its backward makes none" in explain((x * 2).sum())


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
