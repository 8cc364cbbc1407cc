"""Groups: modules, functions, repeated blocks; folding creates no cycles."""

from collections import Counter
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adjoint as torch
from adjoint import nn
from adjoint.inspect.grouping import MOST_ITEMS, repeats
from adjoint.inspect.snapshot import snapshot


class Gate(nn.Module):
    """A module without parameters."""

    def forward(self, x):
        return x * torch.sigmoid(x)


class Mix(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.into = nn.Linear(size, size)
        self.gate = Gate()
        self.out = nn.Linear(size, size)

    def forward(self, x):
        return self.out(self.gate(self.into(x)))


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.mix = Mix(size)
        self.scale = nn.Parameter(torch.ones(size))

    def forward(self, x):
        y = self.mix(self.norm(x))
        return x + y * self.scale


class Tower(nn.Module):
    def __init__(self, blocks=4, size=4):
        super().__init__()
        self.embed = nn.Embedding(5, size)
        self.blocks = nn.ModuleList(Block(size) for _ in range(blocks))
        self.head = nn.Linear(size, 5, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, indices):
        x = self.embed(indices)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def loss_of(model):
    return torch.nn.functional.cross_entropy(model(torch.tensor([0, 1, 2])), torch.tensor([1, 2, 3]))


def assert_sound(picture):
    """Assert that each node is in at most one group, parents precede children, and folded groups form no cycles."""
    places = {group.id: number for number, group in enumerate(picture.groups)}
    assert all(group.parent is None or places[group.parent] < places[group.id] for group in picture.groups)
    counts = Counter(key for group in picture.groups for key in group.nodes)
    assert not counts or max(counts.values()) == 1
    home = {key: group.id for group in picture.groups for key in group.nodes}
    parents = {group.id: group.parent for group in picture.groups}

    def chain(key):
        found, place = [], home.get(key)
        while place is not None:
            found.append(place)
            place = parents[place]
        return [*found[::-1], key]

    edges = {}
    for node in picture.nodes:
        for target, _ in node.next:
            if target is not None:
                for one, other in zip(chain(node.id), chain(target), strict=False):
                    if one != other:  # the groups are siblings at the point at which the two paths divide
                        edges.setdefault(one, set()).add(other)
                        break
    assert_acyclic(edges)


def assert_acyclic(edges):
    state = {}
    for start in list(edges):
        stack = [(start, iter(edges.get(start, ())))] if start not in state else []
        state.setdefault(start, "open")
        while stack:
            key, rest = stack[-1]
            for target in rest:
                assert state.get(target) != "open", f"{key} → {target} closes a cycle"
                if target not in state:
                    state[target] = "open"
                    stack.append((target, iter(edges.get(target, ()))))
                    break
            else:
                state[key] = "done"
                stack.pop()


def modules_by_line(picture):
    return {(node.line.text, node.name): node.module for node in picture.nodes if node.line is not None}


def test_modules_of_nodes():
    model = Tower()
    picture = snapshot([loss_of(model)])
    lines = {}
    for node in picture.nodes:
        if node.line is not None:
            lines.setdefault((node.line.text, node.name), []).append(node.module)
    numbered = [f"blocks.{number}" for number in range(4)]
    assert lines["y = self.mix(self.norm(x))", "NativeLayerNormBackward0"] == [f"{each}.norm" for each in numbered]
    assert lines["return x + y * self.scale", "MulBackward0"] == numbered
    assert lines["return x + y * self.scale", "AddBackward0"] == numbered
    gates = lines["return x * torch.sigmoid(x)", "SigmoidBackward0"]
    assert gates == [f"{each}.mix.gate" for each in numbered]
    assert lines["x = self.embed(indices)", "EmbeddingBackward0"] == ["embed"]
    assert lines["return self.head(x)", "MmBackward0"] == ["head"]
    assert_sound(picture)


def test_equal_modules_are_folded_as_one():
    model = Tower(blocks=6)
    picture = snapshot([loss_of(model)], model)
    groups = {group.id: group for group in picture.groups}
    (repeat,) = [group for group in picture.groups if group.kind == "repeat"]
    assert repeat.times == 6
    inside = [group for group in picture.groups if group.parent == repeat.id]
    assert [group.label for group in inside] == [f"blocks.{number} (Block)" for number in range(6)]
    assert groups[repeat.parent].label == "Tower"
    labels = [group.label for group in picture.groups if group.parent == inside[0].id]
    assert labels == ["blocks.0.norm (LayerNorm)", "blocks.0.mix (Mix)"]


def test_the_only_model_among_the_variables_stands_for_params():
    from adjoint.inspect import graph

    model = Tower()
    pretender = mock.MagicMock()
    assert hasattr(pretender, "named_parameters")
    loss = loss_of(model)
    picture = graph(loss).snapshot
    assert "blocks.2.mix.gate" in {node.module for node in picture.nodes}
    assert {tensor.name for tensor in picture.tensors if tensor.kind == "leaf"} == {
        name for name, _ in model.named_parameters()
    }


def test_a_sequence_of_layers_called_in_one_line():
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)))
    picture = snapshot([model(torch.ones(1, 2)).sum()], model)
    assert {node.name: node.module for node in picture.nodes if "Relu" in node.name} == {"ReluBackward0": "2.1"}
    assert_sound(picture)


