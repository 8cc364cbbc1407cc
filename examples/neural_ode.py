"""A neural ordinary differential equation: a network learns the field in which some points move (Chen et al., 2018).

    python examples/neural_ode.py                         about half a minute

The solver is the Runge-Kutta method of fourth order. Backward computes gradients through the recorded steps of the solver. Writes
neural_ode.png.
"""

from pathlib import Path

import adjoint as torch  # isort: skip  (imported before NumPy, because adjoint configures BLAS)
from collections.abc import Callable

from style import BLUE, GREY, ORANGE, arguments, open_axes, plt, save
from tqdm import tqdm

from adjoint import nn

Field = Callable[[torch.Tensor], torch.Tensor]


def truth(y: torch.Tensor) -> torch.Tensor:
    """Return the field that the network learns: a spiral that bends far from the origin."""
    return (y**3) @ torch.tensor([[-0.1, 2.0], [-2.0, -0.1]]).T


def solved(field: Field, y: torch.Tensor, step: float, count: int) -> torch.Tensor:
    """Return the path from `y` in `count` steps, of shape (count + 1, *y.shape)."""
    path = [y]
    for _ in range(count):
        a = field(y)
        b = field(y + step / 2 * a)
        c = field(y + step / 2 * b)
        d = field(y + step * c)
        y = y + step / 6 * (a + 2 * b + 2 * c + d)
        path.append(y)
    return torch.stack(path)


def main() -> None:
    options = arguments("Learn the field of a differential equation.", steps=500)
    torch.manual_seed(options.seed)
    step, count, length = 0.025, 400, 12
    observed = solved(truth, torch.tensor([2.0, 0.0]), step, count)

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 2))

        def forward(self, y: torch.Tensor) -> torch.Tensor:
            return self.layers(y**3)

    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    with tqdm(range(options.steps), desc="training", unit="step") as bar:
        for number in bar:
            optimizer.param_groups[0]["lr"] = 1e-2 * (1 - 0.95 * number / options.steps)
            starts = torch.randint(count - length, (64,))
            predicted = solved(model, observed[starts], step, length)
            goal = torch.stack([observed[starts + i] for i in range(length + 1)])
            loss = (predicted - goal).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if number % 20 == 0:
                bar.set_postfix(loss=f"{losses[-1]:.4f}")
    with torch.no_grad():
        path = solved(model, observed[0], step, count)
    print(f"mean distance from the true path: {(path - observed).norm(dim=-1).mean():.3f}")
    draw(model, observed, path, losses, options.out / "neural_ode.png")


@torch.no_grad()
def draw(model: nn.Module, observed: torch.Tensor, path: torch.Tensor, losses: list[float], target: Path) -> None:
    """Draw the learned field with both paths, and the loss."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained", width_ratios=(1.2, 1))
    line = torch.linspace(-2.3, 2.3, 24)
    places = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1)
    arrows = model(places)
    arrows = arrows / arrows.norm(dim=-1, keepdim=True).clamp(min=1e-3)
    left.quiver(
        *places.unbind(-1), *(part.numpy() for part in arrows.unbind(-1)), color="#c3c9d1", width=0.003, scale=38
    )
    left.plot(*observed.T.numpy(), color=GREY, linewidth=3.5, label="true path")
    left.plot(*path.T.numpy(), color=ORANGE, linewidth=1.4, label="path in the learned field")
    left.set(title="The learned field", aspect="equal")
    left.legend(frameon=False, loc="upper left")
    right.plot(losses, color=BLUE, linewidth=1.2)
    right.set(title="Training loss", xlabel="step", ylabel="mean distance", yscale="log")
    open_axes(right)
    save(figure, target)


if __name__ == "__main__":
    main()
