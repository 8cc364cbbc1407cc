"""Forks of native runs: independent blocks on several threads give the same bits as one after another."""

import os
import random
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest

import adjoint as torch
from adjoint import inspect
from adjoint.codegen.acceleration import LOOPS
from adjoint.compiler import forks
from adjoint.compiler.arena import in_arena_with_forks
from adjoint.compiler.forks import Part, steps_of
from adjoint.compiler.objects import words
from adjoint.kernels.runtime import parallel

from .comparison import assert_alike, assert_close, tensors_in
from .test_sizes import functions

nn, F = torch.nn, torch.nn.functional


@pytest.fixture
def native(monkeypatch):
    """Two threads, on which all work that can fork does, however little it is."""
    if not words():
        pytest.skip("there are no native runs")
    monkeypatch.setattr(parallel, "num_threads", 2)
    monkeypatch.setattr(forks, "FORK", 1.0)


def forks_of(compiled):
    """Return the branches of all forks of a compiled function."""
    programs = [variant.program for variant in compiled.compiled.variants if variant.body.source]
    return [step for program in programs for run in program.natives for step in run.steps if len(step) > 1]


def replayed(compiled, *args):
    """Return the result of the program for a call, which was captured before."""
    return [compiled(*args) for _ in range(2)].pop()


def in_branches(x, y, z):
    """Return values of a program with two independent parts."""
    for _ in range(3):
        x, y = (x @ z).tanh(), (y @ z).sigmoid() * 2
    return x.add_(1), y


# --- the choice of forks --------------------------------------------------------------------------------------------------


