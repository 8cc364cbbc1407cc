"""Frames fit their contents. If all groups are unfolded, no frame has more than one empty line."""

import pytest

import adjoint as torch
from adjoint import inspect
from adjoint.inspect.cards import LABEL, LINE
from adjoint.inspect.scene import FRAME_HEAD, Scene
from adjoint.inspect.tree import Folder, Tree
from tests.inspect.models import Recurrent, ResNet8, UNet, gpt_loss, perceptron_loss

GAP = 34.0
"""The largest distances between rows, which the edges between them and the names of operands need."""


def scores(model, *inputs):
    torch.manual_seed(0)
    return model(*inputs).sum()


MODELS = {
    "perceptron": lambda: perceptron_loss()[0],
    "transformer": lambda: gpt_loss(2)[0],
    "recurrent": lambda: scores(Recurrent(), torch.randint(0, 20, (30, 4))),
    "residual": lambda: scores(ResNet8(), torch.randn(2, 3, 32, 32)),
    "u_net": lambda: scores(UNet(), torch.randn(2, 1, 32, 32)),
}


def unfolded(tree):
    waiting = [tree.root]
    for folder in waiting:
        waiting += [child for child in folder.children if isinstance(child, Folder)]
    return [folder.id for folder in waiting[1:]]


def extent(item):
    """Return the left, upper, right and lower end of a node or frame."""
    box = item.box
    return item.x - box.left, item.y - box.above, item.x + box.right, item.y + box.below


@pytest.mark.parametrize("detail", ["values", "cards", "outline"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.long_cases
def test_no_frame_has_more_than_a_line_of_dead_space(name, detail):
    tree = Tree(inspect.graph(MODELS[name]()).snapshot)
    scene = Scene(tree, unfolded(tree), detail)
    frames = [item for item in scene.items if item.type == "frame"]
    assert len(frames) >= 4
    for item in frames:
        frame = scene.frames[item.id]
        things = sorted(
            (extent(each) for each in frame.items.values() if each.type != "door"), key=lambda each: each[1]
        )
        lines = [x for line in frame.lines for x, *_ in line.stops]
        left, right = item.x - item.box.left, item.x - item.box.left + item.width
        assert min([each[0] for each in things] + lines) - left <= LINE
        assert right - max([each[2] for each in things] + lines) <= LINE
        assert things[0][1] - item.y <= FRAME_HEAD + GAP + LINE
        assert item.y + item.height - max(each[3] for each in things) <= LINE
        filled = things[0][3]
        for _, top, _, bottom in things[1:]:
            assert top - filled <= GAP + LABEL + LINE
            filled = max(filled, bottom)
