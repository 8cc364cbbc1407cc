"""The copying forms of views."""

import pytest

import adjoint as torch


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


def test_out_of_several_returns_nothing():
    x, out = torch.ones(2, 3), [torch.empty(0), torch.empty(0)]
    assert torch.unbind_copy(x, out=out) is None
    assert [part.tolist() for part in out] == [[1.0] * 3] * 2


def test_detached_copies_have_no_derivative():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="derivative for aten::detach_copy is not implemented"):
        torch.detach_copy(x).sum().backward()
