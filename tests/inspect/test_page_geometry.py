"""The page after opening, in Chromium. The picture fits into the window, text is legible, and no parts overlap or are clipped."""

from pathlib import Path

import pytest

import adjoint as torch
from adjoint import inspect
from tests.inspect import chromium
from tests.inspect.models import Recurrent, ResNet8, UNet, gpt_loss, perceptron_loss
from tests.inspect.test_modules import LeNet

REASON = chromium.why_not()
pytestmark = [pytest.mark.skipif(REASON is not None, reason=str(REASON)), pytest.mark.thorough]

WINDOWS = [(1400, 900), (1024, 700), (390, 800)]


def perceptron():
    loss, model = perceptron_loss()
    return inspect.graph(loss, params=model)


def film():
    loss, model = perceptron_loss()
    return inspect.trace_backward(loss, params=model)


def lenet():
    torch.manual_seed(0)
    model = LeNet()
    loss = torch.nn.functional.cross_entropy(model(torch.randn(4, 1, 28, 28)), torch.randint(0, 10, (4,)))
    return inspect.graph(loss)


def transformer():
    loss, model = gpt_loss(12)
    return inspect.graph(loss, params=model)


def drawn(model, *inputs):
    torch.manual_seed(0)
    scores = model(*inputs)
    return inspect.graph(torch.nn.functional.cross_entropy(scores, torch.zeros_like(scores[:, 0]).long()))


def recurrent():
    return drawn(Recurrent(), torch.randint(0, 20, (30, 4)))


def residual():
    return drawn(ResNet8(), torch.randn(4, 3, 32, 32))


def u_net():
    return drawn(UNet(), torch.randn(2, 1, 32, 32))


def no_modules():
    """The page of fifty operations in one function is legible, although the graph has no frames."""
    x = torch.linspace(0, 1, 5, requires_grad=True)
    for _ in range(10):
        x = ((x.sin() + 1) * x).exp().log()
    return inspect.graph(x)


def few():
    w, x, b = torch.tensor(3.0, requires_grad=True), torch.tensor(2.0), torch.tensor(1.0, requires_grad=True)
    y = w * x + b
    return inspect.graph(y, values=True)


GRAPHS = {
    graph.__name__: graph
    for graph in (perceptron, film, lenet, transformer, recurrent, residual, u_net, no_modules, few)
}

PROBLEMS = (Path(__file__).parent / "geometry.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser():
    browser = chromium.Browser()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {name: graph().save(folder / f"{name}.html") for name, graph in GRAPHS.items()}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("window", WINDOWS, ids=["large", "small", "telephone"])
@pytest.mark.parametrize("name", GRAPHS)
def test_it_opens_in_order(browser, pages, name, window, scheme):
    browser.size(*window)
    browser.media(scheme)
    browser.open(pages[name])
    assert browser.problems == []
    assert browser.evaluate(PROBLEMS) == []


@pytest.mark.parametrize(("name", "window"), [("lenet", (1024, 700)), ("u_net", (1400, 900)), ("u_net", (390, 800))])
def test_the_modules_in_the_model_are_seen_where_they_fit(browser, pages, name, window):
    browser.size(*window)
    browser.open(pages[name])
    assert browser.evaluate("state.open.size") > 0


def test_a_telephone_shows_a_formula_as_it_is(browser, pages):
    browser.size(390, 800)
    browser.open(pages["few"])
    assert browser.evaluate("state.scene.items.map((item) => item.thing.operation?.name).filter(Boolean)") == [
        "mul",
        "add",
    ]


@pytest.mark.parametrize("window", WINDOWS, ids=["large", "small", "telephone"])
def test_what_flows_in_a_step_is_not_clipped_and_moves_nothing_out_of_sight(browser, pages, window):
    browser.size(*window)
    browser.media("light")
    browser.open(pages["film"])
    for _ in range(3):
        browser.key("ArrowRight")
    assert browser.evaluate(PROBLEMS) == []


@pytest.mark.parametrize("window", WINDOWS, ids=["large", "small", "telephone"])
def test_the_panel_moves_the_graph_and_does_not_cover_it(browser, pages, window):
    browser.size(*window)
    browser.media("light")
    browser.open(pages["perceptron"])
    browser.evaluate("select(graph.data.nodes.find((node) => node.name === 'NllLossBackward0').id)")
    browser.evaluate("new Promise((done) => setTimeout(done, 300))")
    places = """["#panel", "#sheet", ".card.selected .b"].map((each) => {
      const { left, top, right, bottom } = document.querySelector(each).getBoundingClientRect();
      return [left, top, right, bottom];
    })"""
    panel, sheet, card = browser.evaluate(places)
    assert panel[0] >= sheet[2] - 1 or panel[1] >= sheet[3] - 1
    assert sheet[0] <= card[0]
    assert sheet[1] <= card[1]
    assert card[2] <= sheet[2]
    assert card[3] <= sheet[3]


@pytest.mark.parametrize("name", ["perceptron", "lenet", "transformer"])
def test_the_main_path_is_straight(browser, pages, name):
    browser.size(1400, 900)
    browser.open(pages[name])
    columns = """[...new Set(state.scene.items
      .filter(({ type, thing }) => type === "group" || (type === "unit" && thing.operation && thing.operation.name !== "t"))
      .map((item) => Math.round(item.x)))].length"""
    assert browser.evaluate(columns) <= (2 if name == "transformer" else 1)
