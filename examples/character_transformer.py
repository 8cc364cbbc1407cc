"""A transformer that learns to write, one character at a time, from the sentences of a small grammar.

    python examples/character_transformer.py              about half a minute

Writes character_transformer.png: the loss, and the attention of the last layer's heads while the model writes.
"""

from pathlib import Path

import adjoint as torch  # isort: skip  (imported before NumPy, because adjoint configures BLAS)
import random

from style import BLUE, GREY, arguments, open_axes, plt, save
from tqdm import tqdm

from adjoint import nn

CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 48, 64, 4, 2, 32

ANIMALS = "cat dog fox owl crow bear goat wolf".split()
VERBS = {"sees": "see", "follows": "follow", "hears": "hear", "likes": "like"}
NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4}


def sentence(source: random.Random) -> str:
    """Draw a sentence in which verb and nouns agree in number, such as 'two owls see one fox'."""
    first, second = source.choice(list(NUMBERS)), source.choice(list(NUMBERS))
    subject, thing = source.choice(ANIMALS), source.choice(ANIMALS)
    verb = source.choice(list(VERBS))
    many, several = NUMBERS[first] > 1, NUMBERS[second] > 1
    return f"{first} {subject}{'s' * many} {VERBS[verb] if many else verb} {second} {thing}{'s' * several}. "


def is_right(text: str) -> bool:
    """Return whether a sentence follows the grammar."""
    words = text.rstrip(".").split()
    if len(words) != 5 or words[0] not in NUMBERS or words[3] not in NUMBERS:
        return False
    nouns = [(words[1], NUMBERS[words[0]] > 1), (words[4], NUMBERS[words[3]] > 1)]
    verb = words[2] in (VERBS.values() if NUMBERS[words[0]] > 1 else VERBS)
    return verb and all(noun in [animal + "s" * many for animal in ANIMALS] for noun, many in nouns)


class Block(nn.Module):
    """A block of attention to earlier characters and of two linear layers. Each result is added to the unnormalized input."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_layers = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.layers = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor, weights: bool = False) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return the block's output, and the weights of its heads if `weights` is true."""
        normed = self.before_attention(x)
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1))
        seen, heads = self.attention(
            normed,
            normed,
            normed,
            attn_mask=mask,
            is_causal=not weights,
            need_weights=weights,
            average_attn_weights=False,
        )
        x = x + seen
        return x + self.layers(self.before_layers(x)), heads


class Writer(nn.Module):
    """A network of embeddings of characters and positions, some blocks, and scores for the next character."""

    def __init__(self, letters: int) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.end = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters))

    def forward(self, text: torch.Tensor, weights: bool = False) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return scores of shape (N, L, letters) for text of shape (N, L), and the weights of the last block's heads."""
        x, heads = self.letters(text) + self.places(torch.arange(text.size(1))), None
        for number, block in enumerate(self.blocks):
            x, heads = block(x, weights and number == LAYERS - 1)
        return self.end(x), heads


@torch.no_grad()
def write(model: Writer, letters: list[str], start: str, length: int) -> str:
    """Draw a text that begins with `start` from the model's probabilities."""
    text = start
    for _ in range(length):
        given = torch.tensor([[letters.index(letter) for letter in text[-CONTEXT:]]])
        scores, _ = model(given)
        text += letters[int(torch.multinomial(torch.softmax(scores[0, -1] / 0.8, 0), 1))]
    return text


def main() -> None:
    options = arguments("Train a character transformer.", steps=600)
    torch.manual_seed(options.seed)
    source = random.Random(options.seed)
    text = "".join(sentence(source) for _ in range(8000))
    letters = sorted(set(text))
    data = torch.tensor([letters.index(letter) for letter in text])

    model = Writer(len(letters))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    with tqdm(range(options.steps), desc="training", unit="step") as bar:
        for step in bar:
            optimizer.param_groups[0]["lr"] = 3e-3 * min(1.0, (step + 1) / 50) * (1 - step / options.steps)
            starts = torch.randint(len(data) - CONTEXT - 1, (BATCH,))
            windows = data[starts[:, None] + torch.arange(CONTEXT + 1)]
            scores, _ = model(windows[:, :-1])
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), windows[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            if step % 20 == 0:
                bar.set_postfix(loss=f"{losses[-1]:.3f}")

    written = write(model, letters, "two ", 400)
    sentences = [part.strip() + "." for part in written.split(".")[:-1]]
    right = sum(map(is_right, sentences))
    print(written[:200])
    print(f"{right} of {len(sentences)} sentences are right")
    draw(model, letters, losses, written, options.out / "character_transformer.png")


def draw(model: Writer, letters: list[str], losses: list[float], written: str, path: Path) -> None:
    """Draw the loss on the left, and the attention of the heads in one sentence on the right."""
    shown = written.partition(".")[0][: CONTEXT - 1] + "."
    with torch.no_grad():
        _, heads = model(torch.tensor([[letters.index(letter) for letter in shown]]), weights=True)
    figure, grid = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained", width_ratios=(1, 1, 1))
    grid[0].plot(losses, color=GREY, linewidth=1)
    grid[0].plot(
        [sum(losses[max(0, i - 20) : i + 1]) / len(losses[max(0, i - 20) : i + 1]) for i in range(len(losses))],
        color=BLUE,
    )
    grid[0].set(title="Training loss", xlabel="step", ylabel="nats per character", ylim=(0, None))
    open_axes(grid[0])
    for axes, head in zip(grid[1:], (0, 1), strict=True):
        axes.imshow(heads[0, head].numpy(), cmap="Blues", aspect="equal")
        axes.set(title=f"Head {head + 1}: a row writes, a column is looked at")
        axes.set_xticks(range(len(shown)), list(shown.replace(" ", "␣")), fontsize=8)
        axes.set_yticks(range(len(shown)), list(shown.replace(" ", "␣")), fontsize=8)
    save(figure, path)


if __name__ == "__main__":
    main()
