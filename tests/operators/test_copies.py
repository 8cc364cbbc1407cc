"""The copying forms of views."""

import pytest

import adjoint as torch
from adjoint.utils._python_dispatch import TorchDispatchMode


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("as_strided", ((2, 2), (1, 2), 3)), ("diagonal", (1,)), ("expand", ((2, 3, 4),)), ("permute", ((1, 0),)),
        ("select", (0, 1)), ("split_with_sizes", ([1, 2],)), ("squeeze", ()), ("t", ()), ("transpose", (0, 1)), ("unbind", (1,)),
        ("unfold", (1, 2, 1)), ("unsqueeze", (1,)), ("view", ((2, 6),)),
    ],
)  # fmt: skip
def test_copies_hold_what_the_views_show(name, arguments):
    x = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
    copies = getattr(torch, f"{name}_copy")(x, *arguments)
    views = getattr(x, name)(*arguments)
    grads = []
    for parts in (copies, views):
        parts = parts if isinstance(parts, tuple) else (parts,)
        grads.append(torch.autograd.grad(sum((part * part).sum() for part in parts), x)[0])
        for part, view in zip(parts, views if isinstance(views, tuple) else (views,), strict=True):
            assert torch.equal(part, view)
    assert torch.equal(*grads)
    first = copies[0] if isinstance(copies, tuple) else copies
    assert first.is_contiguous() and not first._is_view() and type(first.grad_fn).__name__.endswith("_copy")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("select_scatter", (torch.zeros(3), 1, 1)), ("slice_scatter", (torch.zeros(3, 2), 1, 0, 4, 2)),
        ("diagonal_scatter", (torch.zeros(3),)), ("clone", ()),
        ("index_fill", (1, torch.tensor([1]), 0.0)), ("index_copy", (1, torch.tensor([1]), torch.zeros(3, 1))),
        ("index_put", ((torch.tensor([1]),), torch.zeros(4))), ("scatter", (1, torch.tensor([[1]] * 3), 0.0)),
        ("put", (torch.tensor([1]), torch.zeros(1))), ("masked_fill", (torch.eye(3, 4) == 1, 0.0)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("overlapping", [torch.arange(6.0).unfold(0, 4, 1), torch.arange(4.0).expand(3, 4)])
def test_changed_copies_of_overlapping_elements_do_not_overlap(name, arguments, overlapping):
    """PyTorch keeps the strides of some copies, so a write to one element changes other elements."""
    result = getattr(overlapping, name)(*arguments)
    assert torch.equal(result, getattr(overlapping.contiguous(), name)(*arguments))
    result[0, 1] = 9
    assert (result == 9).sum() == 1


def test_out_of_several_returns_nothing():
    x, out = torch.ones(2, 3), [torch.empty(0), torch.empty(0)]
    assert torch.unbind_copy(x, out=out) is None
    assert [part.tolist() for part in out] == [[1.0] * 3] * 2


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (torch.zeros(3, dtype=torch.int64), "to have dtype float, but got long int"),
        (torch.zeros(1).expand(3), "single memory location"),
    ],
)
def test_every_tensor_of_out_is_checked(last, message):
    out = [torch.zeros(3), last]
    with pytest.raises(RuntimeError, match=message):
        torch.unbind_copy(torch.ones(2, 3), out=out)
    assert [part.tolist() for part in out] == [[0.0] * 3] * 2


def test_detached_copies_have_no_derivative():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="derivative for aten::detach_copy is not implemented"):
        torch.detach_copy(x).sum().backward()


