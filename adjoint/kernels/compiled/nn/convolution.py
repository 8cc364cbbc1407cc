"""Compiled convolutions, which pack the input in blocks that stay in the cache and never store patches.

The plans of the functions in `kernels.nn.convolution`, which describes their arguments.
"""

from __future__ import annotations

from ....codegen.llvm.kernels import *
from ...memory.copying import widen
from ...nn.convolution import output_sizes
from ...runtime import parallel
from ...runtime.floating import compute_dtype
from ...runtime.layout import row_major
from ...runtime.parallel import get_num_threads
from .convolution_channels import ChannelPlan
from .convolution_geometry import Axis, forward_axis, input_axis
from .convolution_plan import CorrelationPlan, ProductPlan, Work

Sizes = tuple[int, ...]


@functools.lru_cache(256)
def _plan(
    make: Callable[..., Axis], kind: Callable[..., Any], shape: Sizes, kernel: Sizes, output: Sizes | None,
    stride: Sizes, padding: Sizes, dilation: Sizes, groups: int, dtype: numpy.dtype[Any], threads: int,
) -> Any:  # fmt: skip
    """Return the plan for an input of `shape` and a weight of shape `kernel`, or None if there is no loop."""
    if output is None:
        output = output_sizes(shape[2:], kernel[2:], stride, padding, dilation)
    if len(shape) > 5 or 0 in shape or 0 in kernel or 0 in output or dtype.char not in "fd" or not dtype.isnative:
        return None
    transpose = make is input_axis
    result = shape if transpose else (shape[0], kernel[0], *output)
    input, taps = shape[2:], kernel[2:]
    if math.prod(taps) == math.prod(stride) == 1 and not any(padding):
        input, taps, output = (math.prod(input),), (1,), (math.prod(output),)
    axes = [make(1, 1, 1, 0, 1, 1)] * (3 - len(input))
    axes += [make(*sizes) for sizes in zip(input, taps, stride, padding, dilation, output, strict=False)]
    ins, outs = kernel[1], kernel[0] // groups
    if transpose:
        ins, outs = outs, ins
    work = Work((axes[0], axes[1], axes[2]), shape[0], groups, ins, outs, dtype.itemsize, threads)
    if kind is ProductPlan and ChannelPlan.takes(work):
        kind = ChannelPlan
    plan = kind(work, dtype)
    plan.result_shape = kernel if kind is CorrelationPlan else result
    if kind is ProductPlan:
        count = math.prod(taps)
        plan.weight_strides = (ins * outs * count, *((count, outs * count) if transpose else (ins * count, count)))
    return plan


def _convolve(plan: ProductPlan, x: ndarray, weight: ndarray, bias: ndarray | None, result: ndarray) -> None:
    """Write the sums over taps and input channels, plus `bias`."""
    x, steps = (x, plan.source_steps) if x.flags.c_contiguous else plan.source(x)
    memory = workspace("convolution", plan.weights_size + (plan.ranges * plan.scratch_pitch or 1), x.dtype)
    factors, packed = memory[: plan.weights_size], memory[plan.weights_size :]
    launch(
        plan.weight_kernel, plan.weight_blocks, plan.weight_block_bytes, factors, weight, *plan.of_weights,
        *plan.weight_strides,
    )  # fmt: skip
    launch(
        plan.kernel, plan.ranges, plan.range_bytes, result, x, factors,
        plan.nothing if bias is None else bias, packed, *plan.constants, steps.numbers,
    )  # fmt: skip


Layout = tuple[Any, ...]
"""The stride, the padding, the dilation and the number of groups."""


def _fit(shape: Sizes, kernel: Sizes, result: Sizes | None, layout: Layout) -> bool:
    """Return whether a weight of shape `kernel` convolves an array of `shape` to a result of the given shape."""
    *along, groups = layout
    if not len(shape) == len(kernel) == len(along[0]) + 2 == len(along[1]) + 2 == len(along[2]) + 2 or groups < 1:
        return False
    if shape[1] != kernel[1] * groups or kernel[0] % groups:
        return False
    sizes = output_sizes(shape[2:], kernel[2:], *along)
    return min(sizes) > 0 and (result is None or result == (shape[0], kernel[0], *sizes))


