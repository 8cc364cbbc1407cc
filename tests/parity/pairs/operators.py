"""Operators as functions of tensors. Each operator is an example of its family.

In shapes, `n` stands for 3, or for some thousands in a large cell. Inputs are float64 leaves with different elements between 0.3
and 1.7.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple


class Operator(NamedTuple):
    """`function(torch, *inputs)` returns a tensor; `shapes` are the shapes of the inputs."""

    function: Callable[..., Any]
    shapes: tuple[tuple[Any, ...], ...]


def _integers(torch: Any, like: Any, *values: int) -> Any:
    """Return indices, on the device of a tensor."""
    return torch.tensor(values, device=like.device)


def _set_items(torch: Any, a: Any, b: Any) -> Any:
    result = a * 1
    result[0] = b
    result[:, 1:] *= 2
    return result


def _write_view(torch: Any, a: Any, b: Any) -> Any:
    result = a * 1
    result.t()[1].mul_(b)
    return result


def _fill_buffer(torch: Any, a: Any, b: Any) -> Any:
    buffer = torch.zeros_like(a)
    buffer[:, 0] = a[:, 1]
    buffer[:, 2] += a[:, 0] ** 2
    return buffer + b


def _index_put(torch: Any, a: Any, b: Any) -> Any:
    return (a * 1).index_put_((_integers(torch, a, 0, 1, 0), _integers(torch, a, 1, 2, 1)), b, accumulate=True)


def _scatter_add(torch: Any, a: Any, b: Any) -> Any:
    return a.scatter_add(1, _integers(torch, a, 0, 2, 0, 1).expand(b.shape), b)


def _gather(torch: Any, a: Any) -> Any:
    return a.gather(1, _integers(torch, a, 3, 0, 0).expand(a.shape[0], 3))


def _positive_definite(torch: Any, a: Any) -> Any:
    return a @ a.mT + torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)


def _embedding(torch: Any, a: Any) -> Any:
    return torch.nn.functional.embedding(_integers(torch, a, 0, 2, 0), a)


def _embedding_bag(torch: Any, a: Any) -> Any:
    return torch.nn.functional.embedding_bag(_integers(torch, a, 0, 2, 0, 1), a, _integers(torch, a, 0, 2), mode="mean")


def _cross_entropy(torch: Any, a: Any) -> Any:
    return torch.nn.functional.cross_entropy(a, _integers(torch, a, 1).expand(a.shape[0]))


def _module(make: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a module as a function of its input and its parameters."""
    made = cache(lambda torch: make(torch.nn).double())

    def function(torch: Any, x: Any, *parameters: Any) -> Any:
        module = made(torch)
        given = dict(zip((name for name, _ in module.named_parameters()), parameters, strict=True))
        given |= {name: buffer.to(x.device, copy=True) for name, buffer in module.named_buffers()}
        result = torch.func.functional_call(module, given, (x,))
        return result[0] if isinstance(result, tuple) else result

    return function


_SQUARE = ("n", 3, 3)

