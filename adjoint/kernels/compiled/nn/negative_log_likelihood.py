"""The negative log-likelihood of target classes, and its gradient."""

from __future__ import annotations

from ....codegen.llvm.calls import not_row_major
from ....codegen.llvm.kernels import *
from ...nn.loss import hinge_rows
from ...runtime.floating import compute_dtype
from ...runtime.layout import row_major

_TILE = 512
"""The number of positions that are computed together if there are dimensions after the classes."""

_BLOCK = 1 << 10
"""The number of positions whose losses are added up together, for any number of threads."""

_FAR = 64
"""The number of bytes that can be moved in the time that access to one distant element takes."""


CLASSES = Struct("positions classes inner ignored")


@loops(noalias=False, explicit=True, plain=True)
def clear(out: Pointer[T], count: Int, W: Static) -> None:
    """Write zeros."""
    whole = count // W * W
    for i in range(0, whole, W):
        store(out + i, vector(T, W)(0))
    for i in range(whole, count):
        out[i] = T(0)


@loops(noalias=False, explicit=True, plain=True)
def spread(
    table: Pointer[i64], start: Int, stop: Int, T: Static, S: Static, W: Static, STEP: Static, WEIGHTED: Static
) -> None:
    """Compute the gradient of the log-probabilities. `STEP`: 1 if positions have separate gradients, or 0."""
    layout = fields(table[0], CLASSES)
    classes, inner, ignored = layout.classes, layout.inner, layout.ignored
    grad, target = array_at(table, 0, S), array_at(table, 1, i64)
    weight, out = array_at(table, 2, T), array_at(table, 3, T)
    tiles = (inner + _TILE - 1) // _TILE
    for piece in range(start, stop):
        outer = piece // tiles
        first = (piece - outer * tiles) * _TILE
        width = minimum(inner - first, _TILE)
        if inner == 1:
            clear(out + outer * classes, classes, W)
        else:
            for c in range(classes):
                clear(out + ((outer * classes + c) * inner + first), width, W)
        for i in range(width):
            at = outer * inner + first + i
            chosen = target[at]
            if chosen != ignored and chosen >= 0 and chosen < classes:
                value = -grad[at * STEP]
                if WEIGHTED:
                    value = value * S(weight[chosen])
                out[(outer * classes + chosen) * inner + first + i] = T(value)


@loops(noalias=False, explicit=True, plain=True)
def block_sums(table: Pointer[i64], block: Int, T: Static, WEIGHTED: Static) -> tuple[f64, f64, f64]:
    """Return the sums of the losses and of the weights for a block of positions, and the number of invalid targets."""
    layout = fields(table[0], CLASSES)
    positions, classes, inner, ignored = layout.positions, layout.classes, layout.inner, layout.ignored
    x, target, weight = array_at(table, 0, T), array_at(table, 1, i64), array_at(table, 2, T)
    loss, total, wrong = f64(0), f64(0), f64(0)
    for i in range(block * _BLOCK, minimum((block + 1) * _BLOCK, positions)):
        chosen = target[i]
        if chosen != ignored:
            if chosen < 0 or chosen >= classes:
                wrong += f64(1)
            else:
                factor = f64(weight[chosen]) if WEIGHTED else f64(1)
                outer = i // inner
                loss -= f64(x[(outer * classes + chosen) * inner + (i - outer * inner)]) * factor
                total += factor
    return loss, total, wrong


@loops(noalias=False, explicit=True, plain=True)
def sums(table: Pointer[i64], start: Int, stop: Int, T: Static, WEIGHTED: Static) -> None:
    """Write the sums for blocks of positions."""
    out = array_at(table, 3, f64)
    for block in range(start, stop):
        out[3 * block], out[3 * block + 1], out[3 * block + 2] = block_sums(table, block, T, WEIGHTED)


@loops(noalias=False, explicit=True, plain=True)
def of_one_block(table: Pointer[i64], start: Int, stop: Int, T: Static, WEIGHTED: Static, MEAN: Static) -> None:
    """Write the sum of the losses of a block, or their mean. Write 1 to the flag if there are invalid targets."""
    out, flag = array_at(table, 3, T), array_at(table, 4, i64)
    for block in range(start, stop):
        loss, total, wrong = block_sums(table, block, T, WEIGHTED)
        if wrong != f64(0):
            flag[0] = 1
        if MEAN:
            loss = loss / total if total != f64(0) else total / total
        out[0] = T(loss)


@loops(noalias=False, explicit=True, plain=True)
def separate(table: Pointer[i64], start: Int, stop: Int, T: Static, S: Static, WEIGHTED: Static) -> None:
    """Write the loss of each position. Write 1 to the flag if there are invalid targets."""
    layout = fields(table[0], CLASSES)
    classes, inner, ignored = layout.classes, layout.inner, layout.ignored
    x, target, weight = array_at(table, 0, T), array_at(table, 1, i64), array_at(table, 2, T)
    out, flag = array_at(table, 3, T), array_at(table, 4, i64)
    for i in range(start, stop):
        chosen = target[i]
        loss = S(0)
        if chosen != ignored:
            if chosen < 0 or chosen >= classes:
                flag[0] = 1
            else:
                outer = i // inner
                loss = -S(x[(outer * classes + chosen) * inner + (i - outer * inner)])
                if WEIGHTED:
                    loss = loss * S(weight[chosen])
        out[i] = T(loss)