@pytest.mark.parametrize("size", [6, 1 << 17])
@pytest.mark.parametrize(
    "call",
    [
        lambda x, y, out: torch.mul(x, y, out=out),
        lambda x, y, out: torch.add(x, 2.0, out=out),
        lambda x, y, out: torch.sub(x, y, alpha=3, out=out),
        lambda x, y, out: torch.sigmoid(x, out=out),
        lambda x, y, out: torch.cat([x[: len(x) // 2], y[len(x) // 2 :]], out=out),
        lambda x, y, out: torch.cumsum(x, 0, out=out),
    ],
)
def test_a_result_given_as_out_is_written_in_place_and_counted(size, call):
    x, y = torch.randn(size), torch.randn(size)
    out = torch.ones(size)
    expected = call(x, y, None)
    before, where = out._version, out.data_ptr()
    assert call(x, y, out) is out
    assert torch.equal(out, expected) and out._version == before + 1 and out.data_ptr() == where
    whole = torch.zeros(2, size)
    call(x, y, whole[1])
    assert torch.equal(whole, torch.stack([torch.zeros(size), expected]))


def test_a_saved_tensor_that_is_given_as_out_has_changed():
    x, y = torch.randn(3, requires_grad=True), torch.randn(3)
    product = (x * y).sum()
    torch.mul(torch.ones(3), 2.0, out=y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_out_may_be_an_operand_but_not_a_part_of_one():
    x = torch.arange(6.0)
    torch.mul(x, x, out=x)
    assert x.tolist() == [0, 1, 4, 9, 16, 25]
    with pytest.raises(
        RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a single"
    ):
        torch.exp(x[:4], out=x[1:5])
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.exp(x, out=torch.zeros(1).expand(6))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.exp(torch.ones(2, requires_grad=True), out=torch.zeros(2))
    assert x.tolist() == [0, 1, 4, 9, 16, 25]


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("scatter", ()),
        ("scatter_add", ()),
        ("scatter_reduce", ("sum",)),
        ("index_add", ()),
        ("index_copy", ()),
        ("index_reduce", ("prod",)),
    ],
)
def test_elements_are_written_over_the_input_but_not_over_the_indices_or_the_source(name, more):
    def call(which):
        operands = [torch.tensor([1, 2]), torch.tensor([1, 0]), torch.tensor([5, 6])]
        into, index, source = operands
        return getattr(torch, name)(into, 0, index, source, *more, out=operands[which])

    assert torch.equal(
        call(0), getattr(torch, name)(torch.tensor([1, 2]), 0, torch.tensor([1, 0]), torch.tensor([5, 6]), *more)
    )
    for which in (1, 2):
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            call(which)


def test_as_strided_scatter_writes_to_a_copy_with_the_memory_of_its_input():
    x, rows = torch.arange(6.0), torch.arange(6.0).view(2, 3)
    assert torch.as_strided_scatter(x[3:], -torch.ones(2), (2,), (1,), 4).tolist() == [3.0, -1.0, -1.0]
    assert torch.as_strided_scatter(x[3:], -torch.ones(2), (2,), (1,)).tolist() == [-1.0, -1.0, 5.0]
    columns = torch.as_strided_scatter(rows[:, ::2], -torch.ones(2), (2,), (1,))
    assert columns.tolist() == [[-1.0, 2.0], [3.0, 5.0]] and columns.stride() == (3, 2)
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 24"):
        torch.as_strided_scatter(x, torch.ones(2), (2,), (9,))


def test_as_strided_scatter_is_one_operator_with_derivatives():
    seen = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x, part = torch.arange(6.0, requires_grad=True), torch.ones(2, requires_grad=True)
    with Names():
        result = torch.as_strided_scatter(x[1:], part, (2,), (2,), 2)
    assert seen[-1] == "aten.as_strided_scatter.default"
    to_x, to_part = torch.autograd.grad(result, (x, part), torch.arange(5.0))
    assert (to_x.tolist(), to_part.tolist()) == ([0.0, 0.0, 0.0, 2.0, 0.0, 4.0], [1.0, 3.0])
    batched = torch.func.vmap(lambda a, b: torch.as_strided_scatter(a, b, (2,), (3,)))(
        torch.zeros(2, 4), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    )
    assert batched.tolist() == [[1.0, 0.0, 0.0, 2.0], [3.0, 0.0, 0.0, 4.0]]


def test_cpu_changes_the_memory_format():
    x = torch.ones(1, 2, 3, 4)
    assert x.cpu() is x and x.cpu(memory_format=torch.preserve_format) is x
    assert x.cpu(memory_format=torch.channels_last).stride() == (24, 1, 8, 2)
    with pytest.raises(RuntimeError, match="required rank 4 tensor"):
        torch.ones(2).cpu(memory_format=torch.channels_last)
