"""A variational autoencoder of handwritten digits with a latent space of two dimensions (Kingma and Welling, 2014).

    python examples/vae_digits.py                         about half a minute

Writes vae_digits.png: the digits' positions in the latent space, and the decoder's image at each position.
"""

from pathlib import Path

import adjoint as torch  # isort: skip  (imported before NumPy, because adjoint configures BLAS)
from sklearn.datasets import load_digits
from style import arguments, plt, save
from tqdm import tqdm

from adjoint import nn
from adjoint.distributions import Bernoulli, Normal, kl_divergence
from adjoint.utils.data import DataLoader, TensorDataset


class Autoencoder(nn.Module):
    """An encoder from 64 pixels to the mean and deviation of a position, and a decoder from a position to 64 pixels."""

    def __init__(self, hidden: int = 128) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 4)
        )
        self.decoder = nn.Sequential(
            nn.Linear(2, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 64)
        )

    def place(self, pixels: torch.Tensor) -> Normal:
        """Return the distribution of the positions of some digits."""
        mean, deviation = self.encoder(pixels).chunk(2, -1)
        return Normal(mean, nn.functional.softplus(deviation) + 1e-3)

    def forward(self, pixels: torch.Tensor, weight: float) -> torch.Tensor:
        """Return the negative evidence lower bound, with the divergence multiplied by `weight`."""
        place = self.place(pixels)
        drawn = Bernoulli(logits=self.decoder(place.rsample()), validate_args=False)
        divergence = kl_divergence(place, Normal(0.0, 1.0)).sum(-1)
        return (weight * divergence - drawn.log_prob(pixels).sum(-1)).mean()


def main() -> None:
    options = arguments("Train a variational autoencoder on handwritten digits.", epochs=120)
    torch.manual_seed(options.seed)
    images, targets = load_digits(return_X_y=True)
    pixels = torch.tensor(images / 16, dtype=torch.float32)
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loader = DataLoader(TensorDataset(pixels), batch_size=64, shuffle=True)
    loss = torch.zeros(())
    with tqdm(range(options.epochs), desc="training", unit="epoch") as bar:
        for epoch in bar:
            optimizer.param_groups[0]["lr"] = 2e-3 * (1 - 0.9 * epoch / options.epochs)
            for (batch,) in loader:
                optimizer.zero_grad()
                loss = model(batch, weight=min(1.0, 2 * (epoch + 1) / options.epochs))
                loss.backward()
                optimizer.step()
            bar.set_postfix(bound=f"{-loss.item():.2f}")
    print(f"evidence lower bound {-loss.item():.2f} nats")
    draw(model, pixels, targets, options.out / "vae_digits.png")


@torch.no_grad()
def draw(model: Autoencoder, pixels: torch.Tensor, labels: object, path: Path, count: int = 20) -> None:
    """Draw the positions, coloured by digit, on the left, and a map of decoded digits on the right."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12.5, 5.8), layout="constrained")
    places = model.place(pixels).mean.numpy()
    shown = left.scatter(places[:, 0], places[:, 1], c=labels, cmap="tab10", s=14, alpha=0.8, vmin=-0.5, vmax=9.5)
    figure.colorbar(shown, ax=left, ticks=range(10), label="digit", shrink=0.8)
    left.set(title="Where the digits are", xlim=(-3, 3), ylim=(-3, 3), aspect="equal")
    line = torch.linspace(-2.4, 2.4, count)
    grid = torch.stack(torch.meshgrid(line, line.flip(0), indexing="xy"), -1).reshape(-1, 2)
    drawn = (
        torch.sigmoid(model.decoder(grid)).reshape(count, count, 8, 8).permute(0, 2, 1, 3).reshape(8 * count, 8 * count)
    )
    right.imshow(drawn.numpy(), cmap="Greys", extent=(-2.4, 2.4, -2.4, 2.4))
    right.set(title="What the decoder draws there")
    save(figure, path)


if __name__ == "__main__":
    main()