def test_rounds_of_a_loop():
    w = torch.ones(3, requires_grad=True)
    h = w
    for _ in range(20):
        a = h * w
        h = a.tanh()
    picture = snapshot([h.sum()])
    repeat, *rounds = picture.groups
    assert (repeat.kind, repeat.times, repeat.label) == ("repeat", 20, "mul, tanh")
    assert [group.kind for group in rounds] == ["block"] * 20
    names = {node.id: node.name for node in picture.nodes}
    assert all([names[key] for key in group.nodes] == ["MulBackward0", "TanhBackward0"] for group in rounds)
    assert_sound(picture)


def test_loops_within_loops():
    w = torch.ones(3, requires_grad=True)
    h = w
    for _ in range(5):
        for _ in range(7):
            h = h * w
        h = h.exp()
    picture = snapshot([h])
    outer = picture.groups[0]
    assert (outer.kind, outer.times) == ("repeat", 5)
    assert Counter(group.times for group in picture.groups if group.kind == "repeat") == {5: 1, 7: 5}
    assert_sound(picture)


def test_a_recurrent_cell_called_again_and_again():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.GRUCell(2, 2)

        def forward(self, x):
            h = torch.zeros(1, 2)
            for step in x:
                h = self.cell(step, h)
            return h

    model = Net()
    picture = snapshot([model(torch.ones(5, 1, 2)).sum()], model)
    assert any(group.kind == "repeat" and group.times >= 4 for group in picture.groups)
    assert_sound(picture)


def test_functions_are_groups_where_there_are_no_modules():
    w = torch.ones(3, requires_grad=True)

    def normalized(x):
        centred = x - x.mean()
        return centred / (centred * centred).mean().sqrt()

    out = (normalized(w * 2) * w).sum()
    picture = snapshot([out])
    assert [group.label.rpartition(".")[2] for group in picture.groups] == ["normalized"]
    assert len(picture.groups[0].nodes) == 6
    assert_sound(picture)


def test_a_comprehension_belongs_to_the_function_it_stands_in():
    def rotated(x):
        return sum([(x + 1).sin() * number for number in range(3)], sum(((x - 1).cos() for _ in range(3)), x))

    picture = snapshot([rotated(torch.ones(2, requires_grad=True)).sum()])
    assert not any("<genexpr>" in group.label or "<listcomp>" in group.label for group in picture.groups)


def test_very_many_items_are_divided():
    w = torch.ones(3, requires_grad=True)
    h = w
    for _ in range(2000):
        h = h + w
    picture = snapshot([h])
    inside = Counter(group.parent for group in picture.groups)
    assert max([*inside.values(), *(len(group.nodes) for group in picture.groups)]) <= MOST_ITEMS
    assert sum(len(group.nodes) for group in picture.groups) == 2001
    assert picture.groups[0].times == 2000
    assert picture.groups[1].label == "1 to 44 of 2000"
    assert_sound(picture)


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.lists(st.booleans(), min_size=60, max_size=60))
def test_groups_of_random_programs_are_sound(kinds, branches):
    model = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
    h = old = torch.ones(1, 2, requires_grad=True)
    for kind, branch in zip(kinds, branches, strict=False):
        if kind < 3:
            new = model[kind](h)
        elif kind == 3:
            new = h * old
        elif kind == 4:
            new = h.tanh()
        else:
            new = h + old
        if branch:
            old = h
        h = new
    assert_sound(snapshot([h.sum() + old.sum()], model))


class Ladder(nn.Module):
    """A descending part with pooling by a function, and an ascending part."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(3, 3, 3, padding=1) for _ in range(3)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(3, 3, 2, 2) for _ in range(3)])

    def forward(self, x):
        for layer in self.down:
            x = nn.functional.avg_pool2d(layer(x), 2)
        for layer in self.up:
            x = layer(x).tanh()
        return x


def test_rounds_have_the_names_of_what_they_hold():
    model = Ladder()
    picture = snapshot([model(torch.ones(1, 3, 8, 8)).sum()], model)
    labels = [group.label for group in picture.groups if group.kind in ("repeat", "block")]
    assert labels == [
        "down.#, avg_pool2d", "up.#, tanh",
        "down.0, avg_pool2d", "down.1, avg_pool2d", "down.2, avg_pool2d", "up.0, tanh", "up.1, tanh", "up.2, tanh",
    ]  # fmt: skip
    with_class = snapshot(
        [nn.Sequential(*(nn.ConvTranspose2d(3, 3, 1) for _ in range(3)))(torch.ones(1, 3, 2, 2)).sum()]
    )
    assert [group.label for group in with_class.groups if group.kind == "repeat"] == ["ConvTranspose2d"]


def test_repeats_are_found_from_left_to_right():
    assert repeats("xabcabcabcyzzzz", [1] * 15) == [(1, 3, 3), (11, 1, 4)]
    assert repeats("abab", [1] * 4) == []
    assert repeats("abab", [5] * 4) == [(0, 2, 2)]
    assert repeats("", []) == []