@loops
def totals(flag: Pointer[i64], sums: Pointer[f64], blocks: Int) -> tuple[f64, f64]:
    """Return the sums of the losses and of the weights. Write 1 to `flag` if there are invalid targets."""
    loss, total, wrong = f64(0), f64(0), f64(0)
    for block in range(blocks):
        loss += sums[3 * block]
        total += sums[3 * block + 1]
        wrong += sums[3 * block + 2]
    if wrong != f64(0):
        flag[0] = 1
    return loss, total


@loops(noalias=False, explicit=True, plain=True)
def share(
    out: Pointer[S], flag: Pointer[i64], sums: Pointer[f64], grad: Pointer[S], blocks: Int, MEAN: Static, start: Int, stop: Int
) -> None:  # fmt: skip
    """Write the gradient of a loss, divided by the sum of the weights if `MEAN`."""
    for _ in range(start, stop):
        _loss, total = totals(flag, sums, blocks)
        factor = f64(1)
        if MEAN:
            factor = f64(1) / total if total != f64(0) else total / total
        out[0] = S(f64(grad[0]) * factor)


@loops(noalias=False, explicit=True, plain=True)
def finish(
    out: Pointer[T], flag: Pointer[i64], sums: Pointer[f64], blocks: Int, MEAN: Static, start: Int, stop: Int
) -> None:
    """Write the sum of the losses, or their mean."""
    for _ in range(start, stop):
        loss, total = totals(flag, sums, blocks)
        if MEAN:
            loss = loss / total if total != f64(0) else total / total
        out[0] = T(loss)


