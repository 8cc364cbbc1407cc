"""The text formats, and the choice of a format by the file's suffix."""

import io
import re
import shutil

import pytest

import adjoint as torch
from adjoint.inspect import graph, png


@pytest.fixture
def drawn():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    x = torch.tensor([3.0, 4.0])
    y = (w * x).exp()
    first, second = y.chunk(2)
    loss = (first * second * w).sum()
    y.add_(1)
    return graph(loss)


def test_text_of_a_graph(drawn):
    text = drawn.text()
    assert text.splitlines()[0] == "graph of loss: 6 operations, 1 leaf, 20 bytes saved, 8 bytes of leaves"
    for node in drawn.snapshot.nodes:
        name = node.name if not node.accumulate else "AccumulateGrad"
        assert name in text
    assert "saved result  float32[2]  version 0, now 1: stale" in text
    assert "x float32[2] = [3, 4]  off the graph" in text
    assert "y = (w * x).exp()" in text
    assert "├─ SplitBackward0 n4, below" in text
    assert "SplitBackward0 n4  → float32[1]" in text  # the variables are views of memory that has changed since
    assert str(drawn) == repr(drawn) == text


def test_every_node_is_in_the_tree_once_and_branches_are_aligned():
    w = torch.ones(1, requires_grad=True)
    y = w
    for _ in range(40):
        y = y * w + y
    drawn = graph(y)
    text = drawn.text()
    for node in drawn.snapshot.nodes:
        if not node.accumulate:
            assert len(re.findall(rf"\b{node.id}\b  →", text)) == 1
    assert max(len(line) - len(line.lstrip("│ ├╰─")) for line in text.splitlines()) < 12


def test_a_large_graph_is_shown_as_its_groups():
    w = torch.ones(1, requires_grad=True)
    y = w
    for _ in range(300):
        y = (y * w).tanh()
    text = str(graph(y))
    assert "mul, tanh × 300  600 nodes" in text
    assert len(text.splitlines()) < 12


def test_dot_and_mermaid_have_every_box_and_edge(drawn):
    picture = drawn.snapshot
    backward = sum(target is not None for node in picture.nodes for target, _ in node.next)
    for text, arrow in ((drawn.dot(), r"n\d+ -> n\d+ \[style=dashed"), (drawn.mermaid(), r"n\d+ -\.->")):
        for box in (*picture.tensors, *picture.operations, *picture.nodes):
            assert re.search(rf"^ +{box.id}\b", text, re.MULTILINE)
        assert len(re.findall(arrow, text)) == backward
    assert 'label="1"' in drawn.dot()
    assert "|1|" in drawn.mermaid()


def test_texts_are_escaped():
    w = torch.ones(1, requires_grad=True)
    drawn = graph(w * 2, params={'a"<b>\\': w})
    assert r"a\"<b>\\" in drawn.dot()
    assert "a&quot;&lt;b&gt;" in drawn.mermaid()


@pytest.mark.parametrize("suffix", [".svg", ".html", ".dot", ".gv", ".json", ".mmd", ".txt"])
def test_save(drawn, tmp_path, suffix):
    path = drawn.save(tmp_path / f"picture{suffix}")
    assert path.read_text(encoding="utf-8").strip() == getattr(drawn, {
        ".svg": "svg", ".html": "html", ".dot": "dot", ".gv": "dot", ".json": "json", ".mmd": "mermaid", ".txt": "text",
    }[suffix])().strip()  # fmt: skip


def test_other_suffixes_are_refused(drawn, tmp_path):
    with pytest.raises(ValueError, match=r"expected a name that ends in \.svg, .*\.png.* got 'picture\.doc'"):
        drawn.save(tmp_path / "picture.doc")
    assert list(tmp_path.iterdir()) == []


def test_without_anything_that_draws_there_is_no_png(drawn, tmp_path, monkeypatch):
    monkeypatch.setattr(png.shutil, "which", lambda name: None)
    monkeypatch.setattr(png.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=r"Chromium, librsvg .* Inkscape or CairoSVG .*adjoint-autograd.inspect"):
        drawn.save(tmp_path / "picture.png")


def test_the_next_renderer_is_tried_where_one_fails(drawn, tmp_path, monkeypatch):
    def fail(source, target):
        raise OSError("no display")

    def write(source, target):
        assert source.read_text().lstrip().startswith(("<svg", "<?xml"))
        target.write_bytes(b"image")

    monkeypatch.setattr(png, "renderers", lambda drawing: iter([("one", fail), ("two", write)]))
    assert drawn.save(tmp_path / "picture.png").read_bytes() == b"image"
    monkeypatch.setattr(png, "renderers", lambda drawing: iter([("one", fail)]))
    with pytest.raises(RuntimeError, match="one: no display"):
        drawn.save(tmp_path / "picture.png")


@pytest.mark.skipif(shutil.which("rsvg-convert") is None, reason="rsvg-convert is not installed")
def test_a_png_is_an_image(drawn, tmp_path, monkeypatch):
    monkeypatch.setattr(png, "CHROMIUMS", ())
    assert drawn.save(tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_in_a_notebook(drawn):
    assert "<svg" in drawn._repr_html_()
    w = torch.ones(1, requires_grad=True)
    y = w
    for _ in range(100):
        y = y * w
    assert graph(y)._repr_html_().startswith("<iframe srcdoc=")


def test_colours_where_rich_is_installed(drawn):
    console = pytest.importorskip("rich.console")
    out = console.Console(record=True, width=200, file=io.StringIO())
    out.print(drawn)
    assert drawn.text() in "\n".join(line.rstrip() for line in out.export_text(clear=False).splitlines())
    assert "\x1b[" in out.export_text(styles=True)


def test_nodes_by_name_and_id(drawn):
    assert drawn["ExpBackward0"].name == drawn[drawn["ExpBackward0"].id].name == "ExpBackward0"
    with pytest.raises(KeyError, match="MulBackward0: there are 3 such nodes"):
        drawn["MulBackward0"]
