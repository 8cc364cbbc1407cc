"""`compare`: the differences between two graphs."""

from pathlib import Path

import pytest

import adjoint as torch
from adjoint import inspect, nn
from tests.inspect import chromium

REASON = chromium.why_not()


def network(*layers):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), *layers, nn.Linear(3, 2))
    return inspect.graph(model(torch.ones(5, 4)).sum(), params=model)


def marks(picture):
    return [(each.name, each.mark) for each in picture.operations if each.mark]


def test_a_layer_that_was_added():
    found = inspect.compare(network(nn.Tanh()), network(nn.Tanh(), nn.Dropout(0.5)))
    assert ("native_dropout", "added") in marks(found.after) or ("mul", "added") in marks(found.after)
    assert not any(mark == "changed" for _, mark in marks(found.before))


def test_what_follows_a_layer_that_was_added_is_the_same():
    one, two = nn.Linear(4, 4), nn.Linear(4, 2)
    before = nn.Sequential(one, two)(torch.ones(3, 4)).sum()
    after = nn.Sequential(one, nn.Tanh(), two)(torch.ones(3, 4)).sum()
    found = inspect.compare(before, after)
    assert [(mark, each.name) for mark, each in found.differences] == [("added", "tanh")]


def test_equal_parts_have_no_marks():
    found = inspect.compare(network(nn.Tanh()), network(nn.Tanh()))
    assert found.differences == []
    assert str(found) == "6 operations before, 6 after: 6 the same"


def test_a_width_that_was_changed():
    w, v = torch.ones(3, requires_grad=True), torch.ones(4, requires_grad=True)
    found = inspect.compare((w.exp() * 2).sum(), (v.exp() * 2).sum())
    assert [mark for _, mark in marks(found.after)] == ["changed"] * 3


def test_a_parameter_of_an_operation_that_was_changed():
    w = torch.ones(3, 2, requires_grad=True)
    found = inspect.compare(w.softmax(0).sum(), w.softmax(1).sum())
    assert marks(found.after) == [("softmax", "changed")] or marks(found.after) == [("_softmax", "changed")]


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        return self.inner(x) + x


def test_the_variables_that_hold_the_models_may_have_different_names():
    old, new = Residual(), Residual()
    before, after = inspect.graph(old(torch.ones(2, 4)).sum()), inspect.graph(new(torch.ones(2, 4)).sum())
    assert inspect.compare(before, after).differences == []
    new.inner = nn.Sequential(new.inner, nn.Tanh())
    found = inspect.compare(before, inspect.graph(new(torch.ones(2, 4)).sum()))
    assert ("added", "tanh") in [(mark, each.name) for mark, each in found.differences]
    assert not any(each.name == "add" for _, each in found.differences)


def test_what_was_given_is_not_marked():
    one, two = network(nn.Tanh()), network(nn.ReLU())
    inspect.compare(one, two)
    assert marks(one.snapshot) == marks(two.snapshot) == []


def test_very_large_graphs_are_compared_from_both_ends(monkeypatch):
    monkeypatch.setattr("adjoint.inspect.comparing.LARGEST", 5)
    w = torch.ones(2, requires_grad=True)

    def chain(function):
        return function(w.sin().sin().sin()).sin().sin().sin()

    found = inspect.compare(chain(torch.exp), chain(torch.tanh))
    assert [(mark, each.name) for mark, each in found.differences] == [("removed", "exp"), ("added", "tanh")]
    assert found.same == 6


def test_mistakes_are_reported(tmp_path):
    with pytest.raises(TypeError, match="compare"):
        inspect.compare(3, 4)
    with pytest.raises(ValueError, match=r"\.html"):
        inspect.compare(network(), network()).save(tmp_path / "both.svg")


@pytest.mark.thorough
@pytest.mark.skipif(REASON is not None, reason=str(REASON))
def test_both_graphs_are_on_the_page_with_their_marks(tmp_path):
    path = inspect.compare(network(nn.Tanh()), network(nn.ReLU())).save(tmp_path / "both.html")
    browser = chromium.Browser(1400, 900)
    try:
        browser.call("Page.navigate", url=Path(path).resolve().as_uri())
        ready = "[...document.querySelectorAll('iframe')].every((each) => each.contentDocument?.documentElement?.dataset.ready)"
        browser.until(f"document.querySelectorAll('iframe').length === 2 && {ready}")
        found = browser.evaluate(
            """[...document.querySelectorAll("iframe")].map((each) =>
              [each.contentDocument.querySelectorAll(".unit.removed, .group.changed").length,
               each.contentDocument.querySelectorAll(".unit.added, .group.changed").length])"""
        )
        assert found[0][0] >= 1
        assert found[1][1] >= 1
        assert browser.problems == []
    finally:
        browser.close()
