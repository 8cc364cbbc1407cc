"""The SVG has every edge of the graph, no overlaps, and both colour schemes."""

import random
import re
from collections import Counter
from itertools import combinations
from xml.etree import ElementTree

import pytest

import adjoint as torch
from adjoint import nn
from adjoint.inspect import svg
from adjoint.inspect.cards import amount, shorten, width_of
from adjoint.inspect.model import Group
from adjoint.inspect.snapshot import snapshot
from tests.inspect.models import gpt_loss

SVG = "{http://www.w3.org/2000/svg}"


def drawn(picture):
    """Return the parsed document, and its backward and forward edges as (from, to)."""
    document = ElementTree.fromstring(picture)
    edges = {"f": Counter(), "g": Counter()}
    for path in document.iter(f"{SVG}path"):
        for edge in (path.get("data-edges") or "").split():
            start, end, times = edge.split(":")
            edges[path.get("class")][start, end] += int(times)
    return document, edges["g"], edges["f"]


def random_graph(seed):
    """Return a tensor that random operations compute from a few leaves. Many operations have several inputs or outputs."""
    chance = random.Random(seed)
    made = [torch.rand(4, 4, requires_grad=chance.random() < 0.7) for _ in range(4)]
    made[0].requires_grad_(True)
    operations = [
        lambda a, b: a * b,
        lambda a, b: a @ b,
        lambda a, b: torch.cat([a, b]).chunk(2)[1],
        lambda a, b: a.exp(),
        lambda a, b: torch.stack(a.split(2)).reshape(4, 4),
        lambda a, b: a + a,
        lambda a, b: torch.where(a > b, a, b),
        lambda a, b: a.unbind(0)[2] * b,
        lambda a, b: a.t(),
        lambda a, b: a.max(dim=0)[0] + b,
    ]
    for _ in range(chance.randint(1, 14)):
        made.append(chance.choice(operations)(chance.choice(made), chance.choice(made)))
    return torch.stack([tensor.sum() for tensor in made]).sum()


def next_functions(root):
    """Return the edges of a live graph according to `next_functions`. Nodes are numbered in the order of a walk."""
    found, seen, queue = Counter(), [root], {root: 0}
    for node in seen:
        for following, index in node.next_functions:
            if following is None:
                continue
            if following not in queue:
                queue[following] = len(seen)
                seen.append(following)
            found[type(node).__name__, type(following).__name__, index] += 1
    return found


@pytest.mark.parametrize("seed", range(25))
def test_edges_are_those_of_next_functions(seed):
    loss = random_graph(seed)
    picture = snapshot([loss])
    names = {node.id: node.name for node in picture.nodes}
    for detail in ("values", "cards", "outline"):
        _, backward, forward = drawn(svg.render(picture, detail))
        assert backward == Counter((node.id, to) for node in picture.nodes for to, _ in node.next if to is not None)
        assert forward == Counter((tensor, o.id) for o in picture.operations for tensor in o.inputs)
    with_index = Counter((n.name, names[to], index) for n in picture.nodes for to, index in n.next if to is not None)
    assert with_index == next_functions(loss.grad_fn)


@pytest.mark.parametrize("seed", range(25))
def test_no_card_lies_on_another(seed):
    document, _, _ = drawn(svg.render(snapshot([random_graph(seed)])))
    boxes = []
    left, top, width, height = map(float, document.get("viewBox").split())
    frames = {rect for frame in document.iter(f"{SVG}g") if frame.get("class") == "frame" for rect in frame}
    for rect in document.iter(f"{SVG}rect"):
        if rect.get("class") != "page":
            x, y, w, h = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
            assert x >= left
            assert y >= top
            assert x + w <= left + width
            assert y + h <= top + height
            if rect not in frames:
                boxes.append((x, y, x + w, y + h))
    for a, b in combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


