"""Large arrays: one operation on much data, without a graph."""

from types import ModuleType

from benchmarks.cases import Group, Timed

GROUP = Group("kernels")
case = GROUP.case

ELEMENTS = (2048, 2048)  # 4 M


def _matmul(size: int) -> None:
    @case(f"matmul {size}")
    def matmul(torch: ModuleType) -> Timed:
        a, b = torch.randn(size, size), torch.randn(size, size)
        return lambda: a @ b


for _size in (256, 512, 1024, 2048):
    _matmul(_size)


def _on_4m(name: str, operation) -> None:
    @case(f"{name}, 4 M float32")
    def on_4m(torch: ModuleType) -> Timed:
        x = torch.randn(*ELEMENTS)
        return lambda: operation(torch, x)


_on_4m("add", lambda torch, x: x + x)
_on_4m("mul by a number", lambda torch, x: x * 2.0)
_on_4m("exp", lambda torch, x: torch.exp(x))
_on_4m("tanh", lambda torch, x: torch.tanh(x))
_on_4m("sigmoid", lambda torch, x: torch.sigmoid(x))
_on_4m("relu", lambda torch, x: torch.relu(x))
_on_4m("gelu", lambda torch, x: torch.nn.functional.gelu(x))
_on_4m("softmax", lambda torch, x: torch.softmax(x, dim=1))
_on_4m("log_softmax", lambda torch, x: torch.log_softmax(x, dim=1))
_on_4m("sum", lambda torch, x: x.sum())
_on_4m("sum over rows", lambda torch, x: x.sum(dim=1))
_on_4m("layer_norm", lambda torch, x: torch.nn.functional.layer_norm(x, (ELEMENTS[1],)))


def _conv2d(name: str, image: tuple[int, ...], filters: tuple[int, ...], **options: int) -> None:
    @case(f"conv2d {name}, forward and backward")
    def conv2d(torch: ModuleType) -> Timed:
        x = torch.randn(*image, requires_grad=True)
        weight = torch.randn(*filters, requires_grad=True)

        def step():
            x.grad = weight.grad = None
            y = torch.nn.functional.conv2d(x, weight, **options)
            y.sum().backward()
            return weight.grad

        return step


_conv2d("32x1x28x28 by 16 of 3x3", (32, 1, 28, 28), (16, 1, 3, 3), padding=1)
_conv2d("32x32x14x14 by 64 of 3x3", (32, 32, 14, 14), (64, 32, 3, 3), padding=1)
_conv2d("16x64x28x28 by 64 of 1x1", (16, 64, 28, 28), (64, 64, 1, 1))
_conv2d("8x3x64x64 by 16 of 5x5, stride 2", (8, 3, 64, 64), (16, 3, 5, 5), stride=2)
