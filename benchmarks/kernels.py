"""Operators on arrays that fit in the cache and on much larger arrays, with and without backward."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.cases import Group, Timed

GROUP = Group("kernels")
case = GROUP.case

Operation = Callable[[ModuleType, Any], Any]

SIZES = {"64x1000": (64, 1000), "2048x2048": (2048, 2048)}


def _forward(name: str, make: Callable[[ModuleType], Any], operation: Operation) -> None:
    @case(name)
    def forward(torch: ModuleType) -> Timed:
        x = make(torch)
        return lambda: operation(torch, x)


def _backward(name: str, make: Callable[[ModuleType], Any], operation: Operation) -> None:
    """Run forward, and backward with a gradient that is not constant. The timed function returns the gradient of the input."""

    @case(f"{name}, forward and backward")
    def forward_and_backward(torch: ModuleType) -> Timed:
        x = make(torch).requires_grad_()
        direction = torch.randn(operation(torch, x.detach()).shape)

        def step():
            x.grad = None
            operation(torch, x).backward(direction)
            return x.grad

        return step


def _normal(*shape: int) -> Callable[[ModuleType], Any]:
    return lambda torch: torch.randn(*shape)


def _pointwise_and_rows() -> None:
    operations: dict[str, Operation] = {
        "add": lambda torch, x: x + x,
        "mul by a number": lambda torch, x: x * 2.0,
        "exp": lambda torch, x: torch.exp(x),
        "tanh": lambda torch, x: torch.tanh(x),
        "sigmoid": lambda torch, x: torch.sigmoid(x),
        "relu": lambda torch, x: torch.relu(x),
        "gelu": lambda torch, x: torch.nn.functional.gelu(x),
        "softmax": lambda torch, x: torch.softmax(x, dim=1),
        "log_softmax": lambda torch, x: torch.log_softmax(x, dim=1),
        "layer_norm": lambda torch, x: torch.nn.functional.layer_norm(x, (x.shape[1],)),
        "cumsum along rows": lambda torch, x: x.cumsum(1),
        "sum": lambda torch, x: x.sum(),
        "sum over rows": lambda torch, x: x.sum(dim=1),
        "sum over columns": lambda torch, x: x.sum(dim=0),
        "max along rows": lambda torch, x: x.max(dim=1).values,
        "logsumexp": lambda torch, x: torch.logsumexp(x, 1),
    }
    for size, shape in SIZES.items():
        for name, operation in operations.items():
            _forward(f"{name}, {size}", _normal(*shape), operation)
            if name not in ("add", "mul by a number"):
                _backward(f"{name}, {size}", _normal(*shape), operation)
    for name in ("gelu", "softmax", "sum over rows"):
        _forward(f"{name}, 999x1001 transposed", lambda torch: torch.randn(1001, 999).t(), operations[name])
    _forward("gelu, float64, 999x1001", lambda torch: torch.randn(999, 1001).double(), operations["gelu"])
    _forward("copy of a transposed 2048x2048", _normal(2048, 2048), lambda torch, x: x.t().contiguous())
    _forward("sort along rows, 1000x1000", _normal(1000, 1000), lambda torch, x: x.sort(1).values)
    _forward("topk of 10 along rows, 1000x1000", _normal(1000, 1000), lambda torch, x: x.topk(10, 1).values)
    _forward("cat of 2 of 1024x1024", _normal(1024, 1024), lambda torch, x: torch.cat([x, x], 1))
    _forward("rfft of 256x4096", _normal(256, 4096), lambda torch, x: torch.fft.rfft(x).real)


def _normalization() -> None:
    functional = {
        "group_norm 16x64x32x32, 8 groups": ((16, 64, 32, 32), lambda torch, x: torch.nn.functional.group_norm(x, 8)),
        "batch_norm 32x32x32x32": (
            (32, 32, 32, 32), lambda torch, x: torch.nn.functional.batch_norm(x, None, None, training=True),
        ),
        "rms_norm 4096x512": ((4096, 512), lambda torch, x: torch.nn.functional.rms_norm(x, (512,))),
    }  # fmt: skip
    for name, (shape, operation) in functional.items():
        _forward(name, _normal(*shape), operation)
        _backward(name, _normal(*shape), operation)
    _backward(
        "cross_entropy 4096x1000",
        _normal(4096, 1000),
        lambda torch, x: torch.nn.functional.cross_entropy(x, torch.arange(4096) % 1000),
    )


def _matrices() -> None:
    for size in (256, 512, 1024, 2048):

        @case(f"matmul {size}")
        def matmul(torch: ModuleType, size: int = size) -> Timed:
            a, b = torch.randn(size, size), torch.randn(size, size)
            return lambda: a @ b

    _forward("bmm 256x32x32", _normal(256, 32, 32), lambda torch, x: x @ x)
    _backward("linear 64x512 to 512", _normal(64, 512), _with_parameters((512, 512), (512,), call="linear"))
    _forward("cholesky 512", lambda torch: torch.eye(512) * 40 + torch.randn(512, 512).cov(), _cholesky)


def _cholesky(torch: ModuleType, x: Any) -> Any:
    return torch.linalg.cholesky(x)


def _with_parameters(*shapes: tuple[int, ...], call: str, **options: Any) -> Operation:
    """A function of `nn.functional` with parameters of these shapes, which require grad and are created once."""
    made: dict[ModuleType, list[Any]] = {}

    def operation(torch: ModuleType, x: Any) -> Any:
        if torch not in made:
            made[torch] = [torch.randn(*shape).requires_grad_() for shape in shapes]
        for parameter in made[torch]:
            parameter.grad = None
        return getattr(torch.nn.functional, call)(x, *made[torch], **options)

    return operation


def _convolutions() -> None:
    two = {
        "32x1x28x28 by 16 of 3x3": ((32, 1, 28, 28), (16, 1, 3, 3), {"padding": 1}),
        "32x32x14x14 by 64 of 3x3": ((32, 32, 14, 14), (64, 32, 3, 3), {"padding": 1}),
        "8x32x56x56 by 64 of 3x3": ((8, 32, 56, 56), (64, 32, 3, 3), {"padding": 1}),
        "16x64x28x28 by 64 of 1x1": ((16, 64, 28, 28), (64, 64, 1, 1), {}),
        "8x3x64x64 by 16 of 5x5, stride 2": ((8, 3, 64, 64), (16, 3, 5, 5), {"stride": 2}),
        "32x16x32x32 by 32 of 3x3, stride 2": ((32, 16, 32, 32), (32, 16, 3, 3), {"stride": 2, "padding": 1}),
        "16x64x28x28, depthwise 3x3": ((16, 64, 28, 28), (64, 1, 3, 3), {"padding": 1, "groups": 64}),
        "64x6x14x14 by 16 of 5x5": ((64, 6, 14, 14), (16, 6, 5, 5), {}),
    }
    for name, (image, filters, options) in two.items():
        _forward(f"conv2d {name}", _normal(*image), _with_parameters(filters, call="conv2d", **options))
        _backward(f"conv2d {name}", _normal(*image), _with_parameters(filters, call="conv2d", **options))
    _backward("conv1d 16x64x1000 by 64 of 3", _normal(16, 64, 1000), _with_parameters((64, 64, 3), call="conv1d"))
    _backward(
        "conv3d 4x8x16x16x16 by 16 of 3x3x3",
        _normal(4, 8, 16, 16, 16),
        _with_parameters((16, 8, 3, 3, 3), call="conv3d"),
    )
    _backward(
        "conv_transpose2d 16x32x14x14 by 16 of 4x4, stride 2",
        _normal(16, 32, 14, 14),
        _with_parameters((32, 16, 4, 4), call="conv_transpose2d", stride=2, padding=1),
    )
    _backward("max_pool2d 32x16x32x32", _normal(32, 16, 32, 32), lambda torch, x: torch.nn.functional.max_pool2d(x, 2))
    _backward("avg_pool2d 32x16x32x32", _normal(32, 16, 32, 32), lambda torch, x: torch.nn.functional.avg_pool2d(x, 2))
    _backward(
        "interpolate 8x16x32x32 bilinear, twice the size",
        _normal(8, 16, 32, 32),
        lambda torch, x: torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    )


def _gathering() -> None:
    def rows(torch: ModuleType, n: int, limit: int) -> Any:
        return torch.arange(n) * 7919 % limit

    _forward("embedding 8192 of 10000x256", _normal(10000, 256), lambda torch, x: x[rows(torch, 8192, 10000)])
    _backward(
        "embedding 8192 of 10000x256",
        _normal(10000, 256),
        lambda torch, x: torch.nn.functional.embedding(rows(torch, 8192, 10000), x),
    )
    _backward(
        "index_select 4096 of 4096x256", _normal(4096, 256), lambda torch, x: x.index_select(0, rows(torch, 4096, 4096))
    )
    _backward(
        "gather 1000x1000", _normal(1000, 1000), lambda torch, x: x.gather(1, rows(torch, 10**6, 1000).view(1000, 1000))
    )
    _forward(
        "scatter_add 1000x1000",
        _normal(1000, 1000),
        lambda torch, x: x.scatter_add(1, rows(torch, 10**6, 1000).view(1000, 1000), x),
    )
    _forward(
        "index_add 8192 rows of 256", _normal(8192, 256), lambda torch, x: x.index_add(0, rows(torch, 8192, 500), x)
    )


def _sequences() -> None:
    for name, shape, causal in (
        ("8x6x256x64, causal", (8, 6, 256, 64), True),
        ("2x8x1024x64", (2, 8, 1024, 64), False),
    ):

        def attention(torch: ModuleType, x: Any, causal: bool = causal) -> Any:
            return torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=causal)

        _forward(f"attention {name}", _normal(*shape), attention)
        _backward(f"attention {name}", _normal(*shape), attention)
    for kind in ("LSTM", "GRU", "RNN"):

        @case(f"{kind} 64 steps, 32x128 to 128, forward and backward")
        def layer(torch: ModuleType, kind: str = kind) -> Timed:
            module = getattr(torch.nn, kind)(128, 128)
            x = torch.randn(64, 32, 128, requires_grad=True)

            def step():
                x.grad = None
                module.zero_grad()
                module(x)[0].sum().backward()
                return x.grad

            return step


_pointwise_and_rows()
_normalization()
_matrices()
_convolutions()
_gathering()
_sequences()
