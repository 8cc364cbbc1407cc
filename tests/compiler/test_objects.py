"""Native checks of tensors and objects agree with Python. Native calls keep no references."""

import gc
import sys
from collections import OrderedDict
from contextlib import suppress

import numpy
import pytest

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.compiler import objects
from adjoint.tensor import Tensor, wrap

pytestmark = pytest.mark.skipif(not LOOPS.enabled, reason="there are no compiled loops")

LIKE = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)


class Array(numpy.ndarray):
    pass


ARRAYS = {
    "another of its kind": LIKE.copy(),
    "a row less": LIKE[:2],
    "a row": LIKE[0],
    "columns": numpy.asfortranarray(LIKE),
    "every other": numpy.zeros((3, 8), numpy.float32)[:, ::2],
    "transposed": numpy.zeros((4, 3), numpy.float32),
    "a dimension more": LIKE[None],
    "float64": LIKE.astype(numpy.float64),
    "int32": LIKE.view(numpy.int32),
    "other byte order": LIKE.astype(">f4"),
    "a class of its own": LIKE.view(Array),
    "None": None,
    "a number": 3,
    "without dimensions": numpy.float32(1) + numpy.zeros((), numpy.float32),
}


def tensor_on(array):
    """Return a tensor with this array, even if the array is not valid for a tensor."""
    tensor = wrap(LIKE)
    tensor._array = array
    return tensor


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("name", ARRAYS)
def test_the_layout_of_each_array_is_tested(name, place):
    owner = wrap(LIKE)
    owner._grad = wrap(LIKE)
    fits = objects.fitting([wrap(LIKE), wrap(LIKE)], [owner], whole=False)
    given = [wrap(LIKE), wrap(LIKE), owner]
    assert fits(*given) is True
    if place == 2:
        owner._grad = tensor_on(ARRAYS[name])
    else:
        given[place] = tensor_on(ARRAYS[name])
    assert fits(*given) is objects.Fits(LIKE)(ARRAYS[name])


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("name", [*ARRAYS, "another size"])
def test_sizes_that_may_differ_are_not_tested(name, dims):
    arrays = (
        [ARRAYS[name]]
        if name in ARRAYS
        else [numpy.ones(s, LIKE.dtype) for s in [(5, 3), (2, 7), (9, 8), (1, 3), (0, 3)]]
    )
    fits = objects.fitting([wrap(LIKE)], dims=[frozenset(dims)], whole=False)
    for array in arrays:
        expected = objects.Fits(LIKE, frozenset(dims))(array)
        assert fits(tensor_on(array)) is expected
        fixed = [size for dim, size in enumerate(numpy.shape(array)) if dim not in dims and dim < 2]
        assert expected or name in ARRAYS or min(array.shape) < 2 or fixed != [LIKE.shape[d] for d in {0, 1} - {*dims}]


def hooked():
    tensor = torch.tensor(LIKE).requires_grad_()
    tensor.register_hook(print)
    return tensor


TENSORS = {
    "alike": lambda: wrap(LIKE),
    "a leaf": lambda: wrap(LIKE, True),
    "a parameter": lambda: torch.nn.Parameter(torch.tensor(LIKE)),
    "with history": lambda: wrap(LIKE, True) * 2,
    "with a hook": hooked,
    "None": lambda: None,
    "an array": lambda: LIKE,
}


@pytest.mark.parametrize("expected", ["alike", "a leaf", "a parameter"])
@pytest.mark.parametrize("name", TENSORS)
def test_the_class_and_the_history_of_each_tensor_are_tested(name, expected):
    fits = objects.fitting([TENSORS[expected]()], whole=True)
    assert fits(TENSORS[name]()) is (name == expected)


def test_a_gradient_that_is_missing_does_not_fit():
    owner = wrap(LIKE)
    owner._grad = wrap(LIKE)
    fits = objects.fitting([], [owner], whole=False)
    assert fits() is True and fits(owner) is True and fits(wrap(LIKE)) is False
    owner._grad = None
    assert fits() is False


@pytest.mark.parametrize("name", ARRAYS)
def test_a_tensor_that_is_no_argument_is_always_the_same_object(name):
    kept = wrap(LIKE)
    fits = objects.fitting([wrap(LIKE), kept], whole=True)
    kept._array = ARRAYS[name]
    assert fits(wrap(LIKE)) is objects.Fits(LIKE)(ARRAYS[name])
    assert fits(wrap(LIKE), wrap(LIKE)) is True


@pytest.mark.parametrize("native", [True, False])
def test_identical_objects(native, monkeypatch):
    if not native:
        monkeypatch.setattr(objects, "words", dict)
    first, second = object(), [1.0]
    same = objects.identical([first, second])
    assert same(first, second) is True
    for given in ([first], [], [first, [1.0]], [second, first], [first, second, first]):
        assert same(*given) is False


def test_new_tensors_are_like_those_of_wrap():
    make = objects.tensor_maker()
    found, expected = make(LIKE), wrap(LIKE)
    assert type(found) is Tensor and make is not wrap
    names = [name for kind in Tensor.__mro__ for name in vars(kind).get("__slots__", ())]
    for name in names:
        alike = getattr(found, name, "unset") is getattr(expected, name, "unset")
        assert alike or name in ("__dict__", "__weakref__"), name
    assert gc.is_tracked(found) and (found + 1).sum() == LIKE.sum() + 12
    before = sys.getrefcount(LIKE)
    for _ in range(100):
        make(LIKE)
    assert sys.getrefcount(LIKE) == before


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_steps_keep_no_memory(kind):
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.1)
    x = torch.randn(5, 4)

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    def blocks_after(count):
        for _ in range(count):
            step(x)
        gc.collect()
        return sys.getallocatedblocks()

    before = blocks_after(300)
    assert blocks_after(1000) - before < 100


