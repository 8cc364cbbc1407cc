"""PowerSGD: gradients of matrices are sent as products of two thin matrices, which one step of power iteration computes.

The error of one step's compression is added to the gradient of the next step (error feedback).

Reference: T. Vogels, S. P. Karimireddy and M. Jaggi, "PowerSGD: Practical low-rank gradient compression for distributed
optimization", NeurIPS 2019.
"""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch

from ...collectives import all_reduce
from ...groups import default_group
from .default_hooks import allreduce_hook

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """The state that the hook stores between steps.

    Args:
        process_group: the participating processes; all if None.
        matrix_approximation_rank: the number of columns of the thin matrices.
        start_powerSGD_iter: the first step with compression. Earlier steps average the gradients unchanged.
        min_compression_rate: a matrix is compressed if its size decreases by more than this factor.
        use_error_feedback: whether the compression error is added to later gradients.
        warm_start: whether the power iteration starts from the thin matrix of the previous step.
        orthogonalization_epsilon: a number that is added to norms, to avoid a division by zero.
        random_seed: the seed for the first thin matrices. All ranks must use the same seed.
        compression_stats_logging_frequency: accepted for compatibility. Nothing is logged.
        batch_tensors_with_same_shape: accepted for compatibility. Matrices are compressed one by one.
    """

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can "
                "only be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.generator = torch.Generator()
        self.generator.manual_seed(random_seed)
        self.iter = 0
        self.error_dict: dict[int, Any] = {}
        self.p_memory_dict: dict[int, list[Any]] = {}
        self.q_memory_dict: dict[int, list[Any]] = {}
        self.total_numel_before_compression = 0
        self.total_numel_after_compression = 0

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Count the step when its last bucket arrives."""
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self) -> tuple[float, int, int]:
        """Return the compression factor, and the numbers of elements before and after compression."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0.0), before, after


def powerSGD_hook(state: PowerSGDState, bucket: Any) -> Any:
    """Average the gradients: matrices as products of thin matrices, other tensors unchanged."""
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    matrices: list[Any] = []
    others: list[Any] = []
    for gradient in bucket.gradients():
        matrix = gradient.reshape(gradient.shape[0], -1) if gradient.dim() else gradient.reshape(1, 1)
        (matrices if _worthwhile(state, matrix) else others).append(matrix)
    return _reduce(state, bucket, bucket.buffer(), matrices, others)


def batched_powerSGD_hook(state: PowerSGDState, bucket: Any) -> Any:
    """Average all gradients as one square matrix, which is a product of thin matrices. This is faster and less accurate."""
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    buffer = bucket.buffer()
    side = math.ceil(math.sqrt(buffer.numel()))
    square = torch.zeros(side * side, dtype=buffer.dtype)
    square[: buffer.numel()] = buffer
    future = _reduce(state, bucket, square, [square.view(side, side)], [])
    return future.then(lambda done: buffer.copy_(done.value()[: buffer.numel()]))


def _worthwhile(state: PowerSGDState, matrix: Any) -> bool:
    """Return whether the thin matrices are sufficiently smaller than the matrix."""
    rows, columns = matrix.shape
    rank = min(rows, columns, state.matrix_approximation_rank)
    compressed = (rows + columns) * rank
    worthwhile = compressed * state.min_compression_rate < rows * columns
    state.total_numel_before_compression += rows * columns
    state.total_numel_after_compression += compressed if worthwhile else rows * columns
    return bool(worthwhile)


def _reduce(state: PowerSGDState, bucket: Any, whole: Any, matrices: list[Any], others: list[Any]) -> Any:
    """Return the future of `whole`, after its parts `matrices` and `others` have been averaged in place."""
    group = state.process_group if state.process_group is not None else default_group()
    size, number = group.size(), bucket.index()
    if state.use_error_feedback:
        left = state.error_dict.get(number)
        if left is not None:
            whole.add_(left)
        state.error_dict[number] = whole.clone()
    wide = state.q_memory_dict.get(number) if state.warm_start else None
    if wide is None:
        wide = [_random(state, matrix) for matrix in matrices]
    for each in wide:
        _orthogonalize(each, state.orthogonalization_epsilon)
    tall = [matrix @ each for matrix, each in zip(matrices, wide, strict=True)]
    work: Any = all_reduce_all([*others, *tall], group)

    def finish(done: Any) -> Any:
        for other in others:
            other.div_(size)
        for each in tall:
            _orthogonalize(each, state.orthogonalization_epsilon)
        again = [matrix.t() @ each for matrix, each in zip(matrices, tall, strict=True)]
        all_reduce_all(again, group).wait()
        for matrix, first, second in zip(matrices, tall, again, strict=True):
            torch.matmul(first, second.div_(size).t(), out=matrix)
        if state.use_error_feedback:
            state.error_dict[number] -= whole
        if state.warm_start:
            state.p_memory_dict[number], state.q_memory_dict[number] = tall, again
        state.maybe_increase_iter(bucket)
        return whole

    return work.get_future().then(finish)


def all_reduce_all(tensors: list[Any], group: Any) -> Any:
    """Start to sum several tensors over all ranks, in one collective. Return the handle."""
    flat = torch.cat([tensor.reshape(-1) for tensor in tensors]) if tensors else torch.zeros(0)
    work: Any = all_reduce(flat, group=group, async_op=True)

    def put(done: Any) -> None:
        start = 0
        for tensor in tensors:
            tensor.copy_(flat[start : start + tensor.numel()].view(tensor.shape))
            start += tensor.numel()

    return _Then(work, work.get_future().then(put))


class _Then:
    """A handle that is complete when the step after a collective has run."""

    def __init__(self, work: Any, future: Any) -> None:
        self.work, self.future = work, future

    def wait(self) -> None:
        self.future.wait()

    def get_future(self) -> Any:
        return self.future


def _random(state: PowerSGDState, matrix: Any) -> Any:
    rank = min(*matrix.shape, state.matrix_approximation_rank)
    return torch.randn(matrix.shape[1], rank, generator=state.generator, dtype=matrix.dtype)


def _orthogonalize(matrix: Any, epsilon: float) -> None:
    """Make the columns orthonormal in place, by Householder reflections, or by the Gram-Schmidt method with `epsilon`."""
    if not epsilon and matrix.shape[0] >= matrix.shape[1]:
        matrix.copy_(torch.linalg.qr(matrix if matrix.dtype is torch.float64 else matrix.float())[0])
        return
    for number in range(matrix.shape[1]):
        column = matrix[:, number : number + 1]
        column.div_(column.norm() + epsilon)
        rest = matrix[:, number + 1 :]
        if rest.numel():
            rest.sub_(column @ (column.t() @ rest))
