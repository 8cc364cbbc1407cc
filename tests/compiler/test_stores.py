"""A program repeats stores to outside objects. What a function stores, it reads anew in each call."""

import copy
import warnings

import pytest

import adjoint as torch

from .comparison import assert_alike

nn = torch.nn


class Model(nn.Module):
    def __init__(self, forward, **attributes):
        super().__init__()
        self.linear, self.compute = nn.Linear(3, 3), forward
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, x):
        return self.compute(self, x)


def counted(self, x):
    self.n += 1
    return x * self.n


def carried(self, x):
    h, n = (torch.zeros(3), torch.zeros(3)) if self.n is None else self.n
    self.n = h.detach() * 0.5 + self.linear(x), n + h.detach()
    return self.n[0] * 2


def through_time(self, x):
    self.n = torch.tanh(self.linear(x) + self.n)
    return self.n


def exchanged(self, x):
    self.n, self.m = self.m, x + self.n
    return self.n * 2 + self.m


def returned_before(self, x):
    old, self.n = self.n, x * 2
    return old


def kept_result(self, x):
    self.n = self.linear(x)
    return self.n


def kept_detached(self, x):
    y = self.linear(x)
    self.n, self.m = y.detach(), x.detach()
    return y


def branch(self, x):
    self.n += 1
    if x.sum() > 0:
        self.m = x
        return x * 2
    return x - self.n


def remainder(self, x):
    self.n += 1
    return x * 10 if self.n % 3 == 0 else x * self.n


def read_otherwise(self, x):
    self.n += 1
    return x * self.__dict__["n"] * getattr(self, "n")  # noqa: B009


def element(self, x):
    self.n["sum"] = self.n["sum"] + x.sum().detach()
    self.n["last"] = (x > 0).sum().item()
    return x * self.n["sum"]


def all_elements(self, x):
    self.n["a"] += 1
    return x * sum(self.n.values())


def appended(self, x):
    y = self.linear(x)
    self.n.append(y.detach())
    self.n.append(((y > 0).sum().item(), 1))
    return y


def first_time(self, x):
    if not hasattr(self, "h"):
        self.h = torch.zeros(3)
    self.h = self.h + x
    return self.h


def rebound_buffer(self, x):
    self.n = 0.9 * self.n + 0.1 * x
    return x - self.n


STEPS = {
    counted: {"n": 0},
    carried: {"n": None},
    through_time: {"n": torch.zeros(3)},
    exchanged: {"n": torch.ones(3), "m": torch.zeros(3)},
    returned_before: {"n": torch.ones(3)},
    kept_result: {"n": None},
    kept_detached: {"n": None, "m": None},
    branch: {"n": 0, "m": None},
    remainder: {"n": 0},
    read_otherwise: {"n": 1},
    element: {"n": {"sum": 0.0, "last": 0.0}},
    all_elements: {"n": {"a": 1.0, "b": 2.0}},
    appended: {"n": []},
    first_time: {},
    rebound_buffer: {"n": nn.Buffer(torch.zeros(3))},
}


def state(model):
    return {name: each for name, each in {**vars(model), **model._buffers}.items() if name in ("n", "m", "h")}


@pytest.mark.parametrize("forward", STEPS)
def test_stores_equal_those_without_compile(forward):
    torch.manual_seed(0)
    plain = Model(forward, **copy.deepcopy(STEPS[forward]))
    compiled = torch.compile(copy.deepcopy(plain))
    own = compiled._orig_mod
    for number in range(7):
        x = torch.randn(3).requires_grad_(forward in (kept_result, kept_detached, appended, element) and number != 6)
        found, expected = compiled(x), plain(x)
        assert_alike(found, expected)
        assert_alike(state(own), state(plain))
        assert [each is found for each in state(own).values()] == [each is expected for each in state(plain).values()]
        assert (getattr(own, "m", None) is x) == (getattr(plain, "m", None) is x)
        if expected.requires_grad and forward not in (carried, through_time):
            found.sum().backward()
            expected.sum().backward()
            assert_alike([each.grad for each in own.parameters()], [each.grad for each in plain.parameters()])
    programs = compiled.compiled.variants
    assert sum(each.calls for each in programs) >= (0 if forward is all_elements else 1)


