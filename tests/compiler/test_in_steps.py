"""Programs under observation: profiles show their instructions and kernels, and results do not change."""

import threading

import pytest

import adjoint as torch
from adjoint import inspect
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.observed_kernels import KERNELS
from adjoint.kernels.runtime import parallel
from adjoint.profiler import profile

F = torch.nn.functional


def names_in(prof):
    return [event.name for event in prof.events()]


def compiled_function(function, *args):
    """A compiled function that has run a program."""
    compiled = torch.compile(function)
    for _ in range(3):
        compiled(*args)
    assert compiled.compiled.variants[0].calls > 0
    return compiled


def test_profiles_show_the_instructions_and_kernels_of_a_program():
    x, y = torch.randn(300, 300), torch.randn(300, 300)
    compiled = compiled_function(lambda x: [F.gelu(x @ y).sum(0) + 1, x.T.contiguous()], x)
    expected = compiled(x)
    calls = compiled.compiled.variants[0].calls
    with profile() as prof:
        found = compiled(x)
    assert compiled.compiled.variants[0].calls == calls + 1
    assert all(map(torch.equal, found, expected))
    names = names_in(prof)
    assert any(name.startswith("program::") for name in names) and not any("aten" in name for name in names)
    if LOOPS.enabled:
        (native,) = [event for event in prof.events() if event.name == "program::native"]
        assert "compiled::block of add" in [each.name for each in native.cpu_children]
    assert KERNELS.observers == ()


def test_profiles_show_the_programs_in_a_function_that_runs_in_python():
    model, x = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh()), torch.ones(2)

    @torch.compile
    def function(x):
        print("<b>", end="")
        return model(x).sum()

    with pytest.warns(UserWarning, match="runs .* as it is"):
        function(x)
    expected = [function(x) for _ in range(2)][-1]
    with profile() as prof:
        found = function(x)
    assert torch.equal(found, expected) and found.requires_grad
    assert any(name.startswith("program::") for name in names_in(prof)) and "aten::tanh" not in names_in(prof)


def test_profiles_with_shapes_show_operators():
    x = torch.randn(4, 4)
    compiled = compiled_function(lambda x: (x @ x).tanh(), x)
    with profile(record_shapes=True) as prof:
        compiled(x)
    assert {"aten::matmul", "aten::tanh"} <= {*names_in(prof)}


def test_programs_for_any_size_show_operators_in_profiles_and_kernels_in_inspect():
    compiled = torch.compile(lambda x: F.softmax(x, -1).sum(0))
    for rows in (300, 400, 500, 600):
        compiled(torch.randn(rows, 300))
    x = torch.randn(700, 300)
    assert compiled.compiled.variants[0].sized is not None
    with profile() as prof:
        compiled(x)
    assert {"aten::softmax", "aten::sum"} <= {*names_in(prof)}
    if LOOPS.enabled:
        (times,) = inspect.compiled(compiled, run=(x,)).times.values()
        assert any("softmax_rows" in name for name, _ in times)


def test_calls_that_no_program_fits_show_operators():
    compiled = compiled_function(lambda x: x.tanh(), torch.randn(4, 4))
    with profile() as prof:
        compiled(torch.randn(5, dtype=torch.float64))
    assert "aten::tanh" in names_in(prof) and "program::" not in "".join(names_in(prof))


def test_profiles_of_a_training_step_show_forward_backward_and_optimizer():
    def trained(profiled):
        """The losses and parameters after some steps."""
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 8))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        compiled, x = torch.compile(step), torch.randn(300, 64)
        losses = [compiled(x) for _ in range(3)]
        if profiled:
            with profile() as prof:
                losses.append(compiled(x))
            assert any(name.startswith("program::") for name in names_in(prof))
        else:
            losses.append(compiled(x))
        return [*losses, compiled(x), *model.parameters()]

    assert all(map(torch.equal, trained(True), trained(False)))


def test_profiles_show_kernels_in_the_backward_of_a_program():
    x, y = torch.randn(300, 300, requires_grad=True), torch.randn(300, 300)
    compiled = compiled_function(lambda x: F.gelu(x @ y).sum(0), x)
    for _ in range(2):
        compiled(x).sum().backward()
    loss = compiled(x).sum()
    with profile() as prof:
        loss.backward()
    names = names_in(prof)
    assert "CompiledFunctionBackward" in names
    assert any(" of " in name for name in names) is LOOPS.enabled


def test_other_threads_and_numbers_of_threads_give_the_same_bits_under_observation(monkeypatch):
    monkeypatch.setattr(parallel, "num_threads", 2)
    x, y = torch.randn(300, 300), torch.randn(300, 300)
    compiled = compiled_function(lambda x: F.softmax(x @ y, -1) @ y, x)
    for threads in (2, 1, 2):
        parallel.num_threads = threads
        found, expected = [], compiled(x)
        thread = threading.Thread(target=lambda found=found: found.append(compiled(x)))
        with profile():
            found.append(compiled(x))
            thread.start()
            thread.join()
        assert len(found) == 2 and all(torch.equal(each, expected) for each in found)


def test_indices_out_of_bounds_raise_the_same_error_under_observation():
    weight, scores = torch.randn(5, 3), torch.randn(4, 5)
    compiled = compiled_function(
        lambda index: F.nll_loss(scores.log_softmax(1), index) + F.embedding(index, weight).sum(), torch.arange(4)
    )
    wrong = torch.tensor([0, 1, 9, 2])
    with pytest.raises(IndexError) as expected:
        compiled(wrong)
    with profile(), pytest.raises(IndexError) as found:
        compiled(wrong)
    assert str(found.value) == str(expected.value)
    assert found.value.__notes__ == expected.value.__notes__ != []
