"""A graph attention network finds the groups of a graph from noisy features and from the edges (Veličković et al., 2018).

    python examples/graph_attention.py                    some seconds

The graph is random, with more edges within the groups than between the groups. One node in ten has a label. Writes
graph_attention.png.
"""

from pathlib import Path

import adjoint as torch  # isort: skip  (imported before NumPy, because adjoint configures BLAS)
from style import GREY, arguments, open_axes, plt, save
from tqdm import tqdm

from adjoint import nn

GROUPS, SIZE, FEATURES = 4, 60, 16
COLOURS = ("#2f6db3", "#e07b39", "#3a9a6c", "#b0559c")


def random_graph() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the groups of nodes, their features, and the edges of shape (2, count): sources and targets."""
    labels = torch.arange(GROUPS).repeat_interleave(SIZE)
    features = nn.functional.one_hot(labels, FEATURES).float() * 0.7 + 0.6 * torch.randn(GROUPS * SIZE, FEATURES)
    same = labels[:, None] == labels[None, :]
    drawn = torch.rand(len(labels), len(labels)) < torch.where(same, 0.08, 0.006)
    drawn = drawn.triu(1)
    edges = (drawn | drawn.T | torch.eye(len(labels), dtype=torch.bool)).nonzero().T
    return labels, features, edges


class Attention(nn.Module):
    """Weighted means of neighbours' features. Each head computes the weight of an edge from the nodes at both ends."""

    def __init__(self, inputs: int, outputs: int, heads: int) -> None:
        super().__init__()
        self.heads, self.linear = heads, nn.Linear(inputs, heads * outputs, bias=False)
        self.source, self.target = (nn.Parameter(0.1 * torch.randn(heads, outputs)) for _ in range(2))

    def forward(self, features: torch.Tensor, edges: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return new features of shape (nodes, heads, outputs), and the weight of each edge in each head."""
        source, target = edges
        values = self.linear(features).unflatten(-1, (self.heads, -1))
        scores = (values * self.source).sum(-1)[source] + (values * self.target).sum(-1)[target]
        scores = nn.functional.leaky_relu(scores, 0.2).exp()
        total = torch.zeros(len(features), self.heads).index_add(0, target, scores)
        weights = scores / total[target]
        mixed = torch.zeros_like(values).index_add(0, target, weights.unsqueeze(-1) * values[source])
        return mixed, weights


class Network(nn.Module):
    """Two layers of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Attention(FEATURES, 8, 4), Attention(32, GROUPS, 1)

    def forward(self, features: torch.Tensor, edges: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return scores of the groups, the features after the first layer, and the weights of edges in the first layer."""
        hidden, weights = self.first(nn.functional.dropout(features, 0.4, self.training), edges)
        hidden = nn.functional.elu(hidden.flatten(1))
        scores, _ = self.second(nn.functional.dropout(hidden, 0.4, self.training), edges)
        return scores.squeeze(1), hidden, weights


def main() -> None:
    options = arguments("Train a graph attention network.", steps=200)
    torch.manual_seed(options.seed)
    labels, features, edges = random_graph()
    known = torch.rand(len(labels)) < 0.1
    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
    history = []
    with tqdm(range(options.steps), desc="training", unit="step") as bar:
        for _ in bar:
            model.train()
            scores, _, _ = model(features, edges)
            loss = nn.functional.cross_entropy(scores[known], labels[known])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                right = model(features, edges)[0].argmax(1) == labels
            history.append((right[known].float().mean().item(), right[~known].float().mean().item()))
            bar.set_postfix(unlabelled=f"{history[-1][1]:.1%}")
    print(f"accuracy on {int((~known).sum())} nodes without a label: {history[-1][1]:.1%}")
    draw(model, labels, features, edges, known, history, options.out / "graph_attention.png")


@torch.no_grad()
def draw(
    model: Network,
    labels: torch.Tensor,
    features: torch.Tensor,
    edges: torch.Tensor,
    known: torch.Tensor,
    history: list[tuple[float, float]],
    path: Path,
) -> None:
    """Draw the accuracy, and the graph.

    The predicted group determines the colour of a node, and the attention the width of an edge.
    """
    scores, _, weights = model(features, edges)
    said = scores.argmax(1)
    angle = 2 * torch.pi * labels / GROUPS
    generator = torch.Generator().manual_seed(1)
    places = torch.stack([angle.cos(), angle.sin()], 1) + 0.33 * torch.randn(len(labels), 2, generator=generator)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.4), layout="constrained", width_ratios=(1.35, 1))
    strength = weights.mean(1)
    for (a, b), weight in zip(edges.T.tolist(), strength.tolist(), strict=True):
        if a < b:
            left.plot(
                *places[[a, b]].T.numpy(), color=GREY, alpha=min(0.9, 1.5 * weight), linewidth=4 * weight, zorder=1
            )
    for group in range(GROUPS):
        chosen = said == group
        left.scatter(*places[chosen].T.numpy(), color=COLOURS[group], s=34, zorder=2, edgecolor="white", linewidth=0.6)
    wrong = said != labels
    left.scatter(
        *places[wrong].T.numpy(),
        facecolor="none",
        edgecolor="black",
        s=110,
        zorder=3,
        label=f"wrong: {int(wrong.sum())}",
    )
    left.scatter(
        *places[known].T.numpy(),
        marker="x",
        color="black",
        s=22,
        linewidth=1,
        zorder=4,
        label=f"label known: {int(known.sum())}",
    )
    left.set(title="What the network says of each node; edges as strong as their attention", xticks=[], yticks=[])
    left.legend(frameon=False, loc="upper right")
    left.spines[:].set_visible(False)
    for column, (name, colour) in enumerate((("with a label", GREY), ("without", "#e07b39"))):
        right.plot([100 * row[column] for row in history], color=colour, label=f"nodes {name}")
    right.set(title="Accuracy", xlabel="step", ylabel="%", ylim=(0, 101))
    right.legend(frameon=False, loc="lower right")
    open_axes(right)
    save(figure, path)


if __name__ == "__main__":
    main()
