"""`watch`: norms during training, as numbers, as a table and as a page."""

import io
import json
import re

import pytest

import adjoint as torch
from adjoint import inspect, nn


def trained(steps, every=1, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    seen = []
    with inspect.watch(model, every, **options) as watched:
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(5, 3)).square().sum().backward()
            before = model[0].weight.detach().clone()
            optimizer.step()
            seen.append((model[0].weight.grad.norm().item(), (model[0].weight - before).norm().item()))
    return model, optimizer, watched, seen


def test_norms_of_gradients_and_of_optimizer_steps():
    _, _, watched, seen = trained(7, every=3)
    assert watched.steps == [1, 4, 7]
    for step, record in zip(watched.steps, watched.records, strict=True):
        gradient, update = seen[step - 1]
        assert record["0.weight"]["gradient"] == pytest.approx(gradient, rel=1e-5)
        assert record["0.weight"]["update"] == pytest.approx(update, rel=1e-3)
    assert list(watched.records[0]) == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_after_the_block_nothing_is_recorded():
    model, optimizer, watched, _ = trained(1)
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    assert watched.steps == [1]


def test_optimizers_of_other_models_do_not_count():
    model, other = nn.Linear(2, 1), nn.Linear(2, 1)
    with inspect.watch(model) as watched:
        other(torch.ones(1, 2)).sum().backward()
        torch.optim.SGD(other.parameters(), lr=0.1).step()
    assert watched.steps == []
    assert str(watched) == "no step yet\nparameter  gradient  weight  update  ratio"


def test_a_table_of_the_latest_step_is_written_while_it_runs():
    output = io.StringIO()
    _, _, watched, _ = trained(2, live=True, output=output)
    assert output.getvalue().count("0.weight") == 2
    assert str(watched).splitlines()[0] == "step 2"


@pytest.mark.thorough
def test_it_is_saved_as_a_page_as_numbers_and_as_text(tmp_path):
    _, _, watched, _ = trained(300)
    page = watched.save(tmp_path / "training.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "http" not in page.replace("http-equiv", "")
    assert "2.weight, step 300: " in page
    found = json.loads(watched.save(tmp_path / "training.json").read_text())
    assert len(found["steps"]) == len(found["records"]) == 300
    assert "ratio" in watched.save(tmp_path / "training.txt").read_text()
    with pytest.raises(ValueError, match=r"\.html"):
        watched.save(tmp_path / "training.csv")


def test_what_has_no_gradient_or_is_not_finite_is_shown_as_such():
    w, unused = torch.tensor([1.0, 2.0], requires_grad=True), torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w, unused], lr=0.1)
    with inspect.watch({"w": w, "<unused>": unused}) as watched:
        (w * float("nan")).sum().backward()
        optimizer.step()
    assert watched.records[0]["<unused>"]["gradient"] is None
    assert "&lt;unused&gt;, step 1: none" in watched.html()
    assert "w, step 1: nan" in watched.html()
    assert json.loads(watched.json())["records"][0]["w"]["gradient"] is None


def test_colours_that_are_not_on_the_scale_are_explained_where_they_occur():
    w, nan = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([float("nan")], requires_grad=True)
    for parameters, words in (({"w": w}, []), ({"w": w, "nan": nan}, ["not finite"])):
        optimizer = torch.optim.SGD(parameters.values(), lr=0.1)
        with inspect.watch(parameters) as watched:
            sum(each.sum() for each in parameters.values()).backward()
            optimizer.step()
        assert [each for each in ("zero or none", "not finite") if each in watched.html()] == words


def test_rounding_does_not_look_like_change():
    w = torch.full((3,), 0.1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1e-3)
    with inspect.watch({"w": w}) as watched:
        for factor in (1.0, 1.0 + 1e-6, 1.0 - 1e-6):
            optimizer.zero_grad()
            (w * factor).sum().backward()
            optimizer.step()
    gradients = watched.html().partition("norm of the update")[0]
    assert len(set(re.findall(r'<rect [^>]*fill="(#\w+)"', gradients))) == 1


def test_every_must_be_positive():
    with pytest.raises(ValueError, match="at least 1"):
        inspect.watch({}, 0)
