"""Fractional max pooling (Graham, 2014)."""

from __future__ import annotations

from ...dispatch.annotations import Array
from ...dispatch.decorators import publish, tensors
from ...kernels.nn import pooling as kernels
from .pooling import _declare, _scattering_operator


def _operators(dims):
    name, node = f"fractional_max_pool{dims}d", f"FractionalMaxPool{dims}DBackward"

    class declaration:
        """The largest element of each window, and its index. The positions of the windows are random."""

        differentiable = ("self",)
        nondifferentiable = ("result1",)
        aten_gradients = {"self": f"{name}_backward(grads[0], self, kernel_size, output_size, result1)"}

        def forward(self: Array, kernel_size, output_size, random_samples: Array): ...

        def grad_self(grads, self, result1, kernel_size, output_size, xp):
            return getattr(xp, f"{name}_backward")(grads[0], self, result1)  # type: ignore[index]

    _scattering_operator(f"{name}_backward", f"{node}Backward0", dims)
    outputs = ("result0", "result1")
    return _declare(
        declaration, kernels.fractional_max_pool, f"{name}_of", f"{node}0", dims, outputs=outputs, aten_name=name
    )


def _sizes(value, dims, words):
    values = (value,) * dims if isinstance(value, int) else tuple(value)
    if len(values) != dims:
        raise RuntimeError(words)
    return values


def _function(dims):
    pool, name = _operators(dims), f"fractional_max_pool{dims}d"

    def fractional_max_pool(input, kernel_size, output_size, random_samples):
        words = f"{name}: {{}} must either be a single Int or tuple of {'three ' * (dims == 3)}Ints"
        kernel = _sizes(kernel_size, dims, words.format("kernel_size"))
        size = _sizes(output_size, dims, words.format("output_size"))
        shape = input._array.shape
        function = f"{name}{'_out' if dims == 3 else ''}()"
        if len(shape) not in (dims + 1, dims + 2):
            raise RuntimeError(f"{function}: Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(shape)}")
        for dim in range(1, len(shape)):
            if shape[dim] == 0:
                raise RuntimeError(
                    f"{function}: Expected input to have non-zero size for non-batch dimensions, but got{list(shape)} with "
                    f"dimension {dim} being empty."
                )
        if random_samples.dtype != input.dtype:
            raise RuntimeError("Expect _random_samples to have the same dtype as input")
        drawn = random_samples._array.shape
        if len(drawn) != 3:
            raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {len(drawn)}")
        batch = shape[0] if len(shape) == dims + 2 else 1
        if drawn[0] < batch:
            raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
        if drawn[1] != shape[-dims - 1]:
            raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
        if drawn[2] != dims:
            raise RuntimeError(f"Expect _random_samples.size(2) equals to {dims}; got {drawn[2]}.")
        return pool(input, kernel, size, random_samples[:batch])

    fractional_max_pool.__name__ = fractional_max_pool.__qualname__ = name
    fractional_max_pool.__doc__ = "The largest element of windows that random numbers place, and its flat index."
    setattr(tensors, name, fractional_max_pool)
    publish("functional", **{name: fractional_max_pool})  # type: ignore[arg-type]


for _dims in (2, 3):
    _function(_dims)
