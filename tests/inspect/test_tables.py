"""The numbers in tables, compared with expected numbers, and the variables that keep graphs alive."""

import gc
import json
import sys
import threading
import types

import pytest

import adjoint as torch
from adjoint import nn
from adjoint.inspect import gradients, live_graphs, saved_memory
from adjoint.inspect.tables import MOST_ROWS, Table

# ---------------------------------------------------------------- saved_memory


def test_saved_memory_by_hand():
    w = torch.ones(100, requires_grad=True)
    x = torch.ones(100)
    a = w * x  # saves `x` (400 bytes), but not `w`, because `x` needs no gradient
    b = a.exp()  # saves its result (400 bytes)
    c = b * x  # saves `x` again, which is already counted
    d = b.view(10, 10).sin()  # saves a view of counted memory
    found = saved_memory(c.sum() + d.sum())
    assert (found.total, found.leaves) == (800, 400)
    assert [(row["bytes"], row["share"], row["tensors"]) for row in found.by_line] == [(400, 0.5, 1), (400, 0.5, 1)]
    assert [row["line"].partition("  ")[2] for row in found.by_line] == [
        "a = w * x  # saves `x` (400 bytes), but not `w`, because `x` needs no gradient",
        "b = a.exp()  # saves its result (400 bytes)",
    ]
    assert {row["operator"]: row["bytes"] for row in found.by_operator} == {"MulBackward0": 400, "ExpBackward0": 400}
    assert "800 bytes saved for backward, beside 400 bytes of leaves" in str(found)


def test_saved_memory_by_module():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(8, 16, bias=False), nn.Linear(16, 4, bias=False)

        def forward(self, x):
            return self.two(self.one(x).tanh())

    model = Net()
    loss = model(torch.ones(2, 8)).sum()
    found = saved_memory(loss, params=model)
    assert {row["module"]: row["bytes"] for row in found.by_module} == {"one": 64, "model": 128}
    assert found.leaves == 4 * (8 * 16 + 16 * 4)
    assert "by module" in str(found)
    loss.backward()
    assert saved_memory(loss, params=model).total == 0


def test_a_view_holds_the_whole_of_its_memory():
    w = torch.ones(1, requires_grad=True)
    x = torch.ones(1000)
    assert saved_memory(w * x[3:4]).total == 4000


# ---------------------------------------------------------------- gradients


def test_gradients_by_hand():
    w, v, u = (torch.tensor(values, requires_grad=True) for values in ([3.0, 4.0], [1.0, 1.0, 1.0, 1.0], [5.0]))
    w.grad = torch.tensor([0.0, -2.0])
    v.grad = torch.tensor([float("nan"), float("inf"), 3.0, 4.0])
    table = gradients({"w": w, "v": v, "u": u}, lr=0.1)
    first, second, third = table
    assert (first["norm"], first["max"], first["zeros"], first["nan"], first["inf"]) == (2, 2, 0.5, 0, 0)
    assert first["weight norm"] == 5
    assert first["update/weight"] == pytest.approx(0.04)
    assert (second["norm"], second["max"], second["nan"], second["inf"], second["zeros"]) == (5, 4, 1, 1, 0)
    assert (third["norm"], third["update/weight"], third["weight norm"]) == (None, None, 5)
    assert "50.0%" in str(table)


