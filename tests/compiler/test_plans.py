"""Plans for any size: the numbers that a table computes for a size are those of a plan that is written for this size."""

import functools

import pytest

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.llvm.host import HOST
from adjoint.compiler.dims import Numbers, at
from adjoint.compiler.native import Empty, Native, Part
from adjoint.compiler.objects import Deferred
from adjoint.compiler.sized import Shared, Sized

from .test_modules import MODULES
from .test_sizes import EXPRESSIONS, ORDERS, SIZES, attention_step, compared, functions, training_step

pytestmark = pytest.mark.filterwarnings("ignore")


def described(value):
    """Return what matters of an object in the namespace of a plan."""
    if isinstance(value, Deferred):
        return described(value.make)
    if isinstance(value, functools.partial):
        return value.func, [*map(described, value.args)]
    if isinstance(value, Native):
        writer = value.writer
        launches = [(position, each.name, each.size, each.work) for position, each in writer.launches]
        blocks = [(each.key, each.pointers, each.name) for each in writer.blocks]
        return writer.sizes, blocks, launches, writer.places, writer.checks, value.places, value.arena
    if isinstance(value, (Empty, Part)):
        return [described(each) for name, each in sorted(vars(value).items()) if name != "make"]
    if isinstance(value, (tuple, list)):
        return [*map(described, value)]
    array = getattr(value, "array", None)
    return array.tolist() if array is not None else value if isinstance(value, (int, float, str)) else type(value)


def facts(shared, folded):
    """Return the code of a plan, and the objects that depend on sizes."""
    found = shared.numbers(folded.sizes, folded.memory, folded.constants)
    numbers = Numbers(found, folded.program_of(shared.program))
    functions = [shared.namespace["run"]]
    if shared.program.seeds:
        functions.append(shared.namespace["gradients"].complete)
    for each in functions:
        code, names = each.__code__, each.__globals__
        found = {name: at(value, numbers) for name, value in names.items() if name in code.co_names}
        varying = {name: described(value) for name, value in found.items() if value is not names[name]}
        yield code.co_code, code.co_names, code.co_consts, varying


@pytest.fixture
def counts(monkeypatch):
    """Compare each shared plan with a plan that is written for its sizes. Return the numbers of plans, and of shared plans."""
    found = [0, 0]
    original = Sized.planned

    def planned(self, folded):
        known = [*self.shared]
        plan = original(self, folded)
        found[0] += 1
        if known and len(known) == len(self.shared):
            one = next(each for each in known if each.at(folded) is not None)
            count = len(self.program.shapes)
            given = folded.shapes[:count], folded.memory[:count], folded.sizes, {*self.wanted, *self.saved}
            program = self.general.for_any_size(self.program, *given)
            other = Shared(self.written(program), program, {*self.source.namespace})
            assert [*facts(one, folded)] == [*facts(other, folded)]
            found[1] += 1
        return plan

    monkeypatch.setattr(Sized, "planned", planned)
    return found


@pytest.mark.one_each("name")
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.long_cases
def test_plans_of_modules(name, counts):
    compared(name, 0, SIZES)


@pytest.mark.parametrize("source", EXPRESSIONS)
def test_plans_of_code_that_depends_on_sizes(source, counts):
    compiled = torch.compile(functions(f"def f(x):\n    return {source}\n"))
    for size in [*ORDERS["after 3 and 5"], *ORDERS["after 8 and 7"], 300, 300, 20_000, 20_000]:
        x = torch.ones(size, 4)
        if size * size < 1 << 20 or "x.shape[0]" not in source:
            try:
                compiled(x)
            except (RuntimeError, ValueError, IndexError, TypeError):
                continue


@pytest.mark.parametrize("make", [training_step, attention_step])
def test_a_training_step_is_planned_once(make, counts):
    function, arguments = make()
    step = torch.compile(function)
    for size in [2, 2, *range(3, 21)]:
        for _ in range(2):
            step(*arguments(size))
    lengths_without_vectors = LOOPS.available and HOST.vector_bytes > 32  # lengths 4 to 7 fill no vector of float64
    assert counts[0] > 15 and counts[1] >= counts[0] - 2 - lengths_without_vectors