def test_places_are_read_anew():
    def model():
        return Model(exchanged, n=torch.zeros(3), m=torch.ones(3))

    plain, own = model(), model()
    compiled = torch.compile(own)
    for number in range(8):
        for each in (plain, own):
            if number == 4:
                each.n, each.m = torch.full((3,), 7.0), torch.full((3,), 8.0)
            if number == 6:
                each.n = torch.ones(2, 3, dtype=torch.float64)
        x = torch.full((3,), float(number))
        assert_alike(compiled(x), plain(x))
        assert_alike(state(own), state(plain))


def set_element(given, x):
    given["inner"]["a"] = x * 2
    return x + 1


def append(given, x):
    given["list"].append(x * 2)
    return x + 1


@pytest.mark.parametrize("function", [set_element, append])
def test_containers_among_the_arguments_are_those_of_each_call(function):
    compiled = torch.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            x, one, other = torch.randn(3), {"inner": {}, "list": []}, {"inner": {}, "list": []}
            assert_alike(compiled(one, x), function(other, x))
            assert_alike(one, other)


def test_errors_leave_the_same_state():
    def forward(self, x):
        self.n += 1
        return self.table(x)

    model = Model(forward, n=0, table=nn.Embedding(3, 2))
    compiled = torch.compile(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for count, index in enumerate([0, 1, 7, 2, 7], 1):
            try:
                compiled(torch.tensor([index]))
            except IndexError:
                assert index == 7
            assert model.n == count


def test_a_store_before_the_end_of_a_capture_is_read_after_it():
    def forward(self, x):
        self.n += 1
        self.list.pop()
        self.n += 1
        return x * self.n

    model = Model(forward, n=0, list=[1, 2, 3, 4])
    with pytest.warns(UserWarning, match="pop"):
        assert_alike(torch.compile(model)(torch.ones(2)), torch.full((2,), 2.0))
    assert model.n == 2


def test_a_size_stored_before_an_error_is_a_number():
    shapes = {}

    def function(x):
        shapes["x"] = x.shape
        return x @ x

    compiled = torch.compile(function, dynamic=True)
    for size in (3, 4, 5):
        with pytest.raises(RuntimeError):
            compiled(torch.ones(size, 2))
        assert shapes["x"] == (size, 2)
        assert {*map(type, shapes["x"])} == {int}


def test_a_size_stored_before_an_operator_that_may_fail_is_a_number():
    shapes = {}
    table = nn.Embedding(3, 2)

    def function(x, index):
        shapes["x"] = x.shape
        shapes["both"] = (x.shape[0], index.shape[0])
        return table(index)

    compiled = torch.compile(function, dynamic=True)
    for size in (3, 4, 5, 5, 4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled(torch.ones(size, 2), torch.zeros(size, dtype=torch.int64))
        assert shapes == {"x": (size, 2), "both": (size, size)}
        assert {*map(type, shapes["x"]), *map(type, shapes["both"])} == {int}


@pytest.mark.parametrize("changed", ["result", "detached"])
def test_a_tensor_and_its_detached_form(changed):
    weight = torch.ones(3, requires_grad=True)

    def function(x):
        y = weight * x
        return y.detach(), y, x.detach()

    compiled = torch.compile(function)
    for _ in range(4):
        outcomes = []
        for each in (compiled, function):
            torch.manual_seed(0)
            x = torch.randn(3)
            detached, result, given = each(x)
            given.add_(1)
            with torch.no_grad():
                (result if changed == "result" else detached).mul_(2)
            outcomes.append((detached, result, given, x))
        assert_alike(*outcomes)
    assert sum(each.calls for each in compiled.compiled.variants) == 3