def test_gradients_of_a_model_with_an_optimizer():
    model = nn.Linear(2, 1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer = torch.optim.SGD([{"params": [model.weight], "lr": 0.5}], lr=0.1)
    table = gradients(model, optimizer)
    assert [row["parameter"] for row in table] == ["weight", "bias"]
    assert table[0]["update/weight"] == pytest.approx(0.5 * table[0]["norm"] / table[0]["weight norm"])
    assert table[1]["update/weight"] is None


@pytest.mark.parametrize(("model", "found"), [(3, "int"), ([torch.ones(1)], "list of Tensor")])
def test_gradients_of_tensors_without_names(model, found):
    with pytest.raises(TypeError, match=f"^model: expected a Module, .* iterable of pairs of them, but got {found}$"):
        torch.inspect.gradients(model)


@pytest.mark.thorough
def test_gradients_plotted():
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    pyplot.switch_backend("agg")
    model = nn.Linear(2, 1)
    model(torch.ones(1, 2)).sum().backward()
    model.bias.grad = torch.tensor([float("nan")])
    axes = gradients(model).plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["bias", "weight"]
    assert any("1 nan" in text.get_text() for text in axes.texts)
    pyplot.close("all")


# ---------------------------------------------------------------- live_graphs


@pytest.fixture(autouse=True)
def without_collector():
    """Collect the cycles of other tests, and disable the garbage collector, because a collection could change the result."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def mine(table):
    return [row for row in table if "test_tables.py" in row["since"]]


TRAINING = """
LEAKED = []


class Trainer:
    cache = None

    def __init__(self):
        self.losses = {}
"""


@pytest.fixture
def training(monkeypatch):
    """Create a module. The garbage collector does not visit the test module, because conftest.py freezes it."""
    module = types.ModuleType("training")
    exec(TRAINING, vars(module))
    monkeypatch.setitem(sys.modules, "training", module)
    return module


def line_after(function, offset):
    return function.__code__.co_firstlineno + offset


@pytest.mark.thorough
def test_a_list_of_losses_is_found():
    w = torch.ones(10, requires_grad=True)

    def train():
        total = []
        for _ in range(3):
            total.append((w.exp() * 2).sum())  # noqa: PERF401
        return total

    history = train()
    (row,) = mine(live_graphs())
    line = line_after(train, 3)
    assert (row["graphs"], row["nodes"], row["bytes"]) == (3, 9, 120)
    assert row["since"] == row["to"] == f"test_tables.py:{line} in train"
    assert row["held by"] == "history[…] in test_a_list_of_losses_is_found"
    del history
    assert mine(live_graphs()) == []


def test_a_graph_that_grows():
    w = torch.ones(10, requires_grad=True)
    state = w * 1
    for _ in range(5):
        state = (state * w).tanh()
    (row,) = mine(live_graphs())
    assert (row["graphs"], row["nodes"]) == (1, 11)
    assert row["since"] == f"test_tables.py:{line_after(test_a_graph_that_grows, 2)} in test_a_graph_that_grows"
    assert row["to"] == f"test_tables.py:{line_after(test_a_graph_that_grows, 4)} in test_a_graph_that_grows"
    assert row["held by"] == "state in test_a_graph_that_grows"


@pytest.mark.parametrize("kind", ["module", "attribute", "class", "closure", "grad"])
def test_variable_that_holds_a_graph(kind, training):
    w = torch.ones(10, requires_grad=True)
    trainer = training.Trainer()
    expected = f"trainer.losses['last'] in {test_variable_that_holds_a_graph.__name__}"
    if kind == "module":
        training.LEAKED.append(w.exp())
        expected = "LEAKED[0] in training"
    elif kind == "attribute":
        trainer.losses["last"] = w.exp()
    elif kind == "class":
        training.Trainer.cache = w.exp()
        expected = "Trainer.cache in training"
    elif kind == "closure":
        report = closing_over(w.exp())
        assert callable(report)
        expected = "report() in test_variable_that_holds_a_graph"
    else:
        with torch.enable_grad():
            (w.grad,) = torch.autograd.grad((w**3).sum(), w, create_graph=True)
        expected = "w.grad in test_variable_that_holds_a_graph"
    try:
        assert expected in ", ".join(row["held by"] for row in mine(live_graphs()))
    finally:
        training.LEAKED.clear()
        training.Trainer.cache = w.grad = None
    report = None
    trainer.losses.clear()
    assert mine(live_graphs()) == []


def closing_over(value):
    def report():
        return value

    return report


def test_a_cycle_is_held_by_no_variable():
    w = torch.ones(10, requires_grad=True)
    y = w.exp()
    cycle = [y]
    cycle.append(cycle)
    del y, cycle
    (row,) = mine(live_graphs())
    assert row["held by"] == "no variable"
    gc.collect()
    assert mine(live_graphs()) == []


def test_other_threads_are_looked_at():
    w = torch.ones(10, requires_grad=True)
    ready, done = threading.Event(), threading.Event()

    def work():
        theirs = w.exp()
        ready.set()
        done.wait()
        del theirs

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        (row,) = mine(live_graphs())
    finally:
        done.set()
        thread.join()
    assert row["held by"] == "theirs in work"


def test_looking_keeps_nothing_alive():
    w = torch.ones(10, requires_grad=True)
    y = w.exp()
    assert len(mine(live_graphs())) == 1
    del y
    assert mine(live_graphs()) == []


# ---------------------------------------------------------------- tables


def test_tables_show_themselves():
    rows = [{"name": f"row {number}", "size": float(number)} for number in range(MOST_ROWS + 5)]
    table = Table("sizes", ["name", "size"], rows, {"size": "{:.1f}".format})
    lines = str(table).splitlines()
    assert lines[:3] == ["sizes", "name    size", "row 0    0.0"]
    assert lines[-1] == "… and 5 more rows"
    assert len(table) == MOST_ROWS + 5
    assert json.dumps(table.rows)
    assert "<td>0.0</td>" in table._repr_html_()
    assert str(Table("none", ["name"], [])).splitlines() == ["none", "name"]
