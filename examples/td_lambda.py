"""An agent that learns by TD(λ): eligibility traces of gradients, in a grid with wind (Sutton and Barto, chapter 12).

    python examples/td_lambda.py                          some seconds

Sarsa(λ) with one-hot features: the gradient of each value comes from backward, and the trace sums the gradients. Writes
td_lambda.png: learning curves for several λ, and the agent's final path.
"""

from pathlib import Path

import adjoint as torch  # isort: skip  (imported before NumPy, because adjoint configures BLAS)
from style import BLUE, GREEN, GREY, ORANGE, arguments, open_axes, plt, save
from tqdm import tqdm

from adjoint import nn

WIND = (0, 0, 0, 1, 1, 1, 2, 2, 1, 0)
ROWS, COLUMNS, START, GOAL = 7, len(WIND), (3, 0), (3, 7)
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
STEP_SIZE, EXPLORE, LONGEST = 0.5, 0.1, 500


def moved(place: tuple[int, int], action: int) -> tuple[int, int]:
    """Return the field that the agent reaches by an action. The wind of the column moves the agent up."""
    row, column = place
    down, right = MOVES[action]
    return min(max(row + down - WIND[column], 0), ROWS - 1), min(max(column + right, 0), COLUMNS - 1)


class Values(nn.Module):
    """A table of the value of each action in each field."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(ROWS * COLUMNS, len(MOVES))
        nn.init.zeros_(self.table.weight)

    def forward(self, place: tuple[int, int]) -> torch.Tensor:
        """Return the values of the four actions."""
        return self.table(torch.tensor(place[0] * COLUMNS + place[1]))


def choose(values: torch.Tensor, explore: float) -> int:
    """Return the best action, or a random action with probability `explore`."""
    if torch.rand(()) < explore:
        return int(torch.randint(len(MOVES), ()))
    best = (values == values.max()).nonzero().flatten()
    return int(best[torch.randint(len(best), ())])


def episode(model: Values, trace_decay: float) -> int:
    """Learn from one walk to the goal, and return the length of the walk."""
    traces = [torch.zeros_like(parameter) for parameter in model.parameters()]
    place, steps = START, 0
    values = model(place)
    action = choose(values.detach(), EXPLORE)
    while place != GOAL and steps < LONGEST:
        following = moved(place, action)
        gradients = torch.autograd.grad(values[action], list(model.parameters()))
        with torch.no_grad():
            following_values = model(following)
            following_action = choose(following_values, EXPLORE)
            goal = 0.0 if following == GOAL else following_values[following_action]
            error = -1.0 + goal - values[action].detach()
            for parameter, trace, gradient in zip(model.parameters(), traces, gradients, strict=True):
                trace.mul_(trace_decay).add_(gradient).clamp_(max=1.0)  # a replacing trace, not an accumulating trace
                parameter.add_(STEP_SIZE * error * trace)
        place, action, steps = following, following_action, steps + 1
        values = model(place)
    return steps


def main() -> None:
    options = arguments("Learn to walk in a grid with wind.", episodes=120, runs=3)
    curves, model = {}, Values()
    with tqdm(total=3 * options.runs * options.episodes, desc="learning", unit="episode") as bar:
        for trace_decay in (0.0, 0.5, 0.9):
            lengths = torch.zeros(options.runs, options.episodes)
            for run in range(options.runs):
                torch.manual_seed(options.seed + run)
                model = Values()
                for number in range(options.episodes):
                    lengths[run, number] = episode(model, trace_decay)
                    bar.update()
            curves[trace_decay] = lengths.mean(0)
    for trace_decay, lengths in curves.items():
        print(f"λ = {trace_decay}: {lengths[:10].mean():.0f} steps at first, {lengths[-10:].mean():.0f} at the end")
    draw(curves, model, options.out / "td_lambda.png")


def draw(curves: dict[float, torch.Tensor], model: Values, path: Path) -> None:
    """Draw the lengths of episodes on the left, and the values and the path of the last agent on the right."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", width_ratios=(1, 1.2))
    for (trace_decay, lengths), colour in zip(curves.items(), (GREY, BLUE, ORANGE), strict=True):
        left.plot(range(1, len(lengths) + 1), lengths.numpy(), color=colour, label=f"λ = {trace_decay}")
    left.set(title="Steps to the goal", xlabel="episode", ylabel="steps, mean of the runs", yscale="log")
    left.set_yticks([20, 50, 100, 200, 400], ["20", "50", "100", "200", "400"])
    left.minorticks_off()
    left.legend(frameon=False)
    open_axes(left)
    with torch.no_grad():
        best = torch.stack(
            [torch.stack([model((row, column)).max() for column in range(COLUMNS)]) for row in range(ROWS)]
        )
        way = [START]
        while way[-1] != GOAL and len(way) < 60:
            way.append(moved(way[-1], int(model(way[-1]).argmax())))
    shown = right.imshow(best.numpy(), cmap="Blues_r")
    right.plot(
        [column for _, column in way], [row for row, _ in way], color=ORANGE, linewidth=2.5, marker="o", markersize=4
    )
    for (row, column), text in ((START, "S"), (GOAL, "G")):
        right.text(column, row, text, ha="center", va="center", weight="bold", color=GREEN, fontsize=14)
    right.set_xticks(range(COLUMNS), [f"{'↑' * wind}" for wind in WIND])
    right.set(title=f"Value of each field, and the way: {len(way) - 1} steps", yticks=[], xlabel="wind")
    figure.colorbar(shown, ax=right, label="steps to go, negative", shrink=0.7)
    save(figure, path)


if __name__ == "__main__":
    main()
