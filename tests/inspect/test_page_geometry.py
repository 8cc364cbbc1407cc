"""The page as it opens, in Chromium: everything fits into the window and can be read; nothing overlaps, is clipped or covered."""

import pytest

import adjoint as torch
from adjoint import inspect
from tests.inspect import chromium
from tests.inspect.models import gpt_loss, perceptron_loss
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


def no_modules():
    """Fifty operations in one function: without frames, and still it opens legibly."""
    x = torch.linspace(0, 1, 5, requires_grad=True)
    for _ in range(10):
        x = ((x.sin() + 1) * x).exp().log()
    return inspect.graph(x)


def few():
    w, x, b = torch.tensor(3.0, requires_grad=True), torch.tensor(2.0), torch.tensor(1.0, requires_grad=True)
    y = w * x + b
    return inspect.graph(y, values=True)


GRAPHS = {graph.__name__: graph for graph in (perceptron, film, lenet, transformer, no_modules, few)}

PROBLEMS = """(() => {
  const found = [], of = (element) => element.getBoundingClientRect(), name = (element) => element.textContent.slice(0, 40);
  const sheet = of(find("sheet")), scale = view.scale;
  const cards = [...document.querySelectorAll("#items .card, #items .pill")];
  const box = (card) => of(card.querySelector(".b:not(.s)") ?? card.querySelector("rect"));
  const meet = (a, b, by = 0.6) => a.left < b.right - by && b.left < a.right - by && a.top < b.bottom - by && b.top < a.bottom - by;
  if (!cards.length) found.push("no cards");
  for (const frame of [...cards, ...document.querySelectorAll("#frames rect")]) {
    const rect = frame.tagName === "rect" ? of(frame) : box(frame);
    if (rect.left < sheet.left - 0.6 || rect.right > sheet.right + 0.6 || rect.top < sheet.top - 0.6 || rect.bottom > sheet.bottom + 0.6) found.push(`outside the window: ${name(frame)}`);
  }
  cards.forEach((one, at) => {
    for (const other of cards.slice(at + 1)) if (meet(box(one), box(other))) found.push(`overlap: ${name(one)} / ${name(other)}`);
    for (const text of one.querySelectorAll("text")) {
      const inner = of(text), outer = box(one);
      if (inner.left < outer.left + 1 || inner.right > outer.right - 1 || inner.top < outer.top - 3 || inner.bottom > outer.bottom + 3) found.push(`clipped: ${text.textContent}`);
    }
    const texts = [...one.querySelectorAll("text")].map(of);
    texts.forEach((a, number) => texts.slice(number + 1).forEach((b) => { if (meet(a, b, 3)) found.push(`texts meet: ${name(one)}`); }));
    const rect = box(one), top = document.elementFromPoint(rect.left + rect.width / 2, rect.top + rect.height / 2);
    if (!one.contains(top)) found.push(`covered: ${name(one)} by ${top?.id || top?.getAttribute("class")}`);
  });
  const labels = [...document.querySelectorAll("#lines text")];
  labels.forEach((one, at) => {
    for (const card of cards) if (meet(of(one), box(card), 3)) found.push(`label on a card: ${name(one)} / ${name(card)}`);
    for (const other of labels.slice(at + 1)) if (meet(of(one), of(other), 1)) found.push(`labels meet: ${name(one)} / ${name(other)}`);
  });
  for (const text of document.querySelectorAll("#sheet text")) {
    if (getComputedStyle(text).display !== "none" && parseFloat(getComputedStyle(text).fontSize) * scale < 10.99) found.push(`small: ${text.textContent}`);
  }
  for (const element of document.querySelectorAll("header *, footer *")) {
    const rect = of(element);
    if (!rect.width || !element.checkVisibility() || element.closest("details:not([open]) > ul") || getComputedStyle(element).position === "absolute") continue;
    if (rect.left < -0.6 || rect.right > innerWidth + 0.6 || rect.top < -0.6 || rect.bottom > innerHeight + 0.6) found.push(`outside the page: ${element.id || element.tagName}`);
    if (element.matches("button, select, summary") && parseFloat(getComputedStyle(element).fontSize) < 11) found.push(`small: ${element.id}`);
    if (element.matches("button") && element.scrollWidth > element.clientWidth + 1) found.push(`clipped: ${element.id}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page scrolls sideways");
  return found;
})()"""


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


@pytest.mark.parametrize("window", WINDOWS, ids=["large", "small", "telephone"])
def test_the_panel_moves_the_graph_and_does_not_cover_it(browser, pages, window):
    browser.size(*window)
    browser.media("light")
    browser.open(pages["perceptron"])
    browser.evaluate("select(graph.data.nodes.find((node) => node.name === 'NllLossBackward0').id)")
    browser.evaluate("new Promise((done) => setTimeout(done, 300))")
    covered = """(() => { const panel = find("panel").getBoundingClientRect(), sheet = find("sheet").getBoundingClientRect();
      const card = document.querySelector(".card.selected .b").getBoundingClientRect();
      return [panel.left < sheet.right - 1 && sheet.left < panel.right - 1 && panel.top < sheet.bottom - 1 && sheet.top < panel.bottom - 1,
        card.left >= sheet.left && card.right <= sheet.right && card.top >= sheet.top && card.bottom <= sheet.bottom]; })()"""
    assert browser.evaluate(covered) == [False, True]


@pytest.mark.parametrize("name", ["perceptron", "lenet", "transformer"])
def test_the_main_path_is_straight(browser, pages, name):
    browser.size(1400, 900)
    browser.open(pages[name])
    columns = """[...new Set(state.scene.items.filter((item) => item.type !== "frame" && !(item.thing.tensors && !item.thing.operation))
      .filter((item) => !item.thing.operation || item.thing.operation.name !== "t").map((item) => Math.round(item.x)))].length"""
    assert browser.evaluate(columns) <= (2 if name == "transformer" else 1)