def _call(
    function: Any, log_probs: ndarray, target: ndarray, weight: ndarray | None, ignored: int, rows: int, **more: Any
) -> Plan:
    """Return the plan of a call for log-probabilities, targets and weights."""
    return NativeCall(
        function, rows, _FAR * max(1, target.size // rows), _layout(log_probs, target, ignored),
        ["log_probs", "target", "target" if weight is None else "weight"],
        copied=not_row_major(log_probs=log_probs, target=target, weight=weight), **more,
    ).plan(["log_probs", "target", "weight", "ignore_index", "reduction"])  # fmt: skip


def _supports(log_probs: ndarray, target: ndarray) -> bool:
    return type_of(log_probs.dtype) is not None and target.size > 0 and target.dtype == numpy.int64


def _summing(log_probs: ndarray, target: ndarray, weight: ndarray | None, ignore_index: int) -> Any:
    """Return the plan that sums losses and weights and counts invalid targets."""
    function = sums.compiled(T=type_of(log_probs.dtype), WEIGHTED=weight is not None)
    blocks = -(-target.size // _BLOCK)
    results = [Memory((blocks, 3), numpy.dtype(float))]
    return _call(function, log_probs, target, weight, ignore_index, blocks, results=results)


def _layout(log_probs: ndarray, target: ndarray, ignore_index: int) -> list[int]:
    dim = min(log_probs.ndim - 1, 1)
    classes, *below = log_probs.shape[dim:]
    return CLASSES.pack(positions=target.size, classes=classes, inner=math.prod(below), ignored=ignore_index)


def loss(log_probs: ndarray, target: ndarray, weight: ndarray | None, ignore_index: int, reduction: str) -> Any:
    """Return the plan of `nll_loss`."""
    if not _supports(log_probs, target):
        return NotImplemented
    dtype, arguments = log_probs.dtype, (log_probs, target, weight, ignore_index)
    types: dict[str, Any] = {"T": type_of(dtype), "WEIGHTED": weight is not None}
    if reduction == "none":
        results = [Memory(log_probs.shape[:1] + log_probs.shape[2:] if log_probs.ndim > 1 else (), dtype)]
        function = separate.compiled(S=type_of(compute_dtype(dtype)), **types)
        return _call(function, *arguments, target.size, results=results, flagged=True)
    results = [Memory((), dtype)]
    if target.size <= _BLOCK:
        function = of_one_block.compiled(MEAN=reduction == "mean", **types)
        return _call(function, *arguments, 1, results=results, flagged=True)
    summing, function = _summing(*arguments), finish.compiled(T=type_of(dtype), MEAN=reduction == "mean")

    @recordable
    def run(*arguments: Any) -> Any:
        sums, total, flag = summing.compute(*arguments), empty((), dtype), new_flag()
        launch(function, 1, 0, total, flag, sums, len(sums))
        return NotImplemented if is_set(flag) else total  # NumPy's form raises the error

    return Plan(results, run=run)


def loss_gradient(
    grad: ndarray, log_probs: ndarray, target: ndarray, weight: ndarray | None, ignore_index: int, reduction: str
) -> Any:
    """Return the plan of `nll_loss_backward`."""
    if not _supports(log_probs, target) or grad.shape != (target.shape if reduction == "none" else ()):
        return NotImplemented
    summing = _summing(log_probs, target, weight, ignore_index)
    dtype, compute, shape = log_probs.dtype, compute_dtype(log_probs.dtype), log_probs.shape
    dim = min(log_probs.ndim - 1, 1)
    inner = math.prod(shape[dim + 1 :])
    tiles = -(-inner // _TILE)
    pieces = math.prod(shape[:dim]) * tiles
    each = int(grad.ndim > 0)
    width = HOST.vector_bytes // dtype.itemsize
    spreading = NativeCall(
        spread.compiled(T=type_of(dtype), S=type_of(compute), W=width, STEP=each, WEIGHTED=weight is not None), pieces,
        log_probs.nbytes // pieces + _FAR, _layout(log_probs, target, ignore_index),
        ["grad", "target", "target" if weight is None else "weight"], [Memory(shape, dtype)],
        copied=not_row_major(target=target, weight=weight),
    ).plan(["grad", "target", "weight"])  # fmt: skip

    sharing = share.compiled(S=type_of(compute), MEAN=reduction == "mean" and not each)

    @recordable
    def run(grad: Any, *arguments: Any) -> Any:
        sums, value, flag = summing.compute(*arguments), empty(1, compute), new_flag()
        grad = numpy.ascontiguousarray(grad, compute)
        launch(sharing, 1, 0, value, flag, sums, grad, len(sums))
        return NotImplemented if is_set(flag) else spreading.compute(grad if each else value, *arguments[1:3])

    return Plan(spreading.results, run=run)


@loops(noalias=False, explicit=True, plain=True)
def find_own(
    own: Pointer[T], labels: Pointer[T], places: Pointer[T], x: Pointer[T], target: Pointer[i64], flag: Pointer[i64],
    classes: Int, batch: Int, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Write the score of each target, the target as a number, and a part of the numbers of all classes.

    Write 1 to the flag if there are invalid targets.
    """
    for i in range(start, stop):
        chosen = target[i]
        if chosen < 0 or chosen >= classes:
            flag[0] = 1
        else:
            own[i] = x[i * classes + chosen]
            labels[i] = T(chosen)
        for k in range(i * classes // batch, (i + 1) * classes // batch):
            places[k] = T(k)


@loops(noalias=False, explicit=True, plain=True)
def weighted(
    out: Pointer[T], loss: Pointer[T], target: Pointer[i64], weight: Pointer[T], batch: Int, WEIGHTED: Static, SUMMED: Static,
    MEAN: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Write the losses of samples times the weights of their targets, or (`SUMMED`) their sum, or their mean."""
    for _ in range(start, stop):
        total = f64(0)
        for i in range(batch):
            value = loss[i]
            if WEIGHTED:
                value = value * weight[target[i]]
            if SUMMED:
                total += f64(value)
            else:
                out[i] = value
        if SUMMED:
            out[0] = T(total / f64(batch) if MEAN else total)


def margins(self: ndarray, target: ndarray, p: int, margin: float, weight: ndarray | None, reduction: str) -> Any:
    """Return the plan of `multi_margin_loss`."""
    dtype, batch = self.dtype, target.size
    classes = self.size // max(batch, 1)
    if FLOATS(dtype) is None or not batch or classes >= 1 << 24 or not self.flags.c_contiguous:
        return NotImplemented
    found = [Memory((size,), dtype) for size in (batch, batch, classes)]
    call = NativeCall(
        find_own.compiled(T=type_of(dtype)), batch, _FAR, [classes, batch], ["x", "target"], found, flagged=True,
        copied=not_row_major(target=target),
    )  # fmt: skip
    find, made = call.plan(["x", "target"]), [item.empty() for item in found]
    hinges = hinge_rows.plan((self.reshape(batch, classes), *made), 1, (margin, p))
    summed, given = reduction != "none", {"T": type_of(dtype), "WEIGHTED": weight is not None}
    finishing = weighted.compiled(SUMMED=summed, MEAN=reduction == "mean", **given)
    result = Memory(() if summed else target.shape, dtype)

    @recordable
    def run(x: ndarray, target: ndarray, p: int, margin: float, weight: ndarray | None, _: str) -> Any:
        found, out = find.compute(x, target), empty(result.shape, dtype)
        if found is NotImplemented:
            return NotImplemented
        loss = hinges.compute(x.reshape(batch, classes), *found, margin, p)
        if loss is NotImplemented:
            return NotImplemented
        factors = loss if weight is None else row_major(weight)
        launch(finishing, 1, _FAR * batch, out, loss, row_major(target), factors, batch)
        return out

    return Plan([result], run=run)
