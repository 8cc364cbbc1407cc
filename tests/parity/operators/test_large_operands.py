"""Functions of large operands of every kind and layout give PyTorch's results, in PyTorch's layout."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.parity.candidate import candidate

OPERANDS: dict[str, Callable[[Any, Any], Any]] = {
    "row-major": lambda m, x: x,
    "expanded rows": lambda m, x: x[:1].expand(x.shape),
    "expanded columns": lambda m, x: x[:, :1].expand(x.shape),
    "transposed": lambda m, x: x.t(),
    "strided": lambda m, x: m.cat([x, x, x, x]).view(2 * len(x), -1)[::2, 1::2],
    "overlapping": lambda m, x: x.as_strided((len(x) // 2, len(x) // 2), (len(x) // 2, 1)),
    "with an offset": lambda m, x: x.reshape(-1)[3:-3].view(-1, 2),
    "negated lazily": lambda m, x: m.complex(x, x).conj().imag,
    "float16": lambda m, x: x.half(),
    "bfloat16": lambda m, x: x.bfloat16(),
    "recorded": lambda m, x: x.clone().requires_grad_() * 1,
}

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    **{
        name: lambda m, x, name=name: getattr(x, name)()
        for name in "exp relu neg abs sum square sigmoid tanh erf round isnan isfinite clone tril norm nansum".split()
    },
    **{
        f"{name} over {dim}": lambda m, x, name=name, dim=dim: getattr(x, name)(dim)
        for name in "sum mean argmax softmax cumsum std var logsumexp amin log_softmax logcumsumexp any".split()
        for dim in (0, 1)
    },
    "max": lambda m, x: x.max(0)[0],
    "sort": lambda m, x: x.sort(1)[0],
    "add": lambda m, x: x + x,
    "add in place": lambda m, x: x.clone().add_(x, alpha=2),
    "multiply by a number": lambda m, x: x * 3,
    "divide": lambda m, x: x / (x.abs() + 1),
    "remainder": lambda m, x: x % 0.7,
    "power": lambda m, x: x.abs() ** 1.5,
    "atan2": lambda m, x: m.atan2(x, x + 1),
    "addcmul": lambda m, x: m.addcmul(x, x, x),
    "lerp": lambda m, x: m.lerp(x, x * 2, 0.3),
    "where": lambda m, x: m.where(x > 0, x, -x),
    "clamp": lambda m, x: x.clamp(-0.5, 0.5),
    "cat": lambda m, x: m.cat([x, x]),
    "flip": lambda m, x: x.flip(0),
    "roll": lambda m, x: x.roll(3, 1),
    "slice": lambda m, x: x[::2],
    "gelu": lambda m, x: m.nn.functional.gelu(x),
    "layer_norm": lambda m, x: m.nn.functional.layer_norm(x, x.shape[1:]),
    "batch_norm": lambda m, x: m.nn.functional.batch_norm(x, None, None, training=True),
    "batch_norm by running statistics": lambda m, x: m.nn.functional.batch_norm(
        x, m.zeros(x.shape[1], dtype=x.dtype), m.ones(x.shape[1], dtype=x.dtype)
    ),
    "matrix product": lambda m, x: x @ x.t()[:, :5],
}  # fmt: skip


_OF_EQUALS = (("batch_norm", "expanded rows"), ("layer_norm", "expanded columns"))  # results are rounding errors


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.thorough) if place % 4 else name for place, name in enumerate(FUNCTIONS)],
)
def test_large_operands_of_any_kind(name: str) -> None:
    matrix = torch.linspace(-2, 2, 300 * 300).mul(37).sin().add(0.25).reshape(300, 300)
    found = []
    for kind, operand in OPERANDS.items():
        if (name, kind) in _OF_EQUALS:
            continue
        expected, result = (
            FUNCTIONS[name](m, operand(m, x))
            for m, x in ((torch, matrix), (candidate, candidate.from_numpy(matrix.numpy())))
        )
        ours, theirs = (
            (str(each.dtype), tuple(each.shape), each.stride() if each.numel() > 1 else (), each.requires_grad)
            for each in (result, expected)
        )
        if ours != theirs:
            found.append(f"{kind}: {ours}, PyTorch: {theirs}")
        rough = expected.dtype in (torch.float16, torch.bfloat16)
        given = torch.from_numpy(result.detach().double().numpy())
        if not torch.allclose(
            given, expected.detach().double(), rtol=3e-2 if rough else 1e-4, atol=3e-2 if rough else 1e-4
        ):
            found.append(f"{kind}: other numbers")
    assert not found, "\n".join(found)
