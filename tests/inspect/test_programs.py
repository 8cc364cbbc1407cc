"""`inspect.compiled` shows compiled functions as text, with times of instructions, and as a page."""

import warnings
from html.parser import HTMLParser

import pytest

import adjoint as torch
from adjoint import inspect
from adjoint.codegen.acceleration import LOOPS

nn = torch.nn
VOID = {"meta", "br", "rect"}


class Balance(HTMLParser):
    """A parser that collects the tags of a page, and the tags that are closed in the wrong order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.wrong, self.seen = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID and (not self.open or self.open.pop() != tag):
            self.wrong.append(tag)


def training_step():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    given = torch.randn(5, 4), torch.randn(5, 1)
    for _ in range(3):
        step(*given)
    return step, model, given


def test_times_of_instructions_and_a_page(tmp_path):
    step, model, given = training_step()
    before = model[0].weight.detach().clone()
    found = inspect.compiled(step, run=given, guards=True, source=True)
    assert not torch.equal(model[0].weight, before)  # the call trains the model, as other calls do
    (times,) = found.times.values()
    assert times[-1][0].startswith("step(") and all(seconds >= 0 for _, seconds in times)
    assert " µs  " in found and "it requires:" in found and "its source:" in found
    path = found.save(tmp_path / "program.html")
    page = Balance(path.read_text(encoding="utf-8"))
    assert page.wrong == [] and page.open == []
    assert found.save(tmp_path / "program.txt").read_text(encoding="utf-8") == found


@pytest.mark.skipif(not LOOPS.enabled, reason="there are no native runs")
def test_times_of_the_kernels_in_native_runs():
    x = torch.randn(300, 300)
    function = torch.compile(lambda x: nn.functional.softmax(x, -1).sum(0) * 2)
    for _ in range(2):
        function(x)
    found = inspect.compiled(function, run=(x,))
    (times,) = found.times.values()
    (_, native, *kernels) = times
    assert native[0].startswith("native(") and native[1] == pytest.approx(sum(seconds for _, seconds in kernels))
    assert [*dict.fromkeys(name.split()[-1] for name, _ in kernels)] == ["softmax_of", "sum_dim", "mul"]
    assert kernels[-1][0] == "  block of mul"
    assert "block of mul" in found and "block of mul" in found.html()


def test_the_memory_and_the_text_of_native_runs():
    pytest.importorskip("llvmlite")
    step, _, _ = training_step()
    found = inspect.compiled(step, llvm=True)
    assert "define void @block_" in found
    (run,) = step.compiled.variants[0].program.natives
    page = Balance(found.html())
    assert page.seen.count("rect") == len(run.spans) > 3
    assert page.seen.count("tr") == len(step.compiled.variants[0].program.instructions)


def test_functions_that_run_in_python_show_their_units():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    @torch.compile
    def function(x):
        print("<b>", end="")
        return model(x).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            function(torch.ones(2))
    found = inspect.compiled(function)
    assert "print() is called" in found and "Sequential: 1 program" in found
    assert "Sequential" in found.html() and Balance(found.html()).wrong == []


def test_arguments_that_no_program_fits():
    step, _, given = training_step()
    with pytest.raises(ValueError, match="no program stands for a call with the arguments"):
        inspect.compiled(step, run=(given[0], torch.ones(3, 1)))
    with pytest.raises(TypeError, match="a compiled function or module is needed"):
        inspect.compiled(len)
