"""A physics-informed network solves Burgers' equation, u_t + u u_x = ν u_xx (Raissi et al., 2019).

    python examples/physics_informed.py                   under a minute

The network is not trained on solutions. Training makes the derivatives of the network satisfy the equation. The initial and
boundary values are correct by construction. Writes physics_informed.png: the solution, and slices compared with finite
differences.
"""

from pathlib import Path

import adjoint as torch  # isort: skip  (imported before NumPy, because adjoint configures BLAS)
import numpy
from style import BLUE, GREY, ORANGE, arguments, open_axes, plt, save
from tqdm import tqdm

from adjoint import nn

VISCOSITY = 0.05

Solution = dict[float, numpy.ndarray]
"""The values over space, by time."""


def derivative(of: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    """Return the derivative of each output with respect to the input in the same position."""
    return torch.autograd.grad(of.sum(), by, create_graph=True)[0]


def residual(model: nn.Module, t: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the residual of the equation at some points."""
    u = value(model, t, x)
    u_x = derivative(u, x)
    return derivative(u, t) + u * u_x - VISCOSITY * derivative(u_x, x)


def value(model: nn.Module, t: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the solution: -sin(πx) at t = 0 and 0 at x = ±1 by construction, elsewhere from the network."""
    return -torch.sin(torch.pi * x) * (1 - t) + t * (1 - x * x) * model(torch.stack([t, x], -1)).squeeze(-1)


def by_differences(points: int = 401, until: float = 1.0) -> tuple[numpy.ndarray, Solution]:
    """Return the solution by finite differences at some times, for comparison."""
    x = numpy.linspace(-1, 1, points)
    u, dx = -numpy.sin(numpy.pi * x), x[1] - x[0]
    dt = 0.2 * dx * dx / VISCOSITY
    wanted, found, t = [0.0, 0.25, 0.5, 0.75, 1.0], {}, 0.0
    for moment in wanted:
        while t < moment - 1e-12:
            step = min(dt, moment - t)
            u_x = (u[2:] - u[:-2]) / (2 * dx)
            u_xx = (u[2:] - 2 * u[1:-1] + u[:-2]) / (dx * dx)
            u[1:-1] += step * (VISCOSITY * u_xx - u[1:-1] * u_x)
            t += step
        found[moment] = u.copy()
    return x, found


def main() -> None:
    options = arguments("Solve Burgers' equation.", steps=1200)
    torch.manual_seed(options.seed)
    model = nn.Sequential(
        nn.Linear(2, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    with tqdm(range(options.steps), desc="training", unit="step") as bar:
        for step in bar:
            optimizer.param_groups[0]["lr"] = 5e-3 * (1 - 0.98 * step / options.steps)
            t = torch.rand(600).requires_grad_()
            x = (torch.rand(600) * 2 - 1).requires_grad_()
            loss = residual(model, t, x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if step % 20 == 0:
                bar.set_postfix(residual=f"{losses[-1]:.2e}")
    places, exact = by_differences()
    line = torch.tensor(places, dtype=torch.float32)
    with torch.no_grad():
        found = {t: value(model, torch.full_like(line, t), line).numpy() for t in exact}
    error = max(abs(found[t] - exact[t]).max() for t in exact)
    print(f"largest error {error:.3f}")
    draw(model, places, exact, found, losses, options.out / "physics_informed.png")


@torch.no_grad()
def draw(model: nn.Module, x: numpy.ndarray, exact: Solution, found: Solution, losses: list[float], path: Path) -> None:
    """Draw the solution over time, slices of it, and the residual."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13.5, 4), layout="constrained")
    t, places = torch.meshgrid(torch.linspace(0, 1, 120), torch.linspace(-1, 1, 160), indexing="ij")
    shown = left.imshow(
        value(model, t, places).T.numpy(),
        cmap="RdBu_r",
        origin="lower",
        extent=(0, 1, -1, 1),
        aspect="auto",
        vmin=-1,
        vmax=1,
    )
    left.set(title="u(t, x): a shock forms", xlabel="t", ylabel="x")
    figure.colorbar(shown, ax=left, shrink=0.8)
    for time, values in exact.items():
        middle.plot(x, values, color=GREY, linewidth=4, alpha=0.5, label="finite differences" if time == 0 else None)
        middle.plot(x, found[time], color=ORANGE, linewidth=1.2, label="network" if time == 0 else None)
    middle.set(title="At t = 0, ¼, ½, ¾, 1", xlabel="x")
    middle.legend(frameon=False)
    right.plot(losses, color=BLUE, linewidth=0.8)
    right.set(title="Mean squared residual", xlabel="step", yscale="log")
    open_axes(middle, right)
    save(figure, path)


if __name__ == "__main__":
    main()