OPERATORS: dict[str, Operator] = {
    # elementwise
    "exp": Operator(lambda torch, a: torch.exp(a), (("n", 4),)),
    "tanh": Operator(lambda torch, a: a.tanh(), (("n", 4),)),
    "mul": Operator(lambda torch, a, b: a * b, (("n", 4), (4,))),
    "div": Operator(lambda torch, a, b: torch.div(a, b), (("n", 4), ("n", 1))),
    "pow": Operator(lambda torch, a, b: a**b, (("n", 4), ("n", 4))),
    "maximum": Operator(lambda torch, a, b: torch.maximum(a, b), (("n", 4), ("n", 4))),
    # in place
    "exp_": Operator(lambda torch, a: (a * 2).exp_(), (("n", 4),)),
    "addcmul_": Operator(lambda torch, a, b, c: (a * 2).addcmul_(b, c, value=0.5), (("n", 4), (4,), ("n", 1))),
    "mul_ of a view": Operator(_write_view, (("n", 4), ("n",))),
    "filled buffer": Operator(_fill_buffer, (("n", 4), (4,))),
    # reductions
    "sum": Operator(lambda torch, a: a.sum(1), (("n", 4),)),
    "std": Operator(lambda torch, a: a.std(1), (("n", 4),)),
    "norm": Operator(lambda torch, a: torch.linalg.vector_norm(a, dim=1), (("n", 4),)),
    # views
    "transpose": Operator(lambda torch, a: a.transpose(0, 1), (("n", 4),)),
    "slice": Operator(lambda torch, a: a[1:, ::2], (("n", 4),)),
    "diagonal": Operator(lambda torch, a: a.diagonal(0, 1, 2), (_SQUARE,)),
    # indexing and moving elements
    "index": Operator(lambda torch, a: a[_integers(torch, a, 0, 2, 0)], (("n", 4),)),
    "masked": Operator(lambda torch, a: a[a > 1], (("n", 4),)),
    "setitem": Operator(_set_items, (("n", 4), (4,))),
    "index_put_": Operator(_index_put, (("n", 4), (3,))),
    "gather": Operator(_gather, (("n", 4),)),
    "scatter_add": Operator(_scatter_add, (("n", 4), ("n", 4))),
    "cat": Operator(lambda torch, a, b: torch.cat((a, b, a), 1), (("n", 4), ("n", 2))),
    "pad": Operator(lambda torch, a: torch.nn.functional.pad(a, (1, 2), mode="reflect"), (("n", 4),)),
    # linear algebra, Fourier transforms
    "matmul": Operator(lambda torch, a, b: a @ b, (("n", 4), (4, 3))),
    "einsum": Operator(lambda torch, a, b: torch.einsum("bij,bjk->bk", a, b), (("n", 2, 4), ("n", 4, 3))),
    "inv": Operator(lambda torch, a: torch.linalg.inv(_positive_definite(torch, a)), (_SQUARE,)),
    "solve": Operator(lambda torch, a, b: torch.linalg.solve(_positive_definite(torch, a), b), (_SQUARE, ("n", 3, 2))),
    "fft": Operator(lambda torch, a: torch.fft.rfft(a), (("n", 4),)),
    # along a dimension
    "sort": Operator(lambda torch, a: a.sort(1).values, (("n", 4),)),
    "cumprod": Operator(lambda torch, a: a.cumprod(1), (("n", 4),)),
    "softmax": Operator(lambda torch, a: a.softmax(-1), (("n", 4),)),
    # neural networks
    "linear": Operator(lambda torch, a, b, c: torch.nn.functional.linear(a, b, c), (("n", 4), (3, 4), (3,))),
    "conv2d": Operator(
        lambda torch, a, b, c: torch.nn.functional.conv2d(a, b, c, padding=1), (("n", 2, 4, 4), (3, 2, 3, 3), (3,))
    ),
    "max_pool2d": Operator(lambda torch, a: torch.nn.functional.max_pool2d(a, 2), (("n", 2, 4, 4),)),
    "interpolate": Operator(
        lambda torch, a: torch.nn.functional.interpolate(a, scale_factor=2.0, mode="bilinear"), (("n", 2, 3, 3),)
    ),
    "layer_norm": Operator(
        lambda torch, a, b, c: torch.nn.functional.layer_norm(a, (4,), b, c), (("n", 4), (4,), (4,))
    ),
    "BatchNorm1d": Operator(_module(lambda nn: nn.BatchNorm1d(4)), (("n", 4), (4,), (4,))),
    "attention": Operator(
        lambda torch, a, b, c: torch.nn.functional.scaled_dot_product_attention(a, b, c, is_causal=True),
        (("n", 2, 3, 4), ("n", 2, 3, 4), ("n", 2, 3, 4)),
    ),
    "LSTM": Operator(_module(lambda nn: nn.LSTM(4, 2, batch_first=True)), (("n", 3, 4), (8, 4), (8, 2), (8,), (8,))),
    "embedding": Operator(_embedding, (("n", 4),)),
    "embedding_bag": Operator(_embedding_bag, (("n", 4),)),
    "cross_entropy": Operator(_cross_entropy, (("n", 4),)),
    "huber_loss": Operator(
        lambda torch, a, b: torch.nn.functional.huber_loss(a, b, reduction="none", delta=0.3), (("n", 4), ("n", 4))
    ),
    "dropout": Operator(lambda torch, a: torch.nn.functional.dropout(a, 0.5), (("n", 4),)),
    # complex numbers
    "polar": Operator(lambda torch, a, b: torch.polar(a, b), (("n", 4), (4,))),
    "complex mul": Operator(lambda torch, a, b: torch.complex(a, b) * (a - 1j * b).conj(), (("n", 4), (4,))),
    "view_as_complex": Operator(lambda torch, a: torch.view_as_complex(a).abs(), (("n", 4, 2),)),
}
