"""Random tensors, and tensors filled in place with random numbers.

With the same seed, the numbers equal PyTorch's numbers bit for bit. The gradient of random samples is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller
from typing import Any

import numpy
from numpy import ndarray

from ... import dtypes
from ...codegen.kernel import Kernel
from ...device import cpu, strided
from ...dispatch.annotations import Array, Float
from ...dispatch.arguments import MISSING, invalid_arguments, is_number, require
from ...dispatch.array_functions import computed
from ...dispatch.decorators import internal, operator, public, tensors
from ...dispatch.meta import place_like
from ...dispatch.out import check_castable, refuse_gradient, resize
from ...dispatch.signatures import NEW
from ...kernels.create import random as kernels
from ...kernels.memory import copying
from ...kernels.runtime.floating import refuse
from ...kernels.runtime.shapes import broadcast_shapes
from ...random import Generator, default_generator
from ...tape import modes
from ...tape.modes import is_grad_enabled
from ...tensor import Tensor, wrap
from ..declaring.formulas import zero
from ..memory.conversion import checked_dtype, on_meta
from .batches import like_batch, one_by_one, under_vmap, with_batch_size
from .creation import check_request, checked_shape, leaf, made, result_dtype, shape_of
from .like import empty_array_like, sparse_like


def stream_of(generator: Any) -> kernels.Stream:
    """Return the stream of `generator`, or the default stream. Raise TypeError if it is neither a generator nor None."""
    if modes.FLAGS.special:
        check_levels()
    if generator is None:
        return default_generator._stream
    if not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    return generator._stream


def check_levels() -> None:
    """Raise an error in a `vmap` with different random numbers per example, because one draw would serve all examples.

    If a function is being captured, record that it draws.
    """
    if modes.STATE.capture is not None:
        modes.STATE.capture.draws()
    for level in modes.STATE.interpreters:
        if hasattr(level, "drawn") and level.random() == "different":
            raise RuntimeError(
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
                "randomness. If this is necessary for your usage, please file an issue with functorch."
            )


# --- new tensors ----------------------------------------------------------------------------------------------


def _drawn(out: Any, sampler: Any, generator: Any, parameters: tuple[Any, ...], shape: Any, dtype: Any) -> Any:
    """Draw with `sampler` into a new array, in the memory order of the tensor `out` if it has this `shape`."""
    alike = out is not None and out._array.shape == shape
    array = copying.empty_like(out._array) if alike else numpy.empty(shape, dtype)
    return sampler(stream_of(generator), array, *parameters)


def _draw(out: Any, sampler: Any, generator: Any, *parameters: Any) -> Any:
    """Return the function that draws an array of a given shape and dtype. A captured program draws at each of its calls."""
    draw = partial(_drawn, out, sampler, generator, parameters)
    if modes.STATE.capture is None or out is not None:
        return draw
    return lambda shape, dtype: computed(draw, shape, dtype, keeps=True)._array


def _sampled(name, sampler, doc):
    def create(
        *sizes, size=None, generator=None, out=None, dtype=None, layout=None, device=None, pin_memory=False,
        requires_grad=False,
    ):  # fmt: skip
        kind = None if dtype is out is None else result_dtype(name, dtype, out)
        kind = kind or dtypes.get_default_dtype()
        shape = shape_of(sizes, size, name)
        if out is device is layout is None and pin_memory is requires_grad is False and not modes.FLAGS.special:
            return wrap(sampler(stream_of(generator), numpy.empty(shape, kind.numpy)))
        return made(name, shape, kind, _draw(out, sampler, generator), out, requires_grad, device, pin_memory, layout)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = doc
    return public()(under_vmap(with_batch_size)(create))


def _drawn_like(like: Any, dtype: Any, order: Any, sample: Any, generator: Generator | None, *parameters: Any) -> Any:
    """Return the numbers that `sample` draws into a new array like `like`."""
    return sample(stream_of(generator), copying.empty_like(like, dtype, order), *parameters)


def _sampled_like(name, sample, method, doc):
    def create(
        input=None, *, generator=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False,
        memory_format=None, x=None,
    ):  # fmt: skip
        input = input if x is None else x
        plain = type(input) is Tensor and type(input._array) is ndarray and not modes.FLAGS.special
        if plain and dtype is memory_format is layout is device is None and pin_memory is requires_grad is False:
            return wrap(_drawn_like(input._array, None, None, sample, generator))
        fill = methodcaller(method, generator=generator)
        made = sparse_like(input, dtype, layout, requires_grad, device, fill)
        if made is not None:
            return made
        array = empty_array_like(input, name, dtype, memory_format, device)
        device = place_like(input, device)
        check_request(name, array.dtype, None, requires_grad, device, pin_memory, layout)
        if not on_meta(device):
            kind, array = array.dtype, None  # its memory is free before other memory is taken
            array = computed(_drawn_like, input, kind, memory_format, sample, generator, keeps=True)._array
        return leaf(array, requires_grad, device, pin_memory, layout)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = doc
    return public()(under_vmap(like_batch)(create))


rand = _sampled(
    "rand",
    kernels.uniform_,
    """Numbers evenly spread over [0, 1).

    >>> import adjoint as torch
    >>> torch.rand(2, generator=torch.Generator().manual_seed(0))
    tensor([0.4963, 0.7682])
    """,
)
randn = _sampled("randn", kernels.normal_, "Normally distributed numbers of mean 0 and variance 1.")
rand_like = _sampled_like(
    "rand_like", kernels.uniform_, "uniform_", "Numbers evenly spread over [0, 1), in the shape of `input`."
)
randn_like = _sampled_like(
    "randn_like", kernels.normal_, "normal_", "Normally distributed numbers in the shape of `input`."
)


def _whole(value, function, name, position):
    require("Int", value, function, name, position)
    return value.__index__()


@public()
@under_vmap(with_batch_size)
def randint(
    *arguments, low=0, high=None, size=None, generator=None, out=None, dtype=None, layout=None, device=None,
    pin_memory=False, requires_grad=False,
):  # fmt: skip
    """Integers in [low, high). Call `randint(high, size)` or `randint(low, high, size)`.

    >>> import adjoint as torch
    >>> torch.randint(10, (3,), generator=torch.Generator().manual_seed(0))
    tensor([4, 9, 3])
    """
    given: Sequence[Any] = arguments
    position = None
    if size is None:
        if not given or (len(given) == 1 and high is None):
            raise TypeError('randint() missing 1 required positional arguments: "size"')
        *given, size = arguments
        position = min(len(arguments), 3)
    shape = checked_shape(size, "randint", position)
    if len(given) == 2:
        low, high = given
    elif given:
        low, high = (low, given[0]) if high is None else (given[0], high)
    if type(low) is not int or type(high) is not int:
        low, high = _whole(low, "randint", "low", 1), _whole(high, "randint", "high", max(len(given), 1))
    kind = (None if dtype is out is None else result_dtype("randint", dtype, out)) or dtypes.int64
    if out is device is layout is None and pin_memory is requires_grad is False and not modes.FLAGS.special:
        return wrap(kernels.random_(stream_of(generator), numpy.empty(shape, kind.numpy), low, high))
    draw = _draw(out, kernels.random_, generator, low, high)
    return made("randint", shape, kind, draw, out, requires_grad, device, pin_memory, layout)


@public()
@under_vmap(like_batch)
def randint_like(
    input, *bounds, low=0, high=None, generator=None, dtype=None, layout=strided, device=None, pin_memory=False,
    requires_grad=False, memory_format=None,
):  # fmt: skip
    """Integers in [low, high), with the shape and the dtype of `input`.

    Call `randint_like(input, high)` or `randint_like(input, low, high)`.
    """
    if len(bounds) == 2:
        low, high = bounds
    elif bounds:
        low, high = (low, bounds[0]) if high is None else (bounds[0], high)
    fill = methodcaller("random_", low, high, generator=generator)
    made = sparse_like(input, dtype, None if layout is strided else layout, requires_grad, device, fill)
    if made is not None:
        return made
    array = empty_array_like(input, "randint_like", dtype, memory_format, device)
    low, high = _whole(low, "randint_like", "low", 2), _whole(high, "randint_like", "high", 2)
    device = place_like(input, device)
    check_request("randint_like", array.dtype, None, requires_grad, device, pin_memory, layout)
    if not on_meta(device):
        like, array = (input, array.dtype, memory_format), None
        array = computed(_drawn_like, *like, kernels.random_, generator, low, high, keeps=True)._array
    return leaf(array, requires_grad, device, pin_memory, layout)


@public()
@under_vmap(one_by_one)
def randperm(
    n, *, generator=None, out=None, dtype=dtypes.int64, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """The integers from 0 to n - 1 in random order."""
    n = _whole(n, "randperm", "n", 1)
    plain = out is device is layout is None and pin_memory is requires_grad is False and not modes.FLAGS.special
    if plain and dtype is dtypes.int64:
        return wrap(kernels.randperm(stream_of(generator), n, dtype.numpy))
    require("Tensor", out, "randperm", "out") if out is not None else None
    kind = out.dtype if out is not None else checked_dtype(dtype, "randperm")

    def draw(shape: tuple[int], dtype: Any) -> Any:
        return kernels.randperm(stream_of(generator), *shape, dtype)

    return made("randperm", (n,), kind, draw, out, requires_grad, device, pin_memory, layout)


def drawing(sampler: Callable[..., Any], *, like_first: bool = False) -> Callable[..., Any]:
    """Return the kernel of an operator whose last argument is a generator.

    The kernel calls `sampler(stream, ...)` with the other arguments.

    With `like_first`, the sampler fills a new array like the first argument, in place of this argument.
    """

    def kernel(*parameters: Any, generator: Any = MISSING) -> Any:
        if generator is MISSING:
            *parameters, generator = parameters  # type: ignore[assignment]
        if like_first:
            parameters = numpy.empty_like(parameters[0]), *parameters[1:]
        return sampler(stream_of(generator), *parameters)

    kernel.__name__ = sampler.__name__
    return kernel


# --- drawn with given parameters ------------------------------------------------------------------------------


@internal(drawing(kernels.normal), node="NormalBackward1", batch="elementwise", aten_name="normal", narrow="halves")
class normal_of_mean:
    """Normally distributed numbers with the given means and one standard deviation."""

    real_derivative = "normal"

    def forward(mean: Array, std=1.0, *, generator=None): ...

    grad_mean = zero


@internal(drawing(kernels.normal), node="NormalBackward2", batch="elementwise", aten_name="normal")
class normal_of_std:
    """Normally distributed numbers with one mean and the given standard deviations."""

    real_derivative = "normal"

    def forward(mean, std: Array, *, generator=None): ...

    grad_std = zero


@internal(drawing(kernels.normal), node="NormalBackward3", batch="elementwise", aten_name="normal")
class normal_of_both:
    """Normally distributed numbers of the given means and standard deviations."""

    real_derivative = "normal"

    def forward(mean: Array, std: Array, *, generator=None): ...

    grad_mean = zero
    grad_std = zero


_DRAWN = "*, torch.Generator generator = None, Tensor out = None"


@public(
    name="normal",
    forms=(
        f"Tensor mean, Tensor std, {_DRAWN}",
        f"Tensor mean, float std = 1, {_DRAWN}",
        f"float mean, Tensor std, {_DRAWN}",
        f"float mean, float std, tuple of ints size, {_DRAWN}, {NEW}",
    ),
)
def normal_function(
    mean, std=1.0, size=None, *, generator=None, out=None, dtype=None, layout=None, device=None, pin_memory=False,
    requires_grad=False,
):  # fmt: skip
    """Normally distributed numbers: one for each mean or standard deviation in a tensor, or `size` numbers of one distribution.

    >>> import adjoint as torch
    >>> torch.normal(2.0, 3.0, (2,), generator=torch.Generator().manual_seed(0))
    tensor([6.6230, 1.1197])
    """
    of_tensors = isinstance(mean, Tensor) or isinstance(std, Tensor)
    numbers = all(isinstance(value, Tensor) or is_number(value) for value in (mean, std))
    if not numbers or of_tensors == (size is not None) or (of_tensors and dtype is not None):
        raise invalid_arguments("normal", mean, std, *([] if size is None else [size]))
    if out is not None and of_tensors:
        return _normal_into(out, mean, std, generator)
    if isinstance(mean, Tensor):
        draw = normal_of_both if isinstance(std, Tensor) else normal_of_mean
        return draw(mean, std, generator=generator)
    if isinstance(std, Tensor):
        return normal_of_std(mean, std, generator=generator)
    kind = result_dtype("normal", dtype, out) or dtypes.get_default_dtype()
    shape = checked_shape(size, "normal")
    device = cpu if device is None else device  # in PyTorch, for any default dtype
    draw = _draw(out, kernels.normal_, generator, mean, std)
    options = kind, draw, out, requires_grad, device, pin_memory, layout
    return _normal_of_numbers(*options, size=shape) if out is None else made("normal", shape, *options)


@under_vmap(with_batch_size)
def _normal_of_numbers(*options, size):
    return made("normal", size, *options)


def _normal_into(out, mean, std, generator):
    """Draw in the memory order of `out`, which gets the shape of mean and std. It may be larger if std is a number."""
    parameters = [value for value in (mean, std) if isinstance(value, Tensor)]
    refuse_gradient("normal", [*parameters, out])
    if not (out.dtype.is_floating_point or out.dtype.is_complex):
        raise refuse("normal_kernel_cpu", out._array)
    for value in parameters:
        check_castable(value.dtype, out.dtype)
    each = isinstance(std, Tensor)
    if each:
        kernels.check_deviations(std._array)
    resize(out, broadcast_shapes(*(value._array.shape for value in (parameters if each else [mean, out]))))
    if each:
        out.normal_(0.0, 1.0, generator=generator).mul_(std)
    else:
        out.normal_(0.0, std, generator=generator)
    return tensors.add(mean, out, out=out)


@internal(drawing(kernels.bernoulli), node="BernoulliBackward0", batch="leading", aten_name="bernoulli")
class bernoulli_of_each:
    """1 or 0 for each element of `self`, which is the probability of 1."""

    def forward(self: Array, *, generator=None): ...

    grad_self = zero


@internal(
    drawing(lambda stream, like, p: kernels.bernoulli_(stream, numpy.empty(like.shape, like.dtype), p)),
    node="BernoulliBackward0",
    batch="leading",
    aten_name="bernoulli",
)
class bernoulli_of_one:
    """Random zeros and ones in the shape of `self`. The probability of 1 is `p`."""

    def forward(self: Array, p, *, generator=None): ...

    grad_self = zero


@public(name="bernoulli", method=True)
def bernoulli_function(input=None, p=None, *, generator=None, out=None, x=None):
    """1 or 0 for each element of `input`. The probability of 1 is the element itself, or `p` if it is given."""
    input = x if input is None else input
    if out is not None:
        if input.requires_grad and is_grad_enabled():
            raise RuntimeError(
                "bernoulli(): functions with out=... arguments don't support automatic differentiation, but one of the "
                "arguments requires grad."
            )
        draw = _draw(out, kernels.bernoulli_, generator, input._array if p is None else p)
        return made("bernoulli", input._array.shape, out.dtype, draw, out)
    if p is None:
        return bernoulli_of_each(input, generator=generator)
    return bernoulli_of_one(input, p, generator=generator)


# --- in place -------------------------------------------------------------------------------------------------


def drawn(sampler: Any, node: str, **options: Any) -> Any:
    """Declare an operator that fills its tensor with the samples of `sampler(stream, array, ...)`."""

    def declare(declaration: Any) -> Any:
        declaration.grad_self = zero
        return operator(
            namespace=None,
            method=False,
            out=False,
            inplace=True,
            kernel=Kernel(drawing(sampler, like_first=True), inplace=drawing(sampler)),
            node=node,
            batch="leading",
            **options,
        )(declaration).inplace

    return declare


@drawn(kernels.normal_, "NormalBackward0", narrow="converts", sparse="compressed_values")
class normal:
    """Fill the tensor with normally distributed numbers."""

    def forward(self: Array, mean: Float = 0.0, std: Float = 1.0, *, generator=None): ...


@drawn(kernels.log_normal_, "LogNormalBackward0")
class log_normal:
    """Fill the tensor with numbers whose logarithms are normally distributed."""

    def forward(self: Array, mean: Float = 1.0, std: Float = 2.0, *, generator=None): ...


@drawn(kernels.cauchy_, "CauchyBackward0")
class cauchy:
    """Fill the tensor with numbers from the Cauchy distribution."""

    def forward(self: Array, median: Float = 0.0, sigma: Float = 1.0, *, generator=None): ...


@drawn(kernels.exponential_, "ExponentialBackward0")
class exponential:
    """Fill the tensor with numbers from the exponential distribution of rate `lambd`."""

    def forward(self: Array, lambd: Float = 1.0, *, generator=None): ...


@drawn(kernels.geometric_, "GeometricBackward0")
class geometric:
    """Fill the tensor with the number of trials up to the first success. Each trial succeeds with probability `p`."""

    def forward(self: Array, p, *, generator=None): ...


@drawn(kernels.uniform_, "UniformBackward0", narrow="converts")
class uniform:
    """Fill the tensor with numbers from the uniform distribution over [low, high)."""

    def forward(self: Array, low: Float = 0.0, high: Float = 1.0, *, generator=None): ...


@drawn(kernels.random_, "RandomBackward2")
class random:
    """Fill the tensor with integers from 0 to the end of the range in which its dtype represents every integer."""

    def forward(self: Array, *, generator=None): ...


@drawn(
    lambda stream, array, to: kernels.random_(stream, array, 0, to),
    "RandomBackward1",
    aten_name="random",
    aten="default, to",
)
class random_to:
    """Fill the tensor with integers in [0, to)."""

    def forward(self: Array, to, *, generator=None): ...


@drawn(kernels.random_, "RandomBackward0", aten_name="random", aten="default, from")
class random_between:
    """Fill the tensor with integers in [low, high)."""

    def forward(self: Array, low, high, *, generator=None): ...


@drawn(kernels.bernoulli_, "BernoulliBackward2", aten="default, float")
class bernoulli:
    """Fill the tensor with random zeros and ones. The probability of 1 is `p`."""

    def forward(self: Array, p=0.5, *, generator=None): ...


@internal(
    Kernel(drawing(kernels.bernoulli_, like_first=True), inplace=drawing(kernels.bernoulli_)),
    out=False,
    inplace=True,
    node="BernoulliBackward1",
    batch="elementwise",
    aten_name="bernoulli",
    vmap_name="inplace bernoulli",
)
class bernoulli_of_tensor:
    """Fill the tensor with random zeros and ones. The elements of `p` are the probabilities of 1."""

    def forward(self: Array, p: Array, *, generator=None): ...

    grad_self = zero
    grad_p = zero


def _interval(function, limits, names, defaults):
    """Return the arguments `from` and `to`. Python does not allow `from` as the name of a parameter."""
    if len(limits) > 2:
        raise TypeError(f"{function}() takes from 0 to 2 positional arguments but {len(limits)} were given")
    given = dict(zip(("from", "to"), limits, strict=False))
    for name in names:
        if name not in ("from", "to") or name in given:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
    return {**defaults, **given, **names}


@public(namespace=None, method=True)
def uniform_(input, *limits, generator=None, **names):
    """Fill the tensor with numbers from the uniform distribution over [from, to): `uniform_(from=0, to=1)`."""
    if not limits and not names:
        return uniform(input, generator=generator)
    return uniform(input, *_interval("uniform_", limits, names, {"from": 0.0, "to": 1.0}).values(), generator=generator)


@public(namespace=None, method=True)
def random_(input, *limits, generator=None, **names):
    """Fill the tensor with integers: `random_()`, `random_(to)` in [0, to), `random_(from, to)` in [from, to).

    Without limits, the integers start at 0 and end where the dtype no longer represents every integer.
    """
    if not limits and not names:
        return random(input, generator=generator)
    if len(limits) == 1 and not names:
        return random_to(input, limits[0], generator=generator)
    interval = _interval("random_", limits, names, {})
    if "from" in interval:
        return random_between(input, interval["from"], interval.get("to"), generator=generator)
    return random_to(input, interval["to"], generator=generator)


@public(namespace=None, method=True)
def bernoulli_(input, p=0.5, *, generator=None):
    """Fill the tensor with random zeros and ones. The probability of 1 is `p`, a number or a tensor."""
    if isinstance(p, Tensor):
        if p._array.ndim > input._array.ndim:
            return bernoulli_of_tensor.inplace(input, p.expand(input._array.shape), generator=generator)
        return bernoulli_of_tensor.inplace(input, p, generator=generator)
    return bernoulli(input, p, generator=generator)


del Tensor.random_to_, Tensor.random_between_  # type: ignore[attr-defined]