@pytest.mark.parametrize("seed", range(10))
def test_text_fits_its_card(seed):
    document, _, _ = drawn(svg.render(snapshot([random_graph(seed)])))
    for card in document.iter(f"{SVG}g"):
        rect, rows = card.find(f"{SVG}rect"), {}
        for text in card.findall(f"{SVG}text"):
            rows.setdefault(text.get("y"), []).append(width_of(text.text, 12))
        for widths in rows.values():
            assert sum(widths) <= float(rect.get("width")) - (21 if card.get("class") == "pill" else 17)


def mlp():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    inputs, target = torch.randn(32, 8), torch.randint(0, 3, (32,))
    loss = nn.functional.cross_entropy(model(inputs), target)
    return snapshot([loss], model, {"inputs": inputs, "target": target, "loss": loss})


def test_a_small_network_is_small_enough_for_a_readme():
    picture = svg.render(mlp())
    document, _, _ = drawn(picture)
    assert len(picture) < 60_000
    assert float(document.get("width")) < 1000
    texts = [text.text for text in document.iter(f"{SVG}text")]
    for words in (
        "0.weight",
        "2.bias",
        "inputs",
        "loss",
        "relu",
        "AddmmBackward0",
        "AccumulateGrad",
        "[32, 16]",
        "[32] int64",
        "0 (Linear)",
        "mat1",
        "mat1ᵀ @ grad",
    ):
        assert words in texts


def test_saved_tensors_and_their_versions():
    a = torch.rand(3, requires_grad=True)
    b = a.exp()
    c = b.sum()
    with torch.no_grad():
        b += 1
    picture = svg.render(snapshot([c]))
    assert re.search(r'<text class="r e stale"[^>]*>\[3\] v0 → v1</text>', picture)
    assert "changed since saved" in picture


def test_a_freed_graph_shows_saved_values():
    a = torch.rand(3, requires_grad=True)
    c = a.exp().sum()
    c.backward()
    picture = svg.render(snapshot([c]))
    assert re.search(r'<text class="r e freed"[^>]*>[^<]*freed</text>', picture)
    assert "ExpBackward0" in picture


def test_an_output_number_stands_at_its_edge():
    second = torch.rand(4, requires_grad=True).chunk(2)[1]
    document, _, _ = drawn(svg.render(snapshot([(second * 2).sum()])))
    assert [text.text for text in document.iter(f"{SVG}text") if text.get("class") == "i"] == ["1"]


def test_names_are_only_names():
    w = torch.ones(2, requires_grad=True)
    picture = svg.render(snapshot([w * 2], {'</style><script>"&': w}))
    assert "<script>" not in picture
    assert any('</style><script>"&' in text.text for text in ElementTree.fromstring(picture).iter(f"{SVG}text"))


def test_colours_follow_the_reader():
    picture = svg.render(mlp())
    light, dark = picture.split("@media(prefers-color-scheme:dark)")
    assert ".adjoint-drawing .page{fill:#ffffff}" in light
    assert ".adjoint-drawing .page{fill:#10151c}" in dark


def test_rules_are_of_this_picture_alone():
    style = re.search(r"<style>(.*?)</style>", svg.render(mlp()))[1].replace("@media(prefers-color-scheme:dark){", "")
    for selectors in re.findall(r"([^{}]+){", style):
        assert all(selector.startswith(".adjoint-drawing ") for selector in selectors.split(","))


def test_a_leaf_alone_and_a_number():
    w = torch.tensor(3.0, requires_grad=True)
    assert "AccumulateGrad" in svg.render(snapshot([w], {"w": w}))
    assert ">2<" in svg.render(snapshot([w * 2], {"w": w}), "cards")


def test_an_operand_of_which_nothing_is_on_record_is_not_called_a_scalar():
    difference = torch.ones(3, requires_grad=True) - torch.ones(3)
    for shown in (svg.render(snapshot([difference]), "cards"), str(torch.inspect.graph(difference))):
        assert "a constant" in shown and "scalar" not in shown


