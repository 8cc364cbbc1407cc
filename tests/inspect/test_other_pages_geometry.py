"""The pages of `compare` and `watch` in Chromium: no text or shape overlaps another, is clipped or covered, or is too faint."""

from pathlib import Path

import pytest

import adjoint as torch
from adjoint import inspect, nn
from tests.inspect import chromium
from tests.inspect.models import gpt_loss, perceptron_loss

REASON = chromium.why_not()
pytestmark = [pytest.mark.skipif(REASON is not None, reason=str(REASON)), pytest.mark.thorough]

WINDOWS = pytest.mark.parametrize("window", [(1400, 900), (1024, 700), (390, 800)], ids=["large", "small", "telephone"])
SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])

GRAPH, CHARTS = (
    (Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("geometry.js", "table_geometry.js")
)


def formulas():
    w = torch.ones(3, requires_grad=True)
    return inspect.compare((w * 2).exp().sum(), (w * 2).tanh().exp().sum())


def perceptrons():
    (before, model), (after, other) = perceptron_loss(), perceptron_loss()
    return inspect.compare(inspect.graph(before, params=model), inspect.graph(after.log(), params=other))


def transformers():
    (before, model), (after, other) = gpt_loss(12), gpt_loss(11)
    return inspect.compare(inspect.graph(before, params=model), inspect.graph(after, params=other))


COMPARED = {each.__name__: each for each in (formulas, perceptrons, transformers)}


def trained(steps, **parameters):
    with inspect.watch(parameters) as watched:
        optimizer = torch.optim.SGD(parameters.values(), lr=0.01)
        for _ in range(steps):
            optimizer.zero_grad()
            sum(each.square().sum() for each in parameters.values() if each.numel() > 1).backward()
            optimizer.step()
    return watched


def weights(*names):
    return {name: torch.linspace(1, 3, 4, requires_grad=True) for name in names}


def one_step():
    return trained(1, **weights("w"))


def layers():
    return trained(
        400, **weights(*(f"transformer.h.{at}.attn.c_attn.{each}" for at in range(12) for each in ("weight", "bias")))
    )


def extremes():
    nothing = torch.tensor(2.0, requires_grad=True)
    return trained(30, nan=torch.full((2,), float("nan"), requires_grad=True), nothing=nothing, **weights("w"))


def not_begun():
    with inspect.watch(nn.Linear(3, 1)) as watched:
        return watched


WATCHED = {each.__name__: each for each in (one_step, layers, extremes, not_begun)}


@pytest.fixture(scope="module")
def browser():
    browser = chromium.Browser()
    browser.call("Page.setBypassCSP", enabled=True)  # the test queries frames whose pages run no scripts
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {name: made().save(folder / f"{name}.html") for name, made in (COMPARED | WATCHED).items()}


def visit(browser, path, window, scheme, condition):
    browser.size(*window)
    browser.media(scheme)
    browser.problems.clear()
    browser.call("Page.navigate", url=path.resolve().as_uri())
    browser.until(f"location.href.endsWith('{path.name}') && document.readyState === 'complete' && ({condition})")
    browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert browser.problems == []


@SCHEMES
@WINDOWS
@pytest.mark.parametrize("name", COMPARED)
def test_two_graphs_are_seen_side_by_side_or_one_below_the_other(browser, pages, name, window, scheme):
    ready = (
        "[...document.querySelectorAll('iframe')].every((each) => each.contentDocument.documentElement.dataset.ready)"
    )
    visit(browser, pages[name], window, scheme, ready)
    assert browser.evaluate(CHARTS) == []
    for number, title in enumerate(("before", "after")):
        browser.evaluate(f"frames[{number}].frameElement.scrollIntoView()")
        assert browser.apply("(number, script) => frames[number].eval(script)", number, GRAPH) == []
        assert browser.evaluate(f"frames[{number}].document.querySelector('h1').textContent") == title
    assert browser.evaluate("Array.from(frames).map((each) => each.document.getElementById('detail').value)") == [
        "0",
        "0",
    ]
    places = browser.evaluate(
        "[...document.querySelectorAll('iframe')].map((each) => [each.clientWidth, each.clientHeight])"
    )
    assert min(width for width, _ in places) >= min(window[0], 2 * 300) / 2
    assert max(height for _, height in places) <= window[1]


@SCHEMES
@WINDOWS
@pytest.mark.parametrize("name", WATCHED)
def test_norms_over_a_training_can_be_read(browser, pages, name, window, scheme):
    visit(browser, pages[name], window, scheme, "document.querySelector('section') !== null")
    assert browser.evaluate(CHARTS) == []


def test_of_a_name_that_is_too_long_the_end_is_seen(browser, tmp_path):
    name = ".".join(["encoder"] * 9) + ".weight"
    path = trained(3, **weights(name)).save(tmp_path / "long.html")
    visit(browser, path, (390, 800), "light", "document.querySelector('section') !== null")
    hidden = """(() => {
      const name = document.querySelector(".names div"), text = name.firstChild.getBoundingClientRect();
      const box = name.getBoundingClientRect();
      return [box.left - text.left, text.right - box.right];
    })()"""
    left, right = browser.evaluate(hidden)
    assert left > 10
    assert right < 1
