"""Linear algebra, transforms, sparse tensors, distributions."""

import adjoint as torch
from adjoint import Tensor
from adjoint.distributions import Categorical, Normal, kl_divergence


def least_squares(a: Tensor, b: Tensor) -> Tensor:
    solution = torch.linalg.lstsq(a, b).solution
    by_normal = torch.linalg.solve(a.T @ a, a.T @ b)
    q, r = torch.linalg.qr(a)
    by_qr = torch.linalg.solve_triangular(r, q.T @ b, upper=True)
    return solution - by_normal + by_qr


def decompositions(m: Tensor) -> float:
    u, s, vh = torch.linalg.svd(m, full_matrices=False)
    values, vectors = torch.linalg.eigh(m @ m.T)
    sign, logarithm = torch.linalg.slogdet(m @ m.T + torch.eye(len(m)))
    factor = torch.linalg.cholesky(m @ m.T + torch.eye(len(m)))
    whole = (u * s) @ vh
    return (
        whole.sum() + values.sum() + vectors[0, 0] + sign * logarithm + factor.det() + torch.linalg.inv(factor).trace()
    ).item()


def contractions(a: Tensor, b: Tensor) -> Tensor:
    return (
        torch.einsum("ij,jk->ik", a, b)
        + torch.tensordot(a, b, dims=1)
        + torch.bmm(a.unsqueeze(0), b.unsqueeze(0)).squeeze(0)
        + torch.addmm(torch.zeros(len(a), b.shape[1]), a, b, beta=0.5)
        + torch.linalg.multi_dot([a, b])
        + torch.outer(a[:, 0], b[0])
    )


def spectra(signal: Tensor) -> Tensor:
    spectrum = torch.fft.rfft(signal, n=signal.shape[-1])
    frequencies = torch.fft.rfftfreq(signal.shape[-1], d=0.1)
    power = spectrum.abs() ** 2 + torch.view_as_real(spectrum).pow(2).sum(-1) + spectrum.conj().real
    back = torch.fft.irfft(spectrum, n=signal.shape[-1])
    return (power * frequencies).sum() + back.sum() + torch.fft.fft2(signal.view(2, -1)).real.sum()


def distances(a: Tensor, b: Tensor) -> Tensor:
    nearest = torch.cdist(a, b, p=2.0).min(dim=1)
    return nearest.values + nearest.indices + torch.pairwise_distance(a, b)[: len(a)]


def special(x: Tensor) -> Tensor:
    return (
        torch.special.erf(x)
        + torch.lgamma(x)
        + torch.special.expit(x)
        + torch.erfinv(x / 10)
        + torch.special.logit(x, eps=0.1)
    )


def sparse(size: int) -> Tensor:
    indices = torch.tensor([[0, 1], [1, 0]])
    matrix = torch.sparse_coo_tensor(indices, torch.tensor([1.0, 2.0]), (size, size)).coalesce()
    return (
        torch.sparse.mm(matrix, torch.ones(size, 1)) + matrix.to_dense() @ torch.ones(size, 1) + matrix.values().sum()
    )


def policies(logits: Tensor) -> Tensor:
    policy = Categorical(logits=logits)
    action = policy.sample()
    return -policy.log_prob(action) * 0.5 + policy.entropy()


def gaussians(mean: Tensor) -> Tensor:
    first, second = Normal(mean, 1.0), Normal(torch.zeros_like(mean), torch.ones_like(mean))
    return kl_divergence(first, second) + first.rsample((2,)).mean(0) + first.cdf(mean)


def meshes(count: int) -> Tensor:
    x, y = torch.meshgrid(torch.linspace(-1, 1, count), torch.linspace(-1, 1, count), indexing="ij")
    grid = torch.stack((x, y), dim=-1)
    return (
        torch.trapezoid(grid[..., 0] * grid[..., 1], dx=0.5) + torch.diff(x, dim=0).sum() + torch.gradient(x)[0].sum()
    )


def masks(length: int) -> Tensor:
    causal = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
    padding = torch.arange(length)[None, :] < torch.tensor([1, 2])[:, None]
    return (
        causal.isinf().sum()
        + padding.logical_not().sum()
        + torch.isnan(causal).any()
        + torch.tril_indices(length, length).sum()
    )


def run() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(5, 3), torch.randn(5, 2)
    print(least_squares(a, b))
    print(decompositions(torch.randn(3, 3)))
    print(contractions(torch.randn(2, 3), torch.randn(3, 2)))
    print(spectra(torch.randn(8)))
    print(distances(torch.randn(3, 2), torch.randn(3, 2)))
    print(special(torch.rand(3) + 0.5))
    print(sparse(3))
    print(policies(torch.randn(4)))
    print(gaussians(torch.randn(3)))
    print(meshes(3))
    print(masks(4))