def test_long_runs_release_the_interpreter_lock():
    def chain(x):
        for _ in range(8):
            x = x.tanh()
        return x

    for size, releases in ((10, 0), (4000, 1)):
        compiled = torch.compile(chain)
        for _ in range(2):
            torch.testing.assert_close(compiled(torch.ones(size)), chain(torch.ones(size)))
        (run,) = compiled.compiled.variants[0].program.natives
        assert run.function.__self__[3] == releases


LISTS = lambda: ([LIKE, LIKE], objects.identical([LIKE, LIKE]))
CLASS_OF = type("Changing", (), {})
CHANGES = {
    "its class": ("type({0}) is {1}", lambda: (CLASS_OF(), CLASS_OF), lambda given: setattr(given, "__class__", Other)),
    "no elements": ("not {0}", lambda: ({},), lambda given: given.update(a=1)),
    "no elements in order": ("not {0}", lambda: (OrderedDict(),), lambda given: given.update(a=1)),
    "an item": ("{0}[{1}] is {2}", lambda: ({"a": LIKE}, "a", LIKE), lambda given: given.update(a=LIKE.copy())),
    "an item that goes": ("{0}[{1}] is {2}", lambda: ({1: LIKE}, 1, LIKE), lambda given: given.clear()),
    "no item": ("{1} not in {0}", lambda: ({"b": 1}, "a"), lambda given: given.update(a=None)),
    "keys": ("tuple({0}) == {1}", lambda: ({"a": 1, "b": 1}, ("a", "b")), lambda given: given.update(a=given.pop("a"))),
    "fewer keys": ("tuple({0}) == {1}", lambda: ({"a": 1, "b": 1}, ("a", "b")), lambda given: given.popitem()),
    "more keys": ("tuple({0}) == {1}", lambda: ({"a": 1}, ("a",)), lambda given: given.update(b=1)),
    "values": (
        "{1}(*{0}.values())",
        lambda: ({"a": LIKE}, objects.identical([LIKE])),
        lambda given: given.update(a=LIKE.copy()),
    ),
    "an element": ("{1}(*{0})", LISTS, lambda given: given.__setitem__(1, LIKE.copy())),
    "fewer elements": ("{1}(*{0})", LISTS, lambda given: given.pop()),
    "more elements": ("{1}(*{0})", LISTS, lambda given: given.append(LIKE)),
}


class Other:
    pass


@pytest.mark.parametrize("name", CHANGES)
def test_one_call_tests_what_conditions_say(name):
    condition, create, change = CHANGES[name]
    others = [create() for condition, create, _ in CHANGES.values()]
    ways = [objects.way_of(condition, found) for (condition, *_), found in zip(CHANGES.values(), others, strict=True)]
    given = create()
    kept = objects.keeping([*ways, objects.way_of(condition, given), *ways])
    assert kept() is True
    change(given[0])
    names = dict(zip("abc", given, strict=False))
    with suppress(KeyError):
        assert eval(condition.format(*names), names) is False
    assert kept() is False


def test_an_item_that_is_put_back_is_unchanged():
    items = {"a": LIKE}
    kept = objects.keeping([objects.way_of("{0}[{1}] is {2}", (items, "a", LIKE))])
    for value in (LIKE, LIKE.copy(), LIKE, None, LIKE):
        items["a"] = value
        assert [kept(), kept()] == [value is LIKE] * 2
    del items["a"]
    assert kept() is False


def test_other_conditions_are_left_to_python():
    class Mapping(dict):
        pass

    assert objects.way_of("{0}[{1}] is {2}", (Mapping(a=1), "a", 1)) is None
    assert objects.way_of("{0}[{1}] is {2}", ([1], 0, 1)) is None
    assert objects.way_of("{0}[{1}] is {2}", ({(1,): 1}, (1,), 1)) is None
    assert objects.way_of("not {0}", (Mapping(),)) is None
    assert objects.way_of("{0}.a is {1}", (LIKE, 1)) is None
    assert objects.keeping([]) is None


def test_testing_objects_keeps_no_references():
    items, key = {"a": LIKE}, "a"
    kept = objects.keeping([objects.way_of("{0}[{1}] is {2}", (items, key, LIKE))])
    before = sys.getrefcount(LIKE), sys.getrefcount(items), sys.getrefcount(None), sys.getrefcount(True)
    for _ in range(1000):
        kept()
    after = sys.getrefcount(LIKE), sys.getrefcount(items), sys.getrefcount(None), sys.getrefcount(True)
    assert all(abs(one - other) < 500 for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_later_steps_bind_no_native_functions(optimizer, monkeypatch):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    updates = optimizer(model.parameters(), lr=0.1)

    @torch.compile
    def step(x):
        updates.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        updates.step()
        return loss

    x = torch.ones(2, 3)
    for _ in range(4):
        step(x)
    monkeypatch.setattr(objects, "built_in", None)
    losses = [step(x).item() for _ in range(4)]
    assert len({*losses}) == 4
