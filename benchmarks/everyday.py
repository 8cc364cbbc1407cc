"""Typical calls on 100 to 1,000 numbers and one thread: mixed dtypes, views, slices, losses, norms, small sorts."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.cases import Group, Timed
from benchmarks.survey import expressions, forward, with_backward

GROUP = Group("everyday", threads=1)


def operands(torch: ModuleType) -> dict[str, Any]:
    """Return the operands of the expressions below. `w`, `b` and `u` require grad."""
    x = torch.randn(16, 32)
    return {
        "x": x,
        "y": torch.randn(16, 32),
        "p": torch.rand(16, 32) + 0.1,
        "d": torch.randn(16, 32, dtype=torch.float64),
        "h": x.bfloat16(),
        "v": torch.randn(32),
        "s": torch.randn(()),
        "n": torch.randint(0, 100, (16, 32)),
        "m": torch.randint(1, 8, (16, 32)),
        "c": x > 0,
        "i": torch.randint(0, 32, (16, 4)),
        "j": torch.randint(0, 16, (8,)),
        "t": torch.randint(0, 32, (16,)),
        "r": torch.randn(32, 16),
        "w": torch.randn(16, 32, requires_grad=True),
        "b": torch.randn(32, requires_grad=True),
        "u": torch.randn(8, 32, requires_grad=True),
        "a": torch.randn(4, 8, 8),
        "e": torch.randn(64, 16),
        "g": torch.randn(1, 2, 16, 16),
        "k": torch.randn(4, 2, 3, 3),
        "l": torch.randn(2, 4, 32),
        "z": torch.randn(128, dtype=torch.complex64),
        "o": torch.zeros(16, 32),
        "q": torch.zeros(16, 32, dtype=torch.float64),
        "f": torch.diag(torch.arange(1.0, 9.0)).expand(4, 8, 8) + 0.1,
        "to": (torch.zeros(16), torch.zeros(16, dtype=torch.int64)),
        "places": torch.rand(1, 6, 6, 2) * 2 - 1,
        "linear": torch.nn.Linear(32, 16),
        "layers": torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)),
        "batch_norm": torch.nn.BatchNorm1d(32),
        "attention": torch.nn.MultiheadAttention(8, 2),
        "lstm": torch.nn.LSTM(8, 8),
        "torch": torch,
        "__package__": None,  # as in a script, because the library searches for the user's file
        "F": torch.nn.functional,
        "random": torch.distributions,
    }


RECORDED = """
w + x | w * x | w * d | d * w | w + d | w / m | w - n | w * m | w * s | w * 2 | 2 - w | 1 / w | w ** 2 | w @ r | w + b | w * c
w.t() * r | w[:, ::2] * x[:, ::2] | w[1:] - w[:-1] | w.t() + r | w[3] * v | w[:, 3].sum() | w[0, 0] * s | w[c] | w[j]
w[None] + x | w[..., :4].sum(-1) | w.exp() | w.sin() | w.tanh() | w.sigmoid() | w.relu() | w.abs() | w.square()
w.clamp(-1, 1) | w.clamp(min=0) | w.pow(3) | p.sqrt() * w | p.log() * w | w.sum() | w.mean() | w.sum(1)
w.mean(0, keepdim=True) | w.var() | w.var(1) | w.std(0) | w.norm() | w.norm(dim=1) | torch.linalg.vector_norm(w) | w.max()
w.min() | w.max(1)[0] | w.amax(1) | w.prod(1) | w.cumsum(1) | w.cumprod(0) | w.logsumexp(1) | w.softmax(1) | w.log_softmax(-1)
w.sort(1)[0] | w.topk(5)[0] | w.median() | w.median(1)[0] | w.lerp(x, 0.3) | w.maximum(x) | w.where(c, x)
torch.where(c, w, 0.0) | w.masked_fill(c, 0.0) | w.gather(1, i) | w.index_select(0, j) | w.scatter_add(1, i, x)
w.scatter(1, i, 0.0) | w.index_add(0, j, x[:8]) | w.roll(1, 0) | w.flip(0) | w.view(-1) | w.reshape(8, 64) | w.t()
w.permute(1, 0) | w.unsqueeze(0) | w.squeeze() | w.expand(2, 16, 32).sum(0) | w.flatten() | w.transpose(0, 1).contiguous()
w.repeat(2, 1) | w.chunk(2)[1] | w.split(4)[2] | w.unbind()[3] | w.diagonal() | w.tril() | torch.cat([w, x])
torch.stack([w, x]) | torch.cat([w, d]) | F.pad(w, (1, 1)) | torch.outer(b, v) | b @ v | w @ v
torch.einsum("ij,kj->ik", w, x) | torch.einsum("bij,bjk->bik", a, a) | torch.bmm(a, a) | a @ a | F.linear(x, u)
F.linear(x, u, v[:8]) | F.mse_loss(w, x) | F.l1_loss(w, x) | F.smooth_l1_loss(w, x) | F.cross_entropy(w, t)
F.nll_loss(w.log_softmax(1), t) | F.binary_cross_entropy_with_logits(w, p) | F.binary_cross_entropy(w.sigmoid(), c.float())
F.kl_div(w, p, reduction="batchmean") | F.gelu(w) | F.silu(w) | F.elu(w) | F.leaky_relu(w) | F.softplus(w)
F.dropout(w, 0.5, False) | F.layer_norm(w, (32,)) | F.layer_norm(w, (32,), b, v)
F.batch_norm(w, None, None, training=True) | F.group_norm(g, 2)
F.normalize(w) | F.cosine_similarity(w, x) | F.embedding(t, e) | F.conv2d(g, k) | F.conv2d(g, k, padding=1)
F.conv1d(l, l[:, :, :3]) | F.max_pool2d(g, 2) | F.avg_pool2d(g, 2) | F.adaptive_avg_pool2d(g, 1)
F.interpolate(g, scale_factor=2) | F.scaled_dot_product_attention(a, a, a) | w.float() | w.double() | w.to(torch.float64)
w.clone() | torch.linalg.inv(a) | torch.linalg.det(a) | torch.fft.rfft(w).abs() | w.diff() | torch.special.expit(w)
torch.addmm(v[:16], w, r) | torch.addcmul(w, x, y, value=0.5) | torch.dist(w, x) | torch.cdist(w, x) | w.reciprocal() | -w
w.neg().exp() | w.unfold(1, 4, 2).sum(2) | w.repeat_interleave(2, 1) | w.take_along_dim(i, 1)
w.cummax(1)[0] | w.mode(1)[0] | w.kthvalue(3, 1)[0] | w.renorm(2, 0, 1.0) | w.nansum() | w.nan_to_num() | w.quantile(0.5)
w.clamp(min=v) | w.lerp(x, p) | w.remainder(p) | w.logaddexp(x) | w.atan2(x) | w.index_fill(0, j, 1.0) | w.movedim(0, 1)
w.rot90() | torch.hstack([w, x]) | torch.kron(w[:4, :4], x[:4, :4]) | torch.tensordot(w, r, 1) | torch.linalg.multi_dot([w, r, x])
torch.einsum("i,j->ij", b, v) | torch.linalg.cross(w[:, :3], x[:, :3]) | torch.linalg.vecdot(w, x) | torch.linalg.matrix_norm(w)
torch.linalg.solve(f, a) | torch.linalg.qr(a)[1].abs() | torch.linalg.cholesky(f) | torch.linalg.svdvals(a)
torch.linalg.eigvalsh(f) | torch.linalg.lu_factor(a)[0] | torch.linalg.solve_triangular(f, a, upper=True)
torch.linalg.matrix_power(a, 3) | torch.linalg.slogdet(a)[1] | torch.linalg.pinv(a) | torch.linalg.matrix_exp(a / 4)
F.adaptive_max_pool2d(g, 1) | F.adaptive_max_pool2d(g, 3) | F.adaptive_avg_pool2d(g, 3) | F.max_pool1d(l, 2) | F.unfold(g, 3)
F.interpolate(g, size=12, mode="bilinear") | F.interpolate(l, scale_factor=2, mode="linear") | F.pad(g, (1, 1, 1, 1), "reflect")
F.grid_sample(g, places, align_corners=False) | F.pixel_unshuffle(g, 2) | F.conv_transpose2d(g, k.transpose(0, 1), stride=2)
F.instance_norm(g) | F.rms_norm(w, (32,)) | F.hardswish(w) | F.hardtanh(w) | F.glu(w) | F.triplet_margin_loss(w, x, y)
F.multi_margin_loss(w, t) | F.multilabel_soft_margin_loss(w, c.float()) | F.cosine_embedding_loss(w, x, 2.0 * (t > 9) - 1)
F.cross_entropy(w, t, label_smoothing=0.1) | torch.fft.fft2(g).real | torch.fft.irfft(torch.fft.rfft(w)) | torch.cov(w)
linear(x) | layers(w) | batch_norm(w) | attention(a, a, a)[0] | lstm(a)[0] | random.Normal(w, p).log_prob(x)
random.Categorical(logits=w).log_prob(t) | random.kl_divergence(random.Normal(w, p), random.Normal(x, p))
random.Gamma(p + 1, p).log_prob(p)
w[j, 2:5] | w[:, [0, 3, 5]] | w[c[:, 0]] | w[:, ::2].flatten() | a.mT @ a | w.scatter(0, t[None, :8] % 16, x[:1, :8])
w.scatter_add(1, i[:8, :2], x[:8, :2]) | F.batch_norm(w, v, v.abs()) | random.Gamma(w.exp(), p).rsample()
random.Dirichlet(w.exp()).rsample()
"""
"""Expressions, separated by bars and lines. Expressions with `w`, `b` or `u` have a history, and are also timed with backward."""

PLAIN = """
x + y | x * y | x + d | x * n | x * d | n * 2.5 | n / m | n + m | n // m | n % m | x > y | x == y | x > 0 | n == 3 | h + x
h * 2 | h + h | x.t() + r | x[:, ::2] * y[:, ::2] | x[1:] - x[:-1] | x + 1 | x * s | x @ r | x.sum() | x.mean(0) | x.max()
x.max(1)[0] | x.argmax(1) | x.argmax() | x.std() | x.any() | c.all() | c.sum() | x.isnan().any() | x.sort()[0] | x.topk(3)[0]
n.sum() | n.float() | x.int() | x.long() | x.bfloat16() | x[0, 0].item() | torch.from_numpy(x.numpy())
torch.tensor(x.tolist()) | x[2:5] | x.detach() | x[c] | x[0] | x[:, 1] | x.view(-1) | x.reshape(-1, 8) | torch.zeros(10)
torch.ones(3, 4) | torch.full((10,), 2.0) | torch.arange(10) | torch.arange(0, 1, 0.1) | torch.linspace(0, 1, 50)
torch.eye(5) | torch.tensor([1.0, 2.0, 3.0]) | torch.tensor(3.0) | torch.zeros_like(x) | torch.ones_like(x) | torch.randn(10)
torch.rand(3, 4) | torch.randint(0, 10, (5,)) | torch.randperm(10) | torch.fft.fft(z).abs() | torch.fft.rfft(v).abs()
torch.cat([x, y]) | torch.stack([x, y], 1) | x.unique() | n.unique() | n.view(-1).bincount() | F.one_hot(t)
torch.meshgrid(v, v, indexing="ij")[0] | torch.logspace(0, 2, 10) | torch.isin(n, m) | torch.add(x, y, out=o)
torch.mul(x, 2, out=o) | torch.matmul(x, r, out=o[:, :16]) | torch.exp(x, out=o) | torch.add(x, d, out=q)
torch.sum(x, 1, out=o[:, 0]) | float(torch.allclose(x, y)) | x.add_(0.0) | x.mul_(y * 0 + 1) | o.copy_(x) | o.copy_(d)
q.add_(x * 0) | o.fill_(2.0) | o.zero_() | x.clamp_(-9, 9) | x.nonzero() | c.nonzero() | x.isclose(y)
float(torch.equal(x, y)) | torch.bernoulli(p / 2) | torch.multinomial(p, 2) | x.round() | x.floor() | x.sign()
n.bitwise_and(m) | ~c | c & c | x.histc(10) | x.quantile(0.5) | torch.bucketize(x, v.sort()[0]) | x.cumsum(0) | torch.triu(x)
x.repeat(2, 2) | o.copy_(v) | o.masked_fill_(c, 0.0) | o.scatter_(1, i, 1.0) | o.index_fill_(0, j, 0.0)
o.scatter_add_(1, i, x * 0) | o.index_put_((j, j), v[:8]) | o.lerp_(x, 0.1) | o.tril_() | o.random_(10) | o.normal_()
torch.clamp(x, -1, 1, out=o) | torch.cat([x[:8], y[:8]], out=o) | torch.cumsum(x, 1, out=o) | torch.max(x, 1, out=to)[0]
torch.mm(x, r, out=o[:, :16]) | torch.sort(x, 1, out=(o, n))[0] | x.half() | x.to(d) | n.clamp(5, 50) | n.max() | n.cumsum(1)
n.pow(2) | torch.div(x, y, rounding_mode="trunc") | x.new_tensor([1.0, 2.0]) | torch.rand_like(x) | torch.normal(x, p)
float(x[0, 0]) | torch.tensor([x[0, 0], x[1, 1]]) | torch.tril_indices(8, 8) | x.mode(1)[0] | torch.histogram(v, 10)[0]
torch.linalg.lstsq(a, a)[0] | torch.linalg.matrix_rank(a) | torch.cholesky_inverse(f) | torch.fft.fft2(a + 0j).real
torch.segment_reduce(v, "sum", lengths=m[:2, 0] * 0 + 16) | random.Normal(x, p).log_prob(y) | random.Normal(0.0, 1.0).sample()
torch.nn.utils.rnn.pad_sequence([x[:5], x[5:8], x[8:]]) | torch.utils.data.default_collate([(1.0, 2), (2.0, 3)])[0]
x.scatter_reduce(0, i % 16, y, "sum", include_self=False) | h.sum()
"""
"""Expressions without a history, in the same form."""

PARTS = """
a[0] = 1.0 | a[1:3] = v | a[c] = 0.0 | a[:, 2] += 1.0 | a[:, 0] = v[:16] | a[j] = x[:8] | a[2] *= b | a.mul_(2.0) | a += x
a[1:].add_(b)
"""
"""Statements that change `a`, a recorded product of a tensor and a number. They are timed with the sum and backward."""


def _changed(statement: str, names: dict[str, Any]) -> Timed:
    made: dict[str, Any] = {}
    body = f"w.grad = None; a = w * 1.5; {statement}; a.sum().backward(); return w.grad"
    exec(f"def step(w=w): {body}", names, made)
    timed: Timed = made["step"]
    return timed


def _case(timed: Callable[[str, dict[str, Any]], Timed], expression: str) -> Callable[[ModuleType], Timed]:
    return lambda torch: timed(expression, operands(torch))


for each in expressions(RECORDED):
    GROUP.case(each)(_case(forward, each))
    GROUP.case(f"{each}, f+b")(_case(with_backward, each))
for each in expressions(PLAIN):
    GROUP.case(f"{each}, plain")(_case(forward, each))
for each in expressions(PARTS):
    GROUP.case(each)(_case(_changed, each))
