"""Write a checkpoint in PyTorch's format, show its parts, change it for another task, and read it again.

    python examples/checkpoint_round_trip.py              some seconds

If PyTorch is installed, PyTorch also reads and writes the file, and the example compares the outputs of both libraries. Writes
round_trip.pt and checkpoint_round_trip.png: the contents of the file, and the accuracy before and after the transfer.
"""

import adjoint as torch  # isort: skip  (imported before NumPy, because adjoint configures BLAS)
import importlib.util
import zipfile
from pathlib import Path

from sklearn.datasets import load_digits
from style import BLUE, GREY, ORANGE, arguments, open_axes, plt, save
from tqdm import tqdm

from adjoint import nn


def network(classes: int) -> nn.Sequential:
    """Return a network of two hidden layers, whose weights both tasks share, and a last layer for one task."""
    return nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, classes))


FEW = 80
"""The number of digits that have a label in the second task."""


def train(
    model: nn.Module, pixels: torch.Tensor, labels: torch.Tensor, steps: int, name: str, known: int
) -> list[float]:
    """Train on the first `known` digits. Return the accuracy on the second half of the digits after each step."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    half, history = len(pixels) // 2, []
    for _ in tqdm(range(steps), desc=name, unit="step"):
        batch = torch.randint(known, (64,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pixels[batch]), labels[batch]).backward()
        optimizer.step()
        with torch.no_grad():
            history.append((model(pixels[half:]).argmax(1) == labels[half:]).float().mean().item())
    return history


def through_pytorch(path: Path, inputs: torch.Tensor, expected: torch.Tensor) -> str:
    """Read the file with PyTorch, compare the outputs, and write it again with PyTorch. Return a report."""
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed: the file did not go through it"
    import torch as pytorch

    layers = pytorch.nn
    model = layers.Sequential(
        layers.Linear(64, 96), layers.ReLU(), layers.Linear(96, 48), layers.ReLU(), layers.Linear(48, 2)
    )
    model.load_state_dict(pytorch.load(path, weights_only=True)["model"])
    with pytorch.no_grad():
        difference = abs(model(pytorch.from_numpy(inputs.numpy())).numpy() - expected.numpy()).max()
    pytorch.save({"model": model.state_dict()}, path)
    return f"PyTorch read the file, its outputs differ by at most {difference:.1e}, and it wrote the file again"


def main() -> None:
    options = arguments("Write a checkpoint, change it, and read it.", steps=200)
    torch.manual_seed(options.seed)
    images, targets = load_digits(return_X_y=True)
    order = torch.randperm(len(targets))
    pixels = torch.tensor(images / 16, dtype=torch.float32)[order]
    parity, labels = torch.tensor(targets % 2)[order], torch.tensor(targets)[order]

    source = network(2)
    train(source, pixels, parity, 2 * options.steps, "odd or even", known=len(pixels) // 2)
    path = options.out / "round_trip.pt"
    torch.save({"model": source.state_dict()}, path)
    with torch.no_grad():
        expected = source(pixels[:100])
    print(through_pytorch(path, pixels[:100], expected))

    state = torch.load(path)["model"]
    again = network(2)
    again.load_state_dict(state)
    with torch.no_grad():
        assert torch.equal(again(pixels[:100]), expected)

    transferred, scratch = network(10), network(10)
    transferred.load_state_dict(
        {name: tensor for name, tensor in state.items() if not name.startswith("4.")}, strict=False
    )
    history = {
        "from the checkpoint": train(transferred, pixels, labels, options.steps, "ten digits, transferred", FEW),
        "from nothing": train(scratch, pixels, labels, options.steps, "ten digits, from nothing", FEW),
    }
    draw(path, history, options.out / "checkpoint_round_trip.png")


def draw(path: Path, history: dict[str, list[float]], target: Path) -> None:
    """Draw the contents of the archive on the left, and the gain of the transfer on the right."""
    entries = sorted((entry.file_size, entry.filename.split("/", 1)[1]) for entry in zipfile.ZipFile(path).infolist())
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4), layout="constrained")
    left.barh([name for _, name in entries], [size for size, _ in entries], color=BLUE)
    left.set(title="Entries of round_trip.pt", xlabel="bytes", xscale="log")
    for (name, values), colour in zip(history.items(), (ORANGE, GREY), strict=True):
        right.plot([100 * value for value in values], color=colour, label=name)
    right.set(title=f"Test digits read right; {FEW} have labels", xlabel="step", ylabel="%", ylim=(0, 100))
    right.legend(frameon=False, loc="lower right")
    open_axes(left, right)
    save(figure, target)


if __name__ == "__main__":
    main()