def _with_weight(
    make: Callable[..., Axis], input: ndarray, weight: ndarray, bias: ndarray | None, shape: Sizes, layout: Layout
) -> Any:
    """Return the plan of a convolution or of its transpose. `shape` is the shape of the convolution's input."""
    given, dtype, wshape = input.dtype, compute_dtype(input.dtype), weight.shape
    transpose = make is input_axis
    if compute_dtype(weight.dtype) != dtype or not _fit(shape, wshape, input.shape if transpose else None, layout):
        return NotImplemented
    outs = shape[1] if transpose else wshape[0]
    if bias is not None and (bias.shape != (outs,) or compute_dtype(bias.dtype) != dtype):
        return NotImplemented
    output = input.shape[2:] if transpose else None

    @functools.cache
    def plan_for(threads: int) -> Any:
        return _plan(make, ProductPlan, shape, wshape, output, *layout, dtype, threads)

    first = plan_for(get_num_threads())
    if first is None:
        return NotImplemented
    ready = all(each is None or (each.dtype is dtype and each.flags.c_contiguous) for each in (weight, bias))

    @recordable
    def into(out: Sequence[ndarray], input: ndarray, weight: ndarray, bias: ndarray | None, *_: Any) -> None:
        plan, x, result = keeping(plan_for(parallel.num_threads)), input, out[0]
        if not ready:
            weight, bias = row_major(widen(weight)), None if bias is None else row_major(widen(bias))
        if given is not dtype:
            x, result = widen(input), empty(plan.result_shape, dtype)
        if isinstance(plan, ChannelPlan):
            plan.run(x, weight, bias, result)
        else:
            _convolve(plan, x, weight, bias, result)
        if result is not out[0]:
            out[0][...] = result

    return Plan([Memory(first.result_shape, given)], into=into)


def conv_forward(input: ndarray, weight: ndarray, bias: ndarray | None, *layout: Any) -> Any:
    """Return the plan of the convolution of `input` with `weight`, plus `bias`."""
    return _with_weight(forward_axis, input, weight, bias, input.shape, layout)


def transposed(input: ndarray, weight: ndarray, bias: ndarray | None, output_shape: Sizes, *layout: Any) -> Any:
    """Return the plan of the transposed convolution of `input` with `weight`, plus `bias`."""
    return _with_weight(input_axis, input, weight, bias, output_shape, layout)


def conv_weight_grad(grad: ndarray, input: ndarray, weight_shape: Sizes, *layout: Any) -> Any:
    """Return the plan of the gradient of the weight, in which sums over parts of the batch are added in order."""
    given, dtype, shape, output = grad.dtype, compute_dtype(input.dtype), input.shape, grad.shape[2:]
    if compute_dtype(given) != dtype or not _fit(shape, weight_shape, grad.shape, layout):
        return NotImplemented

    @functools.cache
    def plan_for(threads: int) -> Any:
        return _plan(forward_axis, CorrelationPlan, shape, weight_shape, output, *layout, dtype, threads)

    if plan_for(get_num_threads()) is None:
        return NotImplemented
    plain = input.dtype is dtype and input.flags.c_contiguous

    @recordable
    def into(out: Sequence[ndarray], grad: ndarray, input: ndarray, *_: Any) -> Any:
        plan: Any = keeping(plan_for(parallel.num_threads))
        wide, grad_steps = plan.target(grad if given is dtype else widen(grad))
        x, steps = (input, plan.source_steps) if plain else plan.source(widen(input))
        memory = workspace("convolution", plan.totals_size + (plan.ranges * plan.scratch_pitch or 1), x.dtype)
        totals, packed = memory[: plan.totals_size], memory[plan.totals_size :]
        launch(
            plan.kernel, plan.ranges, plan.range_bytes, totals, wide, x, packed, plan.sizes.numbers, plan.records.numbers,
            plan.offsets.numbers, plan.dealing.numbers, steps.numbers, grad_steps.numbers,
        )  # fmt: skip
        result = out[0] if given is dtype else empty(weight_shape, dtype)
        found = new_flag(raises=False)
        launch(
            plan.sum_kernel, plan.sum_vectors, plan.sum_bytes, result, totals, found, plan.size,
            plan.ranges,
        )  # fmt: skip
        if is_set(found):
            return NotImplemented  # an infinity met the zeros between rows
        if result is not out[0]:
            out[0][...] = result
        return None

    return Plan([Memory(weight_shape, given)], into=into)
