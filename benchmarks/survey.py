"""Many operators that no other group times, with and without backward, to find the operators that are still slower."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from benchmarks.cases import Group, Timed

GROUP = Group("survey")


def operands(torch: ModuleType, times: int = 1) -> dict[str, Any]:
    """Return the operands of the expressions below. `times` multiplies the number of rows, planes or matrices."""
    rows, batch = 128 * times, 8 * times
    x = torch.randn(rows, 1024)
    a = torch.randn(batch, 64, 64)
    return {
        "x": x,
        "y": torch.randn(rows, 1024),
        "p": torch.rand(rows, 1024) * 3 + 0.1,
        "u": torch.rand(rows, 1024) * 1.8 - 0.9,
        "v": torch.randn(1024),
        "h": x.bfloat16(),
        "w": torch.randn(256, 1024).bfloat16(),
        "z": torch.randn(rows, 512, dtype=torch.complex64),
        "n": torch.randint(1, 100, (rows, 1024)),
        "m": torch.randint(1, 8, (rows, 1024)),
        "b": x > 0,
        "i": torch.randint(0, 1024, (rows, 64)),
        "k": torch.randint(0, 128, (4096 * times,)),
        "t": torch.randint(0, 1024, (rows,)),
        "r": torch.randn(4096 * times, 64),
        "e": torch.randn(128, 64),
        "a": a,
        "s": a @ a.mT + 64 * torch.eye(64),
        "q": torch.randn(batch, 64, 4),
        "c": torch.randn(4 * times, 16, 32, 32),
        "l": torch.randn(batch, 32, 256),
        "d": torch.randn(2 * times, 8, 16, 16, 16),
        "g": torch.rand(4 * times, 32, 32, 2) * 2 - 1,
        "torch": torch,
        "__package__": None,  # as in a script, because the library searches for the user's file
        "F": torch.nn.functional,
    }


DIFFERENTIABLE = """
x.sin() | x.cos() | u.tan() | u.asin() | u.atanh() | x.sinh() | x.cosh() | p.log2() | p.log1p() | x.expm1() | x.exp2()
p.sqrt() | p.rsqrt() | p.reciprocal() | x.square() | x.abs() | x.erf() | x.erfc() | u.erfinv() | p.lgamma() | p.digamma()
x.sigmoid() | u.logit(1e-6) | x.sinc() | torch.special.i0(x) | torch.special.i1e(x) | torch.special.ndtri(p / 4)
torch.special.log_ndtr(x) | torch.special.entr(p) | torch.special.xlog1py(x, p) | p.pow(1.7) | p.pow(p) | x.pow(3)
x.atan2(y) | x.hypot(y) | x.maximum(y) | x.fmin(y) | x.logaddexp(y) | x.lerp(y, 0.3) | x.addcmul(y, p, value=0.5)
x.addcdiv(y, p) | x / p | x * v | x - v | x % 1.3 | x.fmod(1.3) | x.clamp(-1, 1) | x.nan_to_num() | x.where(x > 0, y)
F.elu(x) | F.selu(x) | F.celu(x) | F.leaky_relu(x) | F.silu(x) | F.mish(x) | F.hardswish(x) | F.hardsigmoid(x) | F.softplus(x)
F.logsigmoid(x) | F.softsign(x) | F.tanhshrink(x) | F.softshrink(x) | F.hardtanh(x) | F.relu6(x) | F.threshold(x, 0.1, 2.0)
F.glu(x) | F.gelu(x, approximate="tanh") | F.prelu(x, v[:1]) | F.softmin(x, 1) | F.normalize(x) | F.cosine_similarity(x, y)
F.pairwise_distance(x, y) | x.sum() | x.sum(0) | x.mean(1) | x.var(1) | x.std(0) | p[:, :64].prod(1) | x.norm()
x.norm(dim=1) | x.norm(3, 1) | x.amax(1) | x.amin(0) | x.max(0)[0] | x.median(1)[0] | x.mode(1)[0] | x.kthvalue(9, 1)[0]
x.logsumexp(0) | x.cumsum(0) | u.cumprod(1) | x.cummax(1)[0] | x.logcumsumexp(1) | x.diff() | torch.trapezoid(x)
x.sort(1)[0] | x.topk(10, 1)[0] | x.quantile(0.3, 1) | x.renorm(2, 0, 1.0) | x.cov() | x[:, :64].corrcoef() | x.softmax(0)
x.log_softmax(0) | F.mse_loss(x, y) | F.l1_loss(x, y) | F.smooth_l1_loss(x, y) | F.huber_loss(x, y) | F.kl_div(x, p)
F.binary_cross_entropy(x.sigmoid(), b.float()) | F.binary_cross_entropy_with_logits(x, b.float()) | F.cross_entropy(x, t)
F.nll_loss(x, t) | F.multi_margin_loss(x, t) | F.poisson_nll_loss(x, p) | F.multilabel_margin_loss(x, torch.zeros_like(n))
F.multilabel_soft_margin_loss(x, b.float()) | F.soft_margin_loss(x, b * 2.0 - 1) | F.gaussian_nll_loss(x, y, p)
F.hinge_embedding_loss(x, b * 2.0 - 1) | F.margin_ranking_loss(x, y, b * 2.0 - 1) | F.triplet_margin_loss(x, y, p)
F.cosine_embedding_loss(x, y, b[:, 0] * 2.0 - 1) | x.t().contiguous() | x.flip(1) | x.roll(3, 1) | x.repeat(2, 2)
x.repeat_interleave(2, 1) | x.tile(2) | torch.cat([x, y], 1) | torch.stack([x, y]) | x.tril() | x.diagonal()
x.unfold(1, 8, 4).sum(2) | F.pad(x, (3, 3)) | x[:, ::2].clone() | x.masked_fill(b, 0.0) | x.masked_select(b) | x[b]
x.gather(1, i) | x.index_select(0, t % 128) | x[t % 128] | x.take(n) | x.take_along_dim(i, 1) | x.scatter(1, i, y)
x.scatter_add(1, i, y) | x.scatter_reduce(1, i, y[:, :64], "amax") | x.index_add(0, t % 128, y) | x.index_copy(0, t % 128, y)
x.index_fill(0, t % 128, 1.0) | x.index_reduce(0, t % 128, p, "prod") | x.put(n, y) | F.embedding(k, e)
F.embedding_bag(k.view(-1, 64), e) | F.embedding_bag(k, e, torch.arange(0, 4096, 16))
torch.segment_reduce(r, "sum", lengths=torch.full((len(r) // 64,), 64)) | x @ y.t() | x @ v | F.linear(x, y) | torch.outer(v, v)
x.addmm(x @ x.t(), y) | torch.bmm(a, a) | a @ q | torch.einsum("bij,bjk->bik", a, a) | torch.tensordot(e, e, ((1,), (1,)))
torch.cdist(e, e) | F.pdist(e) | torch.kron(e, e[:8, :8]) | torch.cross(x[:, :3], y[:, :3], dim=1)
F.bilinear(e, e, a[:, :64]) | torch.linalg.inv(s) | torch.linalg.det(a / 8) | torch.linalg.slogdet(s)[1]
torch.linalg.solve(s, q) | torch.linalg.cholesky(s) | torch.linalg.qr(a)[1] | torch.linalg.svdvals(a)
torch.linalg.eigvalsh(s) | torch.linalg.matrix_exp(a / 64) | torch.linalg.pinv(s) | torch.linalg.lu(s)[2]
torch.linalg.matrix_norm(a) | torch.linalg.solve_triangular(s, q, upper=True) | torch.linalg.matrix_power(a / 64, 5)
torch.linalg.vander(e) | F.max_pool2d(c, 2) | F.avg_pool2d(c, 3, 1, 1) | F.lp_pool2d(c, 2, 2) | F.adaptive_avg_pool2d(c, 7)
F.adaptive_max_pool2d(c, 7) | F.max_pool1d(l, 2) | F.avg_pool1d(l, 2) | F.max_pool3d(d, 2) | F.avg_pool3d(d, 2)
F.interpolate(c, scale_factor=2) | F.interpolate(c, size=50, mode="bilinear") | F.interpolate(c, size=50, mode="bicubic")
F.interpolate(l, size=300, mode="linear") | F.grid_sample(c, g, align_corners=False) | F.pixel_shuffle(c, 4)
F.pixel_unshuffle(c, 4) | F.channel_shuffle(c, 4) | F.unfold(c, 3) | F.fold(F.unfold(c, 3), 32, 3)
F.pad(c, (2, 2, 2, 2), "reflect") | F.pad(c, (2, 2, 2, 2), "replicate") | F.pad(c, (2, 2, 2, 2), "circular")
F.local_response_norm(c, 3) | F.instance_norm(c) | F.group_norm(c, 4) | F.batch_norm(c, None, None, training=True)
F.layer_norm(c, (32, 32)) | F.rms_norm(x, (1024,)) | F.conv2d(c, c[:, :16, :3, :3])
F.conv_transpose2d(c, c[:4, :16, :3, :3].expand(4, 16, 3, 3).repeat(4, 1, 1, 1)) | F.conv1d(l, l[:, :, :5])
F.conv3d(d, d[:, :8, :3, :3, :3]) | F.scaled_dot_product_attention(l, l, l) | torch.fft.fft(x).real | torch.fft.rfft(x).abs()
torch.fft.fft2(c).real | torch.fft.irfft(z) | torch.stft(x, 64, window=v[:64], return_complex=True).abs() | x.bfloat16() * 2
h + h | h * h | h.exp() | h.sum(1) | h.softmax(1) | F.linear(h, w) | F.gelu(h) | F.layer_norm(h, (1024,)) | z * z
z / z.conj() | z.abs() | z.exp() | z.square() | z.sum(1) | z.cumsum(1) | z @ z.mH | z.angle() | torch.view_as_real(z)
"""
"""Expressions, separated by bars and lines. They are also timed with backward to the first floating-point operand."""

OTHERS = """
torch.special.zeta(p + 2, p) | n + n | n * n | n // m | n % m | n.float() | n.sum() | n.max() | n.cumsum(1) | n.sort(1)[0]
n.bitwise_and(m) | n << m | n.clamp(5, 50) | n.abs() | n.gcd(m) | k.bincount() | n @ m.t() | n == m | x > y | x.isnan()
x.isfinite() | b & b | b.any(1) | b.all() | b.sum() | b.nonzero() | x.argmax(1) | x.argsort(1) | x.sign() | x.floor()
x.round() | x.count_nonzero(1) | x.histc(20) | torch.bucketize(x, v.sort()[0]) | torch.searchsorted(v.sort()[0], x)
torch.isin(n, m[0]) | n.unique() | x.isclose(y) | torch.nextafter(x, y) | x.heaviside(y) | x.frexp()[0] | torch.ldexp(x, m)
torch.special.bessel_j0(p) | torch.special.bessel_y1(p) | torch.igamma(p, p) | torch.special.modified_bessel_k0(p)
torch.special.airy_ai(x) | torch.special.chebyshev_polynomial_t(x, 5) | torch.special.hermite_polynomial_h(x, 5)
F.one_hot(t) | torch.combinations(v[:200]) | torch.cartesian_prod(v[:100], v[:100])
torch.meshgrid(v, v, indexing="ij")[0].clone() | torch.tril_indices(300, 300) | torch.arange(100000)
torch.linspace(0, 1, 100000) | torch.zeros(100000) | torch.full((100000,), 2.0) | torch.eye(300)
torch.linalg.eigvals(a[:2]).abs().sort(1)[0] | torch.linalg.matrix_rank(s) | h > 0 | h.sort(1)[0] | h.argmax(1)
x.to(torch.int32) | x.double() | x.half()
"""
"""Expressions that are timed without backward, in the same form."""


def expressions(text: str) -> Iterator[str]:
    """Return the expressions of a table."""
    for line in text.strip().split("\n"):
        yield from line.split(" | ")


def forward(expression: str, names: dict[str, Any]) -> Timed:
    """Return a function that computes an expression of `operands`."""
    timed: Timed = eval(f"lambda: {expression}", names)
    return timed


def with_backward(expression: str, names: dict[str, Any]) -> Timed:
    """Return a function that computes an expression of `operands`, and the gradient of the first differentiable operand."""
    operation = eval(f"lambda: {expression}", names)
    torch = names["torch"]
    given = [names[name] for name in operation.__code__.co_names if len(name) == 1 and name != "F"]
    input = next(each for each in given if each.is_floating_point() or each.is_complex()).requires_grad_()
    result = operation().detach()
    direction = torch.randn(result.shape).to(result.dtype)

    def step():
        operation().backward(direction)
        gradient, input.grad = input.grad, None
        return gradient

    return step


def _case(timed: Callable[[str, dict[str, Any]], Timed], expression: str) -> Callable[[ModuleType], Timed]:
    return lambda torch: timed(expression, operands(torch))


for each in expressions(DIFFERENTIABLE):
    GROUP.case(each)(_case(forward, each))
    GROUP.case(f"{each}, f+b")(_case(with_backward, each))
for each in expressions(OTHERS):
    GROUP.case(each)(_case(forward, each))