def test_words_are_measured_and_shortened():
    assert width_of("重み", 10) > width_of("ab", 10)
    assert shorten("transformer.h.0.attn.weight", 12, keep_end=True) == "…attn.weight"
    assert shorten("a  b\nc", 10) == "a b c"
    assert [amount(n) for n in (999, 1000, 123456, 5 * 10**9)] == ["999 B", "1 KB", "123 KB", "5 GB"]


@pytest.fixture(scope="module")
def transformer():
    loss, model = gpt_loss(12)
    return snapshot([loss], model, {"loss": loss})


@pytest.mark.thorough
def test_a_large_graph_is_drawn_with_groups_folded(transformer):
    picture = svg.render(transformer)
    document, backward, forward = drawn(picture)
    assert len(picture) < 60_000
    groups = {
        card.get("data-id"): card.find(f"{SVG}text").text
        for card in document.iter(f"{SVG}g")
        if card.get("class") == "group" and card.get("data-id")
    }
    assert [name for name in groups.values() if name.startswith("blocks.")] == [
        f"blocks.{n} (Block)" for n in range(12)
    ]
    heads = [head.find(f"{SVG}text").text for head in document.iter(f"{SVG}g") if head.get("class") == "head"]
    assert {"GPT", "blocks.# (Block) ×12", "head (Linear)"} <= set(heads)
    names = {name: id for id, name in groups.items()}
    for number in range(11):
        pair = names[f"blocks.{number} (Block)"], names[f"blocks.{number + 1} (Block)"]
        assert any(
            ends[0] in inside(transformer, pair[0]) and ends[1] in inside(transformer, pair[1]) for ends in forward
        )
        assert any(
            ends[0] in inside(transformer, pair[1]) and ends[1] in inside(transformer, pair[0]) for ends in backward
        )


def inside(picture, group):
    """Return the ids of all nodes and subgroups of a group."""
    groups = {group}
    for each in picture.groups:
        if each.parent in groups:
            groups.add(each.id)
    nodes = {node for each in picture.groups if each.id in groups for node in each.nodes}
    found = {tensor.id for tensor in picture.tensors if tensor.node in nodes}
    return nodes | found | {operation.id for operation in picture.operations if operation.node in nodes}


def test_edges_between_what_is_folded_are_those_of_the_graph(transformer):
    """Every edge of the graph is drawn unless both ends are in one folded group."""
    document, backward, _ = drawn(svg.render(transformer))
    folded = {card.get("data-id") for card in document.iter(f"{SVG}g") if card.get("class") == "group"}
    parent = {group.id: group.parent for group in transformer.groups}
    inner = {node: group.id for group in transformer.groups for node in group.nodes}

    def seen_as(node):
        found, group = node, inner.get(node)
        while group is not None:
            found, group = (group if group in folded else found), parent[group]
        return found

    edges = Counter((node.id, to) for node in transformer.nodes for to, _ in node.next if to is not None)
    assert backward == Counter({ends: n for ends, n in edges.items() if seen_as(ends[0]) != seen_as(ends[1])})


def test_a_group_that_is_left_and_entered_again():
    x = torch.rand(2, requires_grad=True)
    picture = snapshot([x.sin().cos().exp()], {"x": x})
    leaf, sin, cos, exp = (node.id for node in picture.nodes)
    picture.groups = [Group("g1", "around", "module", nodes=[leaf, sin, exp])]
    _, backward, forward = drawn(svg.render(picture, most=1))
    assert backward == Counter({(exp, cos): 1, (cos, sin): 1})
    assert sum(forward.values()) == 2


@pytest.mark.thorough
def test_a_very_deep_graph_is_a_small_picture():
    y = torch.ones(3, requires_grad=True)
    for _ in range(5_000):
        y = y.sin()
    picture = svg.render(snapshot([y]))
    assert len(picture) < 80_000
    assert len(drawn(picture)[1]) < 80
