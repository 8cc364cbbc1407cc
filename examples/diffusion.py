"""Diffusion in two dimensions: a network learns to remove noise, and draws a spiral from noise (Ho et al., 2020).

    python examples/diffusion.py                          about half a minute

Writes diffusion.png: the points while noise is removed, and the directions in which the network moves them.
"""

from pathlib import Path

import adjoint as torch  # isort: skip  (imported before NumPy, because adjoint configures BLAS)
from style import BLUE, arguments, plt, save
from tqdm import tqdm

from adjoint import nn

TIMES = 100
BETA = torch.linspace(1e-4, 0.08, TIMES)
KEPT = torch.cumprod(1 - BETA, 0)
"""The factor of the squared signal at each time."""


def spiral(count: int) -> torch.Tensor:
    """Return points on a spiral of one and a half turns."""
    angle = torch.pi * (0.6 + 3 * torch.rand(count).sqrt())
    return torch.stack([angle.cos(), angle.sin()], 1) * angle[:, None] / 6 + 0.03 * torch.randn(count, 2)


class Denoiser(nn.Module):
    """A network that predicts the noise in a point, given the point and the time."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2 + 12 + 16, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 2),
        )
        self.register_buffer("frequencies", 2.0 ** torch.arange(8) * torch.pi / 8)
        self.register_buffer("waves", torch.tensor([1.0, 2.0, 4.0]))

    def forward(self, points: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """Return noise of shape (N, 2) for points of shape (N, 2) at times of shape (N,)."""
        phase = (time / TIMES)[:, None] * self.frequencies
        waves = (points[:, :, None] * self.waves).flatten(1)
        return self.layers(torch.cat([points, waves.sin(), waves.cos(), phase.sin(), phase.cos()], 1))


@torch.no_grad()
def drawn(model: Denoiser, count: int, keep: list[int]) -> dict[int, torch.Tensor]:
    """Draw points from noise. Return the positions of the points at the times `keep`."""
    points, kept = torch.randn(count, 2), {}
    for time in reversed(range(TIMES)):
        if time + 1 in keep:
            kept[time + 1] = points
        noise = model(points, torch.full((count,), float(time)))
        points = (points - BETA[time] / (1 - KEPT[time]).sqrt() * noise) / (1 - BETA[time]).sqrt()
        if time > 0:
            points = points + BETA[time].sqrt() * torch.randn(count, 2)
    kept[0] = points
    return kept


def main() -> None:
    options = arguments("Learn to draw a spiral from noise.", steps=2500)
    torch.manual_seed(options.seed)
    model = Denoiser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    mean = 1.0
    with tqdm(range(options.steps), desc="training", unit="step") as bar:
        for step in bar:
            optimizer.param_groups[0]["lr"] = 2e-3 * (1 - 0.95 * step / options.steps)
            points, noise, time = spiral(256), torch.randn(256, 2), torch.randint(TIMES, (256,))
            kept = KEPT[time][:, None]
            loss = nn.functional.mse_loss(model(kept.sqrt() * points + (1 - kept).sqrt() * noise, time.float()), noise)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean += 0.01 * (loss.item() - mean)
            if step % 50 == 0:
                bar.set_postfix(loss=f"{mean:.3f}")
    times = [TIMES, 40, 20, 8]
    states = drawn(model, 2000, times)
    nearest = torch.cdist(states[0], spiral(2000)).min(1).values
    print(f"median distance of the drawn points from the spiral: {nearest.median():.3f}")
    draw(model, states, [*times, 0], options.out / "diffusion.png")


@torch.no_grad()
def draw(model: Denoiser, states: dict[int, torch.Tensor], times: list[int], path: Path) -> None:
    """Draw the points at some times, over the directions in which the network moves them."""
    figure, grid = plt.subplots(1, len(times), figsize=(15, 3.4), layout="constrained")
    line = torch.linspace(-2.6, 2.6, 18)
    places = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1).reshape(-1, 2)
    for axes, time in zip(grid, times, strict=True):
        noise = model(places, torch.full((len(places),), float(max(time - 1, 0))))
        axes.quiver(*places.T.numpy(), *(-noise).T.numpy(), color="#cdd3da", width=0.004, scale=45)
        axes.scatter(*states[time].T.numpy(), s=1.5, color=BLUE, alpha=0.6)
        axes.set(
            title=f"{time} steps to go" if time else "drawn",
            xlim=(-2.6, 2.6),
            ylim=(-2.6, 2.6),
            xticks=[],
            yticks=[],
            aspect="equal",
        )
    save(figure, path)


if __name__ == "__main__":
    main()
