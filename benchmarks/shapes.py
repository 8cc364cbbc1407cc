"""Calls on arrays of several shapes, narrow, flat, long and deep, with and without backward: the ratios of least times.

Kernels choose their loops by shape. The other groups time each call at one or two shapes.
"""

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from time import perf_counter
from types import ModuleType
from typing import Any

from benchmarks.cases import Timed
from benchmarks.runner import SEED, geometric_mean
from benchmarks.survey import expressions, forward, with_backward

SHAPES = [(300000,), (600, 500), (100000, 3), (3, 100000), (30000, 17), (40, 64, 100), (2, 3, 100, 500)]
IMAGES = [(40, 64, 100), (8, 4, 2000), (2, 3, 100, 500), (8, 16, 32, 32), (4, 4, 8, 20, 20)]
MATRICES = [(2000, 3, 3), (300, 8, 8), (20, 40, 40), (200, 200)]

NOTABLE = 1.5
"""The report lists the calls that take this multiple of PyTorch's time, or more."""


def operands(torch: ModuleType, shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the operands of the expressions of `ARRAYS`: arrays of one shape, indices of its first and last dimension."""
    first, last = shape[0], shape[-1]
    x, y, k = torch.randn(shape), torch.randn(shape), torch.randint(0, 1000, shape)
    return _names(torch) | {
        "x": x,
        "y": y,
        "k": k,
        "g": torch.randn(50).sort()[0],
        "p": torch.rand(shape),
        "h": x.half(),
        "b": x.bfloat16(),
        "d": x.double(),
        "z": torch.complex(x, y),
        "m": x > 0,
        "i": torch.randint(0, first, shape),
        "j": torch.randint(0, last, shape),
        "r": torch.randint(0, first, (first,)),
        "t": torch.randint(0, last, (last,)),
        "v": k.flatten(),
        "n": len(shape),
    }


def image_operands(torch: ModuleType, shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the operands of the expressions of `LAYERS`: `x` of (batch, channels, sizes) and weights for its channels."""
    batch, channels, dims = shape[0], shape[1], len(shape) - 2
    functional = torch.nn.functional
    return _names(torch) | {
        "x": torch.randn(shape),
        "w": torch.randn(8, channels, *[3] * dims) / 10,
        "s": torch.randn(channels, 1, *[3] * dims),
        "u": torch.randn(channels, 8, *[3] * dims),
        "c": torch.randn(channels),
        "t": torch.randint(0, channels, (batch, *shape[2:])),
        "q": torch.randint(1, channels, (batch, 10)),
        "l": torch.ones(batch, dtype=torch.int64),
        "n": dims,
        "linear": {1: "linear", 2: "bilinear", 3: "trilinear"}[dims],
        **{
            name.rstrip("_"): getattr(functional, f"{name.rstrip('_')}{dims}d")
            for name in "conv conv_transpose max_pool avg_pool adaptive_avg_pool adaptive_max_pool lp_pool_".split()
        },
    }


def matrix_operands(torch: ModuleType, shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the operands of the expressions of `ALGEBRA`: stacks of square matrices."""
    x = torch.randn(shape)
    return _names(torch) | {
        "x": x,
        "y": torch.randn(shape),
        "s": x @ x.mT + shape[-1] * torch.eye(shape[-1]),
        "v": torch.randn(shape[:-1]),
    }


def _names(torch: ModuleType) -> dict[str, Any]:
    return {"torch": torch, "F": torch.nn.functional, "__package__": None}


ARRAYS = """
x.sum(0) | x.sum(-1) | x.sum() | x.mean(0) | x.amax(0) | x.amax(-1) | x.max(0)[0] | x.max(-1)[0] | x.max() | x.argmax(0)
x.argmax() | x.argmin(-1) | x.std(0) | x.std() | x.var(-1) | torch.var_mean(x, -1)[0] | x.prod(0) | x.prod(-1) | x.nansum(0)
x.nansum(-1) | x.aminmax()[0] | x.aminmax(dim=0)[0] | x.aminmax(dim=-1)[1] | x.norm() | x.norm(dim=0) | x.norm(dim=-1)
x.norm(1, 0) | x.norm(3, -1) | x.dist(y) | x.logsumexp(0) | x.logsumexp(-1) | x.softmax(0) | x.softmax(-1) | x.log_softmax(0)
h.softmax(-1) | h.sum(0) | b.sum(-1) | z.sum(0) | m.any(0) | m.any(-1) | m.all(0) | m.sum(0) | m.sum(-1) | m.sum()
x.count_nonzero(0) | x.count_nonzero(-1) | F.normalize(x, dim=0) | F.normalize(x, dim=-1) | x.cumsum(0) | x.cumsum(-1)
k.cumsum(0) | x.cumprod(0) | x.cummax(0)[0] | x.cummax(-1)[0] | x.cummin(0)[0] | x.logcumsumexp(0) | x.logcumsumexp(-1)
x.diff(dim=0) | x.diff(dim=-1) | torch.trapezoid(x, dim=-1) | torch.cumulative_trapezoid(x, dim=0)
torch.gradient(x, dim=0)[0] | torch.gradient(x, dim=-1)[0] | x.sort(0)[0] | x.sort(-1)[0] | x.sort(stable=True)[1]
x.flatten().sort()[0] | k.sort(-1)[0] | k.sort(0)[0] | d.sort(-1)[0] | x.argsort(0) | x.argsort(-1, descending=True)
x.msort() | x.topk(1, 0)[0] | x.topk(2, -1)[0] | x.flatten().topk(10)[0] | x.kthvalue(1, 0)[0] | x.kthvalue(2, -1)[0]
x.median(0)[0] | x.median(-1)[0] | x.median() | x.nanmedian(0)[0] | x.mode(0)[0] | x.mode(-1)[0] | k.mode(-1)[0]
x.quantile(0.3, 0) | x.quantile(0.3, -1) | x.nanquantile(0.3, -1) | x.quantile(g[:3].sigmoid(), -1)[0] | x.unique()
k.unique() | k.unique(return_counts=True)[1] | k.unique(return_inverse=True)[1] | k.unique_consecutive()
k[:3000].unique(dim=0) | v.bincount() | v.bincount(x.flatten()) | x.histc(100) | torch.histogram(x, 100)[0]
torch.bucketize(x, g) | torch.searchsorted(g, x) | torch.isin(k, v[:5]) | torch.isin(k, v[:100]) | x.nonzero()
(x > 1).nonzero() | torch.argwhere(m) | x[m] | x.masked_select(x > 1) | x.masked_fill(m, 1.0) | x.masked_scatter(m, y)
torch.where(m, x, y) | x.flip(0) | x.flip(-1) | x.flip(tuple(range(n))) | x.roll(1, 0) | x.roll(3, -1) | x.roll(7) | x.rot90()
x.fliplr() | x.repeat_interleave(2, 0) | x.repeat_interleave(2, -1) | x.repeat_interleave(r % 3, 0) | torch.cat([x, y], 0)
torch.cat([x, y], -1) | torch.stack([x, y], -1) | torch.stack([x, y], 0) | torch.hstack([x, y]) | x.repeat(2, *[1] * (n - 1))
x.repeat(*[1] * (n - 1), 3) | x.tile(2) | x.movedim(0, -1).contiguous() | x.mT.contiguous() | x.unfold(0, 2, 1).contiguous()
x.unfold(-1, 3, 2).contiguous() | x[::2].contiguous() | x[..., ::2].contiguous() | x.expand(3, *x.shape).contiguous()
x.swapaxes(0, -1) + y.swapaxes(0, -1) | x.triu() | x.tril(-1) | x.diagonal().clone() | torch.diagonal_scatter(x, x.diagonal())
x.select_scatter(y[0], 0, 1) | x.slice_scatter(y[1:], 0, 1) | torch.diag_embed(x[:100, :100]) | x[:2000].trace()
F.one_hot(v[:10000] % 10) | F.one_hot(k % 3) | torch.combinations(x.flatten()[:300]) | torch.vander(x.flatten()[:3000], 5)
x.gather(0, i) | x.gather(-1, j) | x.take_along_dim(j, -1) | x.take(v % x.numel()) | x.index_select(0, r)
x.index_select(-1, t) | x[r] | x[..., t] | x[r, ..., t[:1]] | x.scatter(0, i, y) | x.scatter(-1, j, y)
x.scatter_add(0, i, y) | x.scatter_add(-1, j, y) | x.scatter_reduce(0, i, y, "amax") | x.scatter_reduce(-1, j, y, "mean")
x.index_add(0, r, y) | x.index_add(n - 1, t, y) | x.index_copy(0, r, y) | x.index_fill(0, r[:9], 1.0)
x.index_reduce(0, r, y, "amax") | x.put(v, y) | x.clone().index_put_((r,), y) | x.clone().index_put_((r,), y, accumulate=True)
F.embedding(r, x) | F.embedding_bag(r, x, r[:1] * 0) | F.embedding_bag(i[:500], x) | F.pad(x, (1, 1)) | F.pad(x, (0, 1, 1, 0))
F.pad(x, (1, 2), "reflect") | F.pad(x, (1, 2), "replicate") | F.pad(x, (1, 2), "circular") | torch.fft.fft(x).real
torch.fft.fft(x, dim=0).real | torch.fft.fft(z).real | torch.fft.ifft(z, dim=0).real | torch.fft.rfft(x).abs()
torch.fft.rfft(x, dim=0).real | torch.fft.irfft(z) | torch.fft.fft2(x).real | torch.fft.fftshift(x) | torch.fft.hfft(z)
F.mse_loss(x, y) | F.l1_loss(x, y) | F.huber_loss(x, y) | F.smooth_l1_loss(x, y, reduction="none")
F.kl_div(x, p, reduction="batchmean") | F.binary_cross_entropy(p, p) | F.binary_cross_entropy_with_logits(x, p)
F.cosine_similarity(x, y, dim=0) | F.cosine_similarity(x, y, dim=-1) | F.pairwise_distance(x, y)
F.cross_entropy(x, r % x.shape[1]) | F.nll_loss(x, r % x.shape[1]) | F.cross_entropy(x, p) | F.layer_norm(x, x.shape[-1:])
F.layer_norm(x, x.shape[1:]) | F.rms_norm(x, x.shape[-1:]) | F.batch_norm(x, None, None, training=True) | F.instance_norm(x)
F.group_norm(x, 1) | F.dropout(x) | F.gumbel_softmax(x) | F.glu(x) | x.renorm(2, 0, 1.0) | x.renorm(2, n - 1, 1.0)
x[:2000].cov() | x[:3].corrcoef() | x[:2000].corrcoef() | x[..., :300].mT @ x | x @ y[..., :8, :].mT | x @ y[..., 0, :]
x[:500] @ y[:500].mT | torch.outer(x[:, 0], y[0]) | torch.outer(x[:1000], y[:300]) | torch.mv(x, y[0])
torch.inner(x[:300], y[:300]) | torch.einsum("...i,...i->...", x, y) | torch.einsum("i...,i...->...", x, y)
torch.einsum("i...->...", x) | torch.einsum("ij,ik->jk", x[:, :300], y[:, :300]) | torch.einsum("ij,kj->ik", x[:300], y[:300])
torch.einsum("abc,abd->acd", x, y) | torch.einsum("abc,adc->bd", x, y) | torch.einsum("abcd,acbd->ad", x[:, :, :3], y[:, :3])
torch.tensordot(x[..., :9], y[..., :9], ((0,), (0,))) | torch.tensordot(x, y, n) | torch.baddbmm(x[:, :1, :1], x, y.mT)
torch.addbmm(x[0, :1, :1], x, y.mT) | torch.kron(x.flatten(1)[:60, :50], y.flatten(1)[:9, :9])
torch.kron(x.flatten()[:500], y.flatten()[:300]) | torch.cdist(x[:500], y[:500]) | torch.cdist(x[:500], y[:500], p=1.0)
F.pdist(x[:500]) | torch.cross(x[..., :3], y[..., :3], dim=-1) | torch.linalg.vecdot(x, y) | torch.linalg.vector_norm(x, 3, 0)
torch.bernoulli(p) | torch.multinomial(p, 1) | torch.randperm(len(x)) | torch.randn_like(x) | torch.rand_like(x)
torch.block_diag(x[:30], y[:20]) | torch.meshgrid(x.flatten()[:600], g, indexing="ij")[0].clone()
torch.cartesian_prod(v[:300], v[:300]) | x.split(7)[0].clone() | torch.cat(x.chunk(5)) | torch.cat(x[..., :50].unbind(-1))
torch.stack(x[:50].unbind(0), -1) | x.unflatten(0, (-1, 1)).sum(1) | x.float() | x.long() | x.double() | x.half() | x.clone()
x.T.clone() | torch.equal(x, x.clone()) * x[:1] | x.isclose(y) | x.sum_to_size(x[:1].shape)
torch.segment_reduce(x, "max", lengths=r[:1] * 0 + len(x)) | torch.renorm(x, 1, 0, 2.0)
"""
"""Expressions of `operands`, separated by bars and lines."""

LAYERS = """
conv(x, w) | conv(x, w, padding=1) | conv(x, w, stride=2) | conv(x, w, dilation=2) | conv(x, s, groups=len(c))
conv(x, s.repeat(2, *[1] * (n + 1)), groups=len(c)) | conv(x, w[:, :len(c) // 2], groups=2)
conv(x, w[(...,) + (slice(1),) * n]) | conv(x.half(), w.half()) | conv_transpose(x, u) | conv_transpose(x, u, stride=2)
conv_transpose(x, s, groups=len(c)) | max_pool(x, 2) | max_pool(x, 3, 1) | max_pool(x, 3, 2, 1) | avg_pool(x, 2)
avg_pool(x, 3, 1, 1) | lp_pool(x, 2, 2) | adaptive_avg_pool(x, 1) | adaptive_avg_pool(x, 5) | adaptive_max_pool(x, 1)
adaptive_max_pool(x, 5) | F.interpolate(x, scale_factor=2) | F.interpolate(x, scale_factor=0.5)
F.interpolate(x, scale_factor=2, mode=linear) | F.interpolate(x, scale_factor=0.4, mode=linear, align_corners=True)
F.interpolate(x, scale_factor=2, mode="bicubic") | F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True)
F.interpolate(x, scale_factor=0.3, mode="area") | F.interpolate(x, scale_factor=2, mode="nearest-exact")
F.pad(x, (1, 2) * n) | F.pad(x, (1, 2) * n, "reflect") | F.pad(x, (1, 2) * n, "replicate") | F.pad(x, (1, 2) * n, "circular")
F.batch_norm(x, None, None, training=True) | F.batch_norm(x, c, c.abs(), c, c) | F.instance_norm(x) | F.group_norm(x, 1)
F.group_norm(x, len(c) // 2) | F.group_norm(x, len(c), c, c) | F.local_response_norm(x, 3) | F.cross_entropy(x, t)
F.cross_entropy(x, t, c.abs()) | F.cross_entropy(x, t, label_smoothing=0.1) | F.nll_loss(x, t)
F.cross_entropy(x, x.softmax(1)) | x.softmax(1) | x.log_softmax(1) | x.mean(tuple(range(2, n + 2)))
x.var((0, *range(2, n + 2))) | x.amax(tuple(range(2, n + 2))) | x.movedim(1, -1).contiguous() | F.prelu(x, c) | F.dropout1d(x)
F.dropout2d(x) | x * c.view(-1, *[1] * n) | x.flatten(2).transpose(1, 2).contiguous() | F.unfold(x, 3) | F.pixel_shuffle(x, 2)
F.pixel_unshuffle(x, 2) | F.channel_shuffle(x, 2) | F.avg_pool1d(x, 50)
F.ctc_loss(x.permute(2, 0, 1).log_softmax(2)[:40], q, l * 40, l * 10)
torch.nn.LSTM(len(c), 8)(x.movedim(1, -1))[0] if n == 1 else conv(x, w).relu() | F.scaled_dot_product_attention(x, x, x)
"""
"""Expressions of `image_operands`, in the same form."""

ALGEBRA = """
x @ y | x @ y.mT | x @ v.unsqueeze(-1) | torch.einsum("...ij,...j->...i", x, v) | torch.linalg.inv(s) | torch.linalg.det(x)
torch.linalg.slogdet(s)[1] | torch.linalg.solve(s, y) | torch.linalg.solve(s, v) | torch.linalg.cholesky(s)
torch.cholesky_solve(y, s.tril()) | torch.linalg.solve_triangular(s.triu(), y, upper=True) | torch.linalg.qr(x)[1]
torch.linalg.svdvals(x) | torch.linalg.svd(x)[1] | torch.linalg.eigvalsh(s) | torch.linalg.eigh(s)[0] | torch.linalg.lu(s)[2]
torch.linalg.lu_factor(s)[0] | torch.linalg.matrix_exp(x / 9) | torch.linalg.pinv(s) | torch.linalg.matrix_power(x / 9, 3)
torch.linalg.matrix_norm(x) | torch.linalg.matrix_norm(x, 1) | torch.linalg.matrix_norm(x, "nuc") | torch.linalg.cond(s)
torch.linalg.matrix_rank(s) | torch.linalg.lstsq(s, y)[0] | torch.linalg.multi_dot([x, y, x]) | torch.linalg.eigvals(s).real
x.tril() | x.diagonal(dim1=-2, dim2=-1).sum(-1) | x.mT.contiguous() | torch.cdist(x, y) | torch.bmm(x, y)
torch.baddbmm(s, x, y) | torch.logdet(s) | torch.linalg.cross(x[..., :3], y[..., :3]) | torch.diag_embed(v)
torch.kron(x[0], y[0]) | torch.linalg.householder_product(x, v)
"""
"""Expressions of `matrix_operands`, in the same form."""

TABLES: list[tuple[str, Callable[..., dict[str, Any]], list[tuple[int, ...]]]] = [
    (ARRAYS, operands, SHAPES),
    (LAYERS, image_operands, IMAGES),
    (ALGEBRA, matrix_operands, MATRICES),
]


def run(quick: bool, only: re.Pattern[str], width: int, duration: Callable[[float], str]) -> list[dict[str, Any]]:
    """Time the calls whose names match `only`. Print the slow calls, and return the least times of alternate calls."""
    adjoint, torch = import_module("adjoint"), import_module("torch")
    print(f"\n{f'shapes: calls at {NOTABLE} and above':<{width}}{'adjoint':>11}{'torch':>11}{'ratio':>7}")
    results: list[dict[str, Any]] = []
    for table, make, shapes in TABLES:
        for shape in shapes:
            for backward in (False, True):
                for name, ours, theirs in _cases(table, make, shape, backward, only, adjoint, torch):
                    first, second = least_times(ours, theirs, 0.01 if quick else 0.05)
                    results.append(
                        {"group": "shapes", "case": name, "adjoint": first, "torch": second, "ratio": first / second}
                    )
                    if first / second >= NOTABLE:
                        print(
                            f"{name:<{width}}{duration(first):>11}{duration(second):>11}{first / second:>7.2f}",
                            flush=True,
                        )
    if results:
        print(
            f"{f'geometric mean of {len(results)}':<{width + 22}}{geometric_mean([each['ratio'] for each in results]):>7.2f}"
        )
    return results


def _cases(
    table: str,
    make: Callable[..., dict[str, Any]],
    shape: tuple[int, ...],
    backward: bool,
    only: re.Pattern[str],
    *libraries: ModuleType,
) -> Iterator[tuple[str, Timed, Timed]]:
    """Return the names and functions of the calls that PyTorch accepts for a shape."""
    ours, theirs = ({**_seeded(make, library, shape)} for library in libraries)
    for expression in expressions(table):
        name = f"{expression}, {'x'.join(map(str, shape))}{', f+b' if backward else ''}"
        if only.search(name):
            prepare = with_backward if backward else forward
            try:
                prepare(expression, dict(theirs))()
            except (RuntimeError, IndexError, TypeError, ValueError, StopIteration, AttributeError):
                continue
            yield name, prepare(expression, dict(ours)), prepare(expression, dict(theirs))


def _seeded(make: Callable[..., dict[str, Any]], library: ModuleType, shape: tuple[int, ...]) -> dict[str, Any]:
    library.manual_seed(SEED)
    return make(library, shape)


def least_times(ours: Timed, theirs: Timed, seconds: float) -> tuple[float, float]:
    """Return the least times of alternate calls, which load on the machine hardly changes. Slow calls are timed longer."""
    times = [1e9, 1e9]
    for timed in (ours, theirs):
        timed(), timed()
    for allowed in (seconds, 4 * seconds):
        start = perf_counter()
        rounds = 0
        while rounds < 5 or (rounds < 30 and perf_counter() - start < allowed):
            for place, timed in enumerate((ours, theirs)):
                begun = perf_counter()
                timed()
                times[place] = min(times[place], perf_counter() - begun)
            rounds += 1
        if times[0] < NOTABLE * times[1]:
            break
    return times[0], times[1]
