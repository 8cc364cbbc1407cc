"""Train a small convolutional network on scikit-learn's 1,797 handwritten digits (8x8 pixels).

    python examples/digits.py                   about half a minute, over 98 % of the test digits right
    python examples/digits.py --epochs 5 --seed 1 --out /some/directory

Writes digits.pt (the trained weights), learning_curve.png and predictions.png.
"""

import argparse
from pathlib import Path

import adjoint as torch  # isort: skip  (imported before NumPy, because adjoint configures BLAS)
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from style import BLUE, GREEN, GREY, ORANGE, open_axes, plt
from tqdm import tqdm

from adjoint import nn
from adjoint.utils.data import DataLoader, TensorDataset

TEST_SHARE = 0.2
BATCH = 32
LEARNING_RATE = 4e-3

ACCURACIES = {
    "while training": "training digits, with dropout and shifts",
    "training digits": "training digits, as the test digits are read",
    "test digits": "test digits",
}
"""Three ways to count errors, and their labels in the learning curve."""


class DigitNet(nn.Module):
    """Two convolutions, each followed by pooling, and two linear layers. They map 8x8 pixels to ten scores."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, kernel_size=3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 2 * 2, 64), nn.ReLU(), nn.Linear(64, 10)
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return scores of the ten digits, shape (N, 10), for images of shape (N, 1, 8, 8)."""
        return self.classifier(self.features(images))


def load_data(seed: int) -> tuple[TensorDataset, TensorDataset]:
    """Return the training and the test digits, with each class in the same proportion. Pixels lie between 0 and 1."""
    pixels, targets = load_digits(return_X_y=True)
    train, test = train_test_split(np.arange(len(targets)), test_size=TEST_SHARE, stratify=targets, random_state=seed)
    images = torch.tensor(pixels / 16, dtype=torch.float32).view(-1, 1, 8, 8)
    labels = torch.tensor(targets)
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])


def shift(images: torch.Tensor) -> torch.Tensor:
    """Move the images of a batch by up to one pixel, all in the same direction. Blank pixels fill the edge."""
    down, right = torch.randint(0, 3, (2,)).tolist()
    height, width = images.shape[-2:]
    padded = images.new_zeros(*images.shape[:2], height + 2, width + 2)
    padded[:, :, 1:-1, 1:-1] = images
    return padded[:, :, down : down + height, right : right + width]


def train(model: nn.Module, data: TensorDataset, test: TensorDataset, epochs: int) -> dict[str, list[float]]:
    """Train with Adam while the learning rate falls linearly to zero. Return the history by epoch."""
    loader = DataLoader(data, batch_size=BATCH, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    history: dict[str, list[float]] = {name: [] for name in ("loss", *ACCURACIES)}
    steps, step = epochs * len(loader), 0
    with tqdm(total=steps, unit="batch", desc="training") as bar:
        for _ in range(epochs):
            model.train()
            total_loss, right = 0.0, 0
            for images, labels in loader:
                optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - step / steps)
                optimizer.zero_grad()
                scores = model(shift(images))
                loss = nn.functional.cross_entropy(scores, labels)
                loss.backward()
                optimizer.step()
                total_loss += loss.item() * len(labels)
                right += (scores.argmax(dim=1) == labels).sum().item()
                step += 1
                bar.update()
            history["loss"].append(total_loss / len(data))
            history["while training"].append(right / len(data))
            history["training digits"].append(accuracy(model, data))
            history["test digits"].append(accuracy(model, test))
            bar.set_postfix({"loss": f"{history['loss'][-1]:.3f}", "test": f"{history['test digits'][-1]:.2%}"})
    return history


@torch.no_grad()
def predict(model: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """Return the probability of each digit for each image."""
    model.eval()
    return torch.softmax(model(images), dim=1)


def accuracy(model: nn.Module, data: TensorDataset) -> float:
    """Return the share of images whose most probable digit is correct."""
    images, labels = data.tensors
    return (predict(model, images).argmax(dim=1) == labels).float().mean().item()


def draw_learning_curve(history: dict[str, list[float]], path: Path) -> None:
    """Draw the loss on the left, and the share of wrong digits on the right, on a logarithmic axis.

    During training, the network makes more errors than afterwards: dropout hides a quarter of its units, the images are
    shifted, and the mean of an epoch includes its first steps. Another curve shows the errors on the training digits
    after each epoch, without these conditions. Compare this curve with the curve of the test digits.
    """
    epochs = range(1, len(history["loss"]) + 1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    left.plot(epochs, history["loss"], color=BLUE, linewidth=2)
    left.set(title="Training loss", xlabel="epoch", ylabel="cross entropy", yscale="log")
    for (name, described), colour in zip(ACCURACIES.items(), (GREY, GREEN, ORANGE), strict=True):
        wrong = [max(100 * (1 - value), 0.03) for value in history[name]]
        right.plot(epochs, wrong, color=colour, linewidth=2, label=f"{described}: {wrong[-1]:.1f} %")
    right.set(title="Digits read wrong", xlabel="epoch", ylabel="%", yscale="log", ylim=(0.03, 100))
    right.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.xaxis.get_major_locator().set_params(integer=True)
    open_axes(left, right)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def draw_predictions(model: nn.Module, data: TensorDataset, path: Path, columns: int = 8, rows: int = 4) -> None:
    """Draw the wrong test digits, then the least certain digits. A bar shows the probability of the model's answer."""
    images, labels = data.tensors
    probabilities, predicted = predict(model, images).max(dim=1)
    wrong = predicted != labels
    order = (probabilities - 2.0 * wrong.float()).argsort()[: columns * rows]
    figure, grid = plt.subplots(rows, columns, figsize=(1.25 * columns, 1.55 * rows), layout="constrained")
    for axes, index in zip(grid.flat, order.tolist(), strict=True):
        sure, label, guess = probabilities[index].item(), labels[index].item(), predicted[index].item()
        colour = ORANGE if guess != label else BLUE
        axes.imshow(images[index, 0].numpy(), cmap="Greys", vmin=0, vmax=1)
        axes.set_title(
            f"{guess}" if guess == label else f"{guess}, is {label}", color=colour, fontsize=12, weight="bold"
        )
        axes.set_xlabel(f"{sure:.0%}", fontsize=8, color=GREY, labelpad=7)
        axes.plot([0, sure], [-0.06, -0.06], color=colour, linewidth=3, transform=axes.transAxes, clip_on=False)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_color("#d5d8dd")
    figure.suptitle(
        f"{int(wrong.sum())} of {len(labels)} test digits are read wrong (orange); the rest shown are the least sure"
    )
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small convolutional network on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="where the results go")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    torch.manual_seed(options.seed)
    train_data, test_data = load_data(options.seed)
    model = DigitNet()
    history = train(model, train_data, test_data, options.epochs)

    torch.save(model.state_dict(), options.out / "digits.pt")
    draw_learning_curve(history, options.out / "learning_curve.png")
    draw_predictions(model, test_data, options.out / "predictions.png")
    print(f"test accuracy {100 * history['test digits'][-1]:.2f} % on {len(test_data)} digits")
    print(f"wrote digits.pt, learning_curve.png and predictions.png to {options.out}")


if __name__ == "__main__":
    main()
