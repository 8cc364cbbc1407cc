"""Averages gradients over processes while backward runs.

`Reducer` assigns gradients to buckets, and reduces each bucket when it is full.

Buckets hold parameters in the order in which their gradients arrive. Before the first backward, the order is assumed to
run from the last parameter to the first. The first backward reveals the actual order. All processes start their buckets
in the same order, even if gradients arrive in a different order.

Large gradients are reduced in place if neither a hook nor a view needs a buffer. Only small gradients are copied and
sent together. If gradients are views of buckets, ranks on one machine place the buckets in shared memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

import adjoint as torch

__all__ = ["Reducer"]

ALONE = 1 << 15
"""Gradients with more bytes are reduced in place."""


class Bucket:
    """A group of parameters whose gradients are reduced together.

    Attributes:
        numbers: the numbers of the parameters in this bucket.
        buffer: the tensor of one dimension into which gradients are copied.
        shared: the memory of the buffer, which all ranks of the group can access.
        views: by parameter number, the parts of the buffer in the shapes of the parameters.
        is_sparse: whether the bucket contains one parameter with sparse gradients, which need no buffer.
        missing: the number of gradients that have not arrived yet in this backward.
    """

    def __init__(
        self,
        numbers: list[int],
        parameters: list[Any],
        in_buffer: Callable[[Any], bool],
        sharing: Any = None,
        is_sparse: bool = False,
    ) -> None:
        self.numbers, self.is_sparse = numbers, is_sparse
        self.parameters = [parameters[number] for number in numbers]
        copied = [number for number in numbers if in_buffer(parameters[number])]
        sizes = [parameters[number].numel() for number in copied]
        dtype = self.parameters[0].dtype
        self.shared = torch.distributed.collectives.shared_buffer(sum(sizes), dtype, sharing) if sharing else None
        self.buffer = torch.from_numpy(self.shared.own) if self.shared else torch.zeros(sum(sizes), dtype=dtype)
        ends = accumulate(sizes)
        self.views = {
            number: self.buffer[end - size : end].view(parameters[number].shape)
            for number, size, end in zip(copied, sizes, ends, strict=True)
        }
        self.missing = len(numbers)
        self.placed: dict[int, Any] = {}
        self.pending: Any = None

    def place(self, number: int, parameter: Any, as_view: bool) -> None:
        """Take the gradient of a parameter, or zeros if the parameter has no gradient."""
        grad, view = parameter.grad, self.views.get(number)
        if view is None:
            self.placed[number] = self.zeros(parameter) if grad is None else grad
        elif grad is None:
            view.zero_()
        elif grad is not view:
            view.copy_(grad)
            if as_view:
                parameter.grad = view
        self.missing -= 1

    def zeros(self, parameter: Any) -> Any:
        """Return zeros in place of the gradient of a parameter."""
        zeros = torch.zeros_like(parameter)
        return zeros.detach().to_sparse(1) if self.is_sparse else zeros

    def whole(self) -> Any:
        """Return the argument of a hook: all gradients in one tensor."""
        return self.placed[self.numbers[0]] if self.is_sparse else self.buffer

    def pieces(self) -> list[Any]:
        """Return the tensors to reduce."""
        return [*([self.buffer] if self.views else []), *(self.placed[number] for number in sorted(self.placed))]

    def restart(self) -> None:
        """Prepare for the gradients of another backward."""
        self.missing = len(self.numbers)
        self.placed.clear()
        self.pending = None


class Reducer:
    """Averages the gradients of parameters over the processes of a group.

    Args:
        names, parameters: the parameters, in the same order in all processes.
        sparse: the names of the parameters with sparse gradients.
        group: the group of processes.
        cap_bytes: the size of a bucket. The first bucket is full at `first_bytes`, so that communication starts early.
        find_unused: whether a backward may skip parameters.
        as_views: whether `.grad` is a part of the bucket's memory after a backward.
        static: whether every backward uses the same parameters, each as often as in the first backward.
    """

    def __init__(
        self,
        names: list[str],
        parameters: list[Any],
        sparse: set[str],
        group: Any,
        cap_bytes: int,
        first_bytes: int,
        find_unused: bool,
        as_views: bool,
        static: bool,
    ) -> None:
        self.names, self.parameters, self.group = names, parameters, group
        self.sparse = {number for number, name in enumerate(names) if name in sparse}
        self.cap_bytes, self.first_bytes = cap_bytes, first_bytes
        self.find_unused, self.as_views, self.static = find_unused, as_views, static
        self.hook: tuple[Any, Callable[[Any, Any], Any]] | None = None
        self.expecting = self.finished = False
        self.arrived: dict[int, int] = {}
        self.uses: dict[int, int] | None = None
        self.unused: list[int] = []
        self.used: Any = None
        self.rebuilt = False
        self.launched = 0
        self.divisor: Callable[[], int] | None = None
        self.numbers = {id(parameter): number for number, parameter in enumerate(parameters)}
        self.assign(list(reversed(range(len(parameters)))))
        itself = weakref.ref(self)
        self.handles = [
            parameter.register_post_accumulate_grad_hook(_arrival(itself, number))
            for number, parameter in enumerate(parameters)
        ]

    # --- buckets ----------------------------------------------------------------------------------------------------

    def assign(self, order: list[int]) -> None:
        """Create buckets of the parameters in this order. Each bucket has one dtype."""
        self.buckets: list[Bucket] = []
        filling: dict[Any, tuple[list[int], int]] = {}
        limit = self.first_bytes
        for number in order:
            parameter = self.parameters[number]
            if number in self.sparse:
                self._add([number])
                continue
            held, size = filling.get(parameter.dtype, ([], 0))
            held.append(number)
            filling[parameter.dtype] = held, size + parameter.numel() * parameter.element_size()
            if filling[parameter.dtype][1] >= limit:
                self._add(filling.pop(parameter.dtype)[0])
                limit = self.cap_bytes
        for held, _ in filling.values():
            self._add(held)
        self.bucket_of = {number: bucket for bucket in self.buckets for number in bucket.numbers}

    def _add(self, numbers: list[int]) -> None:
        sharing = self.group if self.as_views and self.hook is None else None
        is_sparse = numbers[0] in self.sparse
        in_buffer = (lambda _: False) if is_sparse else self._in_buffer
        self.buckets.append(Bucket(numbers, self.parameters, in_buffer, sharing, is_sparse))

    def _in_buffer(self, parameter: Any) -> bool:
        whole = self.as_views or self.hook is not None
        return whole or parameter.numel() * parameter.element_size() <= ALONE or not parameter.is_contiguous()

    def set_hook(self, state: Any, hook: Callable[[Any, Any], Any]) -> None:
        """Let `hook(state, bucket)` reduce the buckets."""
        self.hook = state, hook
        self.assign([number for bucket in self.buckets for number in bucket.numbers])

    def rebuild(self) -> bool:
        """After the first backward, use the order in which gradients arrived at the first process.

        Return whether buckets have been created anew.
        """
        if self.rebuilt or not self.finished or (self.find_unused and not self.static):
            return False
        order = [*self.arrived, *(number for number in self.unused if number not in self.arrived)]
        told = torch.tensor(order if len(order) == len(self.parameters) else list(range(len(self.parameters))))
        torch.distributed.broadcast(told, group=self.group, group_src=0)
        self.assign(told.tolist())
        self.rebuilt = True
        return True

    # --- one backward -----------------------------------------------------------------------------------------------

    def expect(self, outputs: Iterator[Any] | None) -> None:
        """Prepare for the gradients of a backward from `outputs`, which are needed only if parameters may be unused.

        Raises:
            RuntimeError: if the previous backward has skipped parameters.
        """
        if self.expecting and self.arrived:
            self.check_finished()
        for bucket in self.buckets:
            bucket.restart()
        self.launched = 0
        self.expecting, self.finished = True, False
        self.arrived = {}
        self.used = None
        if self.static and self.uses is not None:
            self.unused = [number for number in range(len(self.parameters)) if number not in self.uses]
        elif self.find_unused and outputs is not None and not self.static:
            reached = {self.numbers.get(id(leaf)) for leaf in leaves(outputs)}
            self.unused = [number for number in range(len(self.parameters)) if number not in reached]
        else:
            self.unused = []

    def check_finished(self) -> None:
        """Raise RuntimeError if a backward has begun and gradients are missing."""
        missing = [number for number in range(len(self.parameters)) if number not in self.arrived]
        if not missing or self.static:
            return
        rank = torch.distributed.get_rank()
        text = (
            "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
            "your module has parameters that were not used in producing loss. You can enable unused parameter detection by "
            "passing the keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \n"
            "making sure all `forward` function outputs participate in calculating loss. \n"
            f"Parameter indices which did not receive grad for rank {rank}: {' '.join(map(str, missing))}\n"
            f"Parameters which did not receive grad for rank {rank}: {', '.join(self.names[number] for number in missing)}"
        )
        raise RuntimeError(text)

    def arrive(self, number: int) -> None:
        """Take the gradient of a parameter, which has just been accumulated."""
        if not self.expecting:
            return
        self._check_layout(number)
        first = not self.arrived
        self.arrived[number] = times = self.arrived.get(number, 0) + 1
        if self.static:
            if self.uses is None or times < self.uses.get(number, 1):
                return  # the first backward is reduced at its end, when all uses are known
        elif times > 1 or number in self.unused:
            raise RuntimeError(
                "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of a "
                "module parameter outside the `forward` function. 2) Reused parameters in multiple reentrant backward passes. "
                f"Parameter at index {number} with name {self.names[number]} has been marked as ready twice."
            )
        if first:
            for other in self.unused:
                self._place(other)
        self._place(number)
        self._launch()

    def _check_layout(self, number: int) -> None:
        """Raise RuntimeError if a gradient is sparse but should be dense, or is dense but should be sparse."""
        grad = self.parameters[number].grad
        if grad is not None and grad.is_sparse != (number in self.sparse):
            expected = "sparse" if number in self.sparse else "dense"
            raise RuntimeError(
                f"Expected variable to have {expected} gradient: parameter {self.names[number]!r}. Gradients are expected to be "
                "sparse of the weights of nn.Embedding and nn.EmbeddingBag with sparse=True."
            )

    def _place(self, number: int) -> None:
        self.bucket_of[number].place(number, self.parameters[number], self.as_views)

    def _launch(self) -> None:
        """Start all full buckets before the first incomplete bucket. After the last bucket, finish at the end of backward."""
        if self.launched == len(self.buckets):
            return
        while self.launched < len(self.buckets) and not self.buckets[self.launched].missing:
            self._start(self.launched)
            self.launched += 1
        if self.launched == len(self.buckets):
            self._share_use()
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)

    def _start(self, index: int) -> None:
        """Reduce a bucket. Profiles show the number of the bucket."""
        with torch.distributed.records.labelled(f"bucket {index}"):
            self._reduce(index)

    def _reduce(self, index: int) -> None:
        bucket = self.buckets[index]
        if self.hook is not None:
            state, hook = self.hook
            is_last = index == len(self.buckets) - 1
            given = torch.distributed.GradBucket(index, bucket.whole(), bucket.parameters, is_last)
            bucket.pending = hook(state, given)
        else:
            op = torch.distributed.ReduceOp.AVG if self.divisor is None else torch.distributed.ReduceOp.SUM
            if bucket.shared is not None:
                reduced = torch.distributed.collectives.all_reduce_shared(bucket.buffer, bucket.shared, op, self.group)
            else:
                reduced = torch.distributed.all_reduce_coalesced(bucket.pieces(), op, self.group, async_op=True)
            bucket.pending = reduced

    def _share_use(self) -> None:
        """If parameters may be unused, count the processes that have used each parameter."""
        if self.find_unused or self.static:
            self.used = torch.ones(len(self.parameters), dtype=torch.int32)
            without = [number for number in self.arrived if self.parameters[number].grad is None]
            self.used[[*self.unused, *without]] = 0
            self.use_shared = torch.distributed.all_reduce(self.used, group=self.group, async_op=True)

    def reduce_late(self) -> None:
        """At the end of the first backward of a static graph, record the uses and reduce all gradients."""
        if self.uses is not None or not self.expecting:
            return
        self.uses = dict(self.arrived)
        self.unused = [number for number in range(len(self.parameters)) if number not in self.uses]
        for number in range(len(self.parameters)):
            self._place(number)
        for index in range(len(self.buckets)):
            self._start(index)
        self.launched = len(self.buckets)
        self._share_use()
        self.finish()

    def finish(self) -> None:
        """Wait for the buckets, and put the averages into `.grad`."""
        for bucket in self.buckets:
            if self.hook is not None:
                result = bucket.pending.wait()
                result = result[0] if isinstance(result, list) else result
                if result is not bucket.whole():
                    bucket.whole().copy_(result)
            else:
                bucket.pending.wait()
                if self.divisor is not None:
                    for piece in bucket.pieces():
                        piece.div_(self.divisor())
        nowhere_used: set[int] = set()
        if self.used is not None:
            self.use_shared.wait()
            nowhere_used = {number for number, count in enumerate(self.used.tolist()) if not count}
        for bucket in self.buckets:
            for number in bucket.numbers:
                if number not in nowhere_used:
                    self._put(number, bucket)
            bucket.pending = None
            bucket.placed.clear()
        self.expecting, self.finished = False, True

    def _put(self, number: int, bucket: Bucket) -> None:
        parameter, view = self.parameters[number], bucket.views.get(number)
        grad = parameter.grad
        if view is None:
            if grad is None:
                parameter.grad = bucket.placed[number]
        elif self.as_views:
            if grad is not view:
                parameter.grad = view
        elif grad is None:
            parameter.grad = view.clone()
        else:
            grad.detach().copy_(view)

    def shadow(self) -> None:
        """Contribute zeros to the collectives of other processes' backward. Gradients of this process do not change."""
        former = [bucket.buffer.clone() if self.as_views else bucket.buffer for bucket in self.buckets]
        for bucket in self.buckets:
            bucket.restart()
            bucket.buffer.zero_()
            for number in bucket.numbers:
                if number not in bucket.views:
                    bucket.placed[number] = bucket.zeros(self.parameters[number])
        for index in range(len(self.buckets)):
            self._start(index)
        if self.find_unused or self.static:
            self.unused = list(range(len(self.parameters)))
            self._share_use()
            self.use_shared.wait()
        for bucket, kept in zip(self.buckets, former, strict=True):
            bucket.pending.wait()
            bucket.restart()
            bucket.buffer.copy_(kept)
        self.finished = True


def _arrival(itself: Any, number: int) -> Callable[[Any], None]:
    """Return the hook of a parameter. The hook does not keep the reducer alive."""

    def arrive(_: Any) -> None:
        reducer = itself()
        if reducer is not None:
            reducer.arrive(number)

    return arrive


def leaves(outputs: Iterator[Any]) -> Iterator[Any]:
    """Return the leaves of the graphs of `outputs`."""
    seen: set[Any] = set()
    waiting = []
    for output in outputs:
        if output.grad_fn is not None:
            waiting.append(output.grad_fn)
        elif output.requires_grad:
            yield output
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        else:
            waiting.extend(following for following, _ in node.next_functions)