def parts(choose, count):
    """Return random parts with one or two blocks."""
    blocks = iter(range(3 * count))
    return [
        Part(
            [next(blocks) for _ in range(choose.randint(1, 2))],
            {choose.randrange(number) for _ in range(choose.randint(0, 2)) if number},
            choose.random() < 0.9,
            [next(blocks)] * choose.randint(0, 1),
            choose.randrange(-1, number) if number else -1,
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("seed", range(20))
def test_steps_contain_all_blocks_and_branches_are_independent(seed, threads, monkeypatch):
    monkeypatch.setattr(forks, "FORK", 1.0)
    choose = random.Random(seed)
    given = parts(choose, 30)
    times = [choose.uniform(0, 10) for _ in given]
    steps = steps_of(given, times, times, threads)
    blocks = sorted(block for part in given for block in (*part.blocks, *part.tests))
    order = [block for step in steps for branch in step for block in branch]
    assert sorted(order) == blocks
    part_of = {block: number for number, part in enumerate(given) for block in (*part.blocks, *part.tests)}
    for step in [each for each in steps if len(each) > 1]:
        assert len(step) <= threads
        done = {block for each in steps[: steps.index(step)] for branch in each for block in branch}
        window = {part_of[block] for branch in step for block in branch}
        assert all(given[part].tested < min(window) and done.issuperset(given[part].tests) for part in window)
        assert all(done.issuperset(part.blocks) for part in given[: min(window)])
        assert all(done.isdisjoint(part.blocks) for part in given[min(window) :])
        branches = [{part_of[block] for block in branch} for branch in step]
        for number, branch in enumerate(branches):
            others = set().union(*branches[:number], *branches[number + 1 :])
            assert all(given[part].splits and given[part].before.isdisjoint(others) for part in branch)
            assert step[number] == sorted(step[number])


def test_a_fork_must_save_time():
    one_after_another = [Part([number], {number - 1} if number else set(), True, [], -1) for number in range(4)]
    apart = [Part([number], set(), True, [], -1) for number in range(4)]
    long, short = [forks.FORK] * 4, [forks.FORK / 8] * 4
    assert len(steps_of(one_after_another, long, long, 2)) == 4
    assert len(steps_of(apart, short, short, 2)) == 4
    assert [len(step) for step in steps_of(apart, long, long, 2)] == [2]
    assert len(steps_of(apart, long, [time / 2 for time in long], 2)) == 4  # each already runs on two threads


@pytest.mark.parametrize("seed", range(20))
def test_no_two_values_in_use_share_memory(seed):
    choose = random.Random(seed)
    sizes = {number: 64 * choose.randint(1, 5) for number in range(12)}
    uses = [{choose.choice([*sizes, -1]) for _ in range(3)} for _ in range(15)]
    branch_of = {block: choose.randrange(2) for block in range(4, 12)}
    step = [[block for block, branch in branch_of.items() if branch == each] for each in (0, 1)]
    spans, whole = in_arena_with_forks(sizes, uses, [step])
    assert spans.keys() == sizes.keys()
    blocks = {number: [at for at, each in enumerate(uses) if number in each] for number in sizes}

    def before(one, other):
        """Return whether the last use of one value comes before the first use of another value in any order of branches."""
        pairs = [(first, second) for first in blocks[one] for second in blocks[other]]
        return all(
            first < second and branch_of.get(first, 2) in (2, branch_of.get(second, 2))
            if first in branch_of and second in branch_of
            else first < second
            for first, second in pairs
        )

    for one, span in spans.items():
        assert span.offset % 64 == 0 and span.offset + sizes[one] <= whole
        for other, own in spans.items():
            apart = span.offset + sizes[one] <= own.offset or own.offset + sizes[other] <= span.offset
            assert one == other or apart or before(one, other) or before(other, one)


# --- results --------------------------------------------------------------------------------------------------------------

STEPS = [
    "a.tanh()", "a @ b", "a * b + 1", "a.t() @ b", "F.softmax(a, -1)", "a.sum(0) + b", "torch.cat([a[:3], b[3:]])",
    "(a * 1).add_(b)", "a[:, ::2].repeat(1, 2) * 0.5", "F.layer_norm(a, (24,))", "a.clone().fill_(0.5)",
    "changed(a, b)", "changed(a[2:5], b[2:5])", "a.max(1, keepdim=True)[0] * b",
]  # fmt: skip

VALUES = ["v[-1]", "v[-2]", "v[-3]", "v[0]", "v[1]", "v[2]"]


def changed(a, b):
    """Change an operand."""
    a.mul_(0.5).add_(b, alpha=0.25)
    return a


def random_program(seed):
    """Return a function of three matrices that computes several values, some of which change others."""
    choose = random.Random(seed)
    lines = ["def f(x, y, z):", "    v = [x * 1, y * 1, z]"]
    for _ in range(14):
        source = choose.choice(STEPS)
        a = choose.choice(["v[0]", "v[1]"] if "changed" in source else VALUES)
        append = source if "changed" in source else f"v.append({source})"
        lines += [f"    a, b = {a}, {choose.choice(VALUES)}", f"    {append}"]
    function = functions("\n".join([*lines, "    return v", ""]))
    function.__globals__["changed"] = changed
    return function


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed, native):
    torch.manual_seed(seed)
    function = random_program(seed)
    x, y, z = torch.randn(24, 24), torch.randn(24, 24), torch.randn(24, 24)
    compiled = torch.compile(function)
    for _ in range(3):
        found = compiled(x, y, z)
    for one, other in zip(found, function(x, y, z), strict=True):
        assert_close(one, other)
    parallel.num_threads = 1
    assert all(map(torch.equal, found, compiled(x, y, z)))


def training(kind, size=24):
    """Return a step that trains several independent models of one kind, and the models."""
    torch.manual_seed(3)
    make = {
        "twins": lambda: nn.Sequential(nn.Linear(size, size), nn.Tanh(), nn.Linear(size, 1)),
        "normalized": lambda: nn.Sequential(nn.Linear(size, size, bias=False), nn.BatchNorm1d(size), nn.ReLU()),
        "convolutions": lambda: nn.Sequential(nn.Unflatten(1, (1, size)), nn.Conv1d(1, 4, 3), nn.ReLU(), nn.Flatten()),
        "layers": lambda: nn.GRU(size, size, num_layers=2, batch_first=True),
    }[kind]
    models = nn.ModuleList([make() for _ in range(3)])
    optimizer = torch.optim.Adam(models.parameters(), lr=0.01, eps=1e-3)

    def step(x):
        optimizer.zero_grad()
        results = [model(x.unsqueeze(1))[0] if kind == "layers" else model(x) for model in models]
        loss = sum(each.square().mean() for each in results)
        loss.backward()
        optimizer.step()
        return loss.detach(), [each.detach() for each in results]

    return step, models


@pytest.mark.parametrize("kind", ["twins", "normalized", "convolutions", "layers"])
def test_training_of_independent_models(kind, native):
    found = []
    for threads in (2, 3, 1, 0):
        parallel.num_threads = max(threads, 1)
        step, models = training(kind)
        compiled = torch.compile(step) if threads else step
        torch.manual_seed(4)
        results = [compiled(torch.randn(8, 24)) for _ in range(4)]
        assert bool(threads and forks_of(compiled)) is (threads > 1)
        found.append((results, models.state_dict(), [each.grad for each in models.parameters()]))
    assert_alike(found[0], found[3], strides=False)
    for one, other in zip(tensors_in(found[0]), tensors_in(found[2]), strict=True):
        assert torch.equal(one, other)
    for one, other in zip(tensors_in(found[1]), tensors_in(found[2]), strict=True):
        assert_close(one, other)  # kernels divide sums by the number of threads


def test_the_number_of_threads_may_change_between_calls(native):
    compiled = torch.compile(in_branches)
    x, y, z = torch.randn(3, 24, 24)
    expected = replayed(compiled, x, y, z)
    assert forks_of(compiled)
    for threads in (1, 2, 4, 1):
        parallel.num_threads = threads
        assert all(map(torch.equal, compiled(x, y, z), expected))


def test_arrays_that_share_memory_are_not_in_two_branches(native):
    def f(memory, z):
        first, second = memory[:12], memory[6:18]
        first.mul_(2)
        return (second @ z).tanh(), first + 1

    for _ in range(3):
        memory, z = torch.randn(24, 24), torch.eye(24)
        other = memory.clone()
        compiled = torch.compile(f)
        for _ in range(3):
            assert_alike(compiled(memory, z), f(other, z))


def test_programs_for_any_size_fork(native):
    compiled = torch.compile(in_branches, dynamic=True)
    z = torch.randn(24, 24)
    for size in (3, 5, 5, 8, 8, 40, 40, 2, 2):
        x, y = torch.randn(2, size, 24)
        for one, other in zip(compiled(x, y, z), in_branches(x, y, z), strict=True):
            assert_close(one, other)


def test_two_threads_may_run_one_program_with_forks(native):
    compiled = torch.compile(in_branches)
    inputs = [torch.randn(3, 24, 24) for _ in range(8)]
    expected = [replayed(compiled, *each) for each in inputs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(30):
            for one, other in zip(pool.map(lambda each: compiled(*each), inputs), expected, strict=True):
                assert all(map(torch.equal, one, other))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork")
def test_a_forked_process_runs_programs_with_forks(native):
    compiled = torch.compile(in_branches)
    x, y, z = torch.randn(3, 24, 24)
    expected = replayed(compiled, x, y, z)
    child = os.fork()
    if not child:
        signal.alarm(30)  # stop the child if it waits for the threads of its parent
        os._exit(not all(map(torch.equal, compiled(x, y, z), expected)))
    assert os.waitpid(child, 0)[1] == 0


def test_a_kernel_that_raises_an_error_beside_forks(native):
    def f(table, index, x, y, z):
        x, y = in_branches(x, y, z)
        rows = F.embedding(index, table)
        x, y = in_branches(x + rows, y - rows, z)
        return x, y

    compiled = torch.compile(f)
    table, index, x, y, z = torch.randn(5, 24), torch.randint(0, 5, (24,)), *torch.randn(3, 24, 24)
    for _ in range(3):
        assert_alike(compiled(table, index, x, y, z), f(table, index, x, y, z))
    assert forks_of(compiled)
    with pytest.raises(IndexError, match="index out of range in self"):
        compiled(table, index + 1, x, y, z)
    assert_alike(compiled(table, index, x, y, z), f(table, index, x, y, z))


def test_the_profiler_and_inspection_show_forks(native):
    compiled = torch.compile(in_branches)
    x, y, z = torch.randn(3, 24, 24)
    expected = replayed(compiled, x, y, z)
    with torch.profiler.profile() as profile:
        assert all(map(torch.equal, compiled(x, y, z), expected))
    assert "block of mm" in str(profile.key_averages())
    text = str(inspect.compiled(compiled, run=(x, y, z)))
    assert "2 branches at once: %" in text and " | %" in text


@pytest.mark.parametrize("begin", [None, 1.0])
@pytest.mark.parametrize("wrong", [None, 0, 1, 2])
def test_an_error_in_one_branch_leaves_what_came_before(wrong, begin, native):
    torch.manual_seed(0)
    tables = [torch.randn(7, 24, requires_grad=True) for _ in range(3)]
    weights = [torch.randn(24, 24, requires_grad=True) for _ in range(3)]

    def step(indices):
        for table, weight, index in zip(tables, weights, indices, strict=True):
            (table.gather(0, index) @ weight).tanh().square().sum().backward()

    def gradients():
        """Return all gradients, and replace them by those before the step."""
        found = [each.grad for each in (*tables, *weights)]
        for each in (*tables, *weights):
            each.grad = None if begin is None else torch.full_like(each, begin)
        return found

    indices = [torch.randint(0, 7, (4, 24)) for _ in range(3)]
    compiled = torch.compile(step)
    gradients()
    for _ in range(2):
        compiled(indices)
        gradients()
    assert forks_of(compiled)
    assert begin or not LOOPS.enabled or len(compiled.compiled.variants[0].program.natives) == 1
    if wrong is not None:
        indices[wrong] = indices[wrong] + 1
    found = []
    for function in (compiled, step):
        with pytest.raises(RuntimeError, match="out of bounds") if wrong is not None else nullcontext():
            function(indices)
        found.append(gradients())
    for one, other in zip(*found, strict=True):
        assert (one is None) is (other is None)
        assert one is None or torch.allclose(one, other, atol=1e-5)
