"""Version counters, and the marker that replaces a version if a number is not sufficient."""

import pytest

import adjoint as torch
from adjoint.tape.versions import Mark


def test_a_mark_equals_itself_alone():
    mark = Mark(2)
    assert mark == mark and mark != 2 and mark != 3 and mark != Mark(2)
    assert not (mark == 2 or mark == Mark(2))


def test_the_version_after_a_mark_is_the_next_number():
    counter = [Mark(2)]
    counter[0] += 1
    assert counter[0] == 3 and type(counter[0]) is int


def test_cutting_a_tensor_from_its_history_is_no_change_of_its_version():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.add_(1)
    y.detach_()
    assert y._version == 1 and type(y._version) is int
    y.add_(1)
    assert y._version == 2


@pytest.mark.parametrize("changes", [0, 1])
def test_what_was_saved_of_a_tensor_cut_from_its_history_is_refused(changes):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = y * y
    for _ in range(changes):
        y.add_(1)
    y.detach_()
    message = "at version 1; expected version 0" if changes else "has been detached in-place"
    with pytest.raises(RuntimeError, match=message):
        z.sum().backward()


def test_values_saved_after_a_detach_have_no_history():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y = x * 2
    y.detach_()
    (y * w).sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]


def test_an_alias_of_a_tensor_cut_from_its_history_may_have_been_saved():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y = x * 2
    z = y.detach() * w
    y.detach_()
    z.sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("changed", [False, True])
def test_a_saved_lazy_conjugate_is_materialized_if_it_has_not_changed(changed):
    z = torch.tensor([1 + 2j, 3 - 1j])
    w = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    out = z.conj() * w
    assert out.grad_fn._saved_self.is_conj()
    if changed:
        z[0] = 5j
        with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
            out.real.sum().backward()
    else:
        out.real.sum().backward()
        assert w.grad.tolist() == [1 + 2j, 3 - 1j]


def test_pictures_show_marks_as_numbers():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y = x * 2
    y.detach_()
    z = y * w
    saved = {each.name: each for each in torch.inspect.graph(z)["MulBackward0"].saved}
    assert (saved["self"].version_saved, saved["self"].version_now, saved["self"].state) == (0, 0, "ok")


def test_what_an_interrupt_ends_half_way_is_counted_and_an_error_is_not(monkeypatch):
    from adjoint.kernels.nn import optimization
    from adjoint.tape.refusals import count_change

    def ends_with(error):
        def change(*_arguments):
            raise error

        return change

    x = torch.zeros(3)
    for error, version in ((ValueError, 0), (KeyboardInterrupt, 1)):
        with pytest.raises(error):
            count_change(x, "change", ends_with(error))
        assert x._version == version

    p = torch.nn.Parameter(torch.zeros(3))
    p.grad = torch.ones(3)
    monkeypatch.setattr(optimization, "update", ends_with(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        torch.optim.SGD([p], lr=0.1).step()
    assert p._version == 1
