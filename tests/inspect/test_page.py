"""The page as a file: complete, self-contained, safe to open, small."""

import json
import re
import time

import pytest

import adjoint as torch
from adjoint.inspect import page
from adjoint.inspect.model import NodeBox, Snapshot, Statistics, Step, TensorBox
from adjoint.inspect.snapshot import snapshot
from tests.inspect.models import gpt_loss


def embedded(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_everything_is_in_it_and_repetitions_appear_once():
    w = torch.ones(3, requires_grad=True)
    y = w
    for _ in range(5):
        y = y.sin()
    picture = snapshot([y], {"w": w})
    data = embedded(page.render(picture))
    assert [node["id"] for node in data["nodes"]] == [node.id for node in picture.nodes]
    assert [tensor["id"] for tensor in data["tensors"]] == [tensor.id for tensor in picture.tensors]
    sines = [node for node in data["nodes"] if node["name"] == "SinBackward0"]
    assert {data["shared"][node["line"]]["text"] for node in sines} == {"y = y.sin()"}
    assert len({node["formula"] for node in sines}) == 1
    assert [node["next"] for node in sines] == [[list(each) for each in node.next] for node in picture.nodes[1:]]


def test_defaults_are_left_out():
    data = embedded(page.render(Snapshot(tensors=[TensorBox("t1", "leaf")], nodes=[NodeBox("n1", "A", 0)])))
    assert data["tensors"] == [{"id": "t1", "kind": "leaf"}]
    assert data["nodes"] == [{"id": "n1", "name": "A", "sequence": 0}]


def test_names_cannot_end_the_data():
    nasty = "</script><script>alert(1)</script><!-- \u2028 ]]> &amp;"
    text = page.render(Snapshot(tensors=[TensorBox("t1", "leaf", name=nasty)], title=nasty))
    assert text.count("<script") == 2
    assert "alert(1)</script>" not in text
    assert embedded(text)["tensors"][0]["name"] == nasty


def test_numbers_that_json_does_not_know():
    nan = Statistics(1, 1, 0, 0, float("nan"), float("inf"), None, None)
    data = embedded(page.render(Snapshot(tensors=[TensorBox("t1", "leaf", statistics=nan)], steps=[Step("n1")])))
    assert data["shared"] == [
        {"count": 1, "nan": 1, "inf": 0, "zero": 0, "min": None, "max": None, "mean": None, "std": None}
    ]


def test_it_makes_no_requests():
    text = page.render(Snapshot())
    assert "default-src 'none'" in text
    links = set(re.findall(r"https?://[^\s\"'`)]+", text))
    assert links == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(script|img|iframe)[^>]+src=|<link(?! rel=\"icon\" href=\"data:)|@import|fetch\(", text)


def test_its_parts_are_in_the_package_and_in_place():
    text = page.render(Snapshot())
    assert len(text) < 150_000
    assert "{{" not in text and "function opening(graph" in text and "dialog" in text.partition("</style>")[0]


def test_colours_that_are_used_exist():
    text = page.render(Snapshot())
    assert set(re.findall(r"var\(--([a-z-]+)", text)) <= {"part", *re.findall(r"--([a-z-]+):", text)}


@pytest.fixture(scope="module")
def transformer():
    loss, model = gpt_loss(12)
    return snapshot([loss], model, {"loss": loss})


@pytest.mark.thorough
def test_a_transformer_of_twelve_layers_is_a_small_page(transformer):
    began = time.process_time()
    text = page.render(transformer)
    assert time.process_time() - began < 1
    assert len(text.encode()) < 2_000_000
