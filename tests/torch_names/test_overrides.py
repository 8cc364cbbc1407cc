"""Overrides by `__torch_function__`: tensor subclasses, other classes, modes."""

import copy
import gc
import inspect
import pickle
import subprocess
import sys
import threading

import pytest

import adjoint as torch
from adjoint import nn, overrides
from adjoint.nn import functional as F


class Metres(torch.Tensor):
    """A subclass without methods and attributes."""


class Slotted(torch.Tensor):
    """A subclass whose instances have a slot."""

    __slots__ = ("unit",)


class Logging(torch.Tensor):
    """A class whose instances record the functions that are called with them."""

    log: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.log.append(func)
        return super().__torch_function__(func, types, args, kwargs)


class Names(overrides.TorchFunctionMode):
    """A mode that records the names of called functions."""

    def __init__(self):
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(overrides.resolve_name(func))
        return func(*args, **(kwargs or {}))


def run(program):
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()


# ---------------------------------------------------------------- wrappers


@pytest.mark.thorough
def test_nothing_is_in_the_way_before_something_overrides():
    program = """
import sys, adjoint as torch
layer = torch.nn.Linear(2, 2)
class Mine(torch.nn.Parameter): pass
torch.vmap(lambda x: x * 2)(torch.ones(2))
before = torch.add.__code__
torch.add(torch.ones(1), 1)
print("adjoint.overrides" in sys.modules, "wrapper" in torch.add.__code__.co_name)
class Tagged(torch.Tensor): pass
print("adjoint.overrides" in sys.modules, "wrapper" in torch.add.__code__.co_name)
"""
    assert run(program) == ["False", "False", "True", "True"]


@pytest.mark.thorough
def test_functions_stay_the_objects_they_were():
    program = """
import adjoint as torch
import adjoint.nn.functional as F
from adjoint import cat
handled = {torch.add: "add", torch.Tensor.add: "method", torch.Tensor.shape.__get__: "shape", cat: "cat", F.relu: "relu"}
class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return handled[func]
x = torch.Tensor.as_subclass(torch.ones(2), Tagged)
print(torch.add(x, 1), x.add(1), x + 1, x.shape, cat([x]), F.relu(x), torch.nn.ReLU()(x))
"""
    assert run(program) == ["add", "method", "method", "shape", "cat", "relu", "relu"]


def test_signatures_and_documentation_are_seen_through_wrappers():
    assert list(inspect.signature(F.dropout).parameters)[:3] == ["input", "p", "training"]
    assert torch.add.__doc__ and torch.Tensor.sum.__name__ == "sum" and torch.multiply.__name__ == "multiply"


def test_wrong_arguments_are_told_as_before():
    with pytest.raises(TypeError, match=r"zeros\(\) got an unexpected keyword argument"):
        torch.zeros(2, foo=1)


def test_the_line_of_the_user_is_still_found():
    x = torch.ones(2, requires_grad=True)
    y = torch.exp(x * 1)  # the error names this line
    y.add_(1)
    with pytest.raises(RuntimeError) as raised:
        y.sum().backward()
    assert "this line" in "".join(raised.value.__notes__)


# ---------------------------------------------------------------- subclasses


def test_operations_keep_the_subclass_and_its_history():
    x = torch.ones(3, requires_grad=True)
    m = x.as_subclass(Metres)
    result = (m * 2).sum()
    assert type(result) is Metres and result.grad_fn.name() == "AliasBackward0"
    result.backward()
    assert type(x.grad) is torch.Tensor and x.grad.tolist() == [2.0] * 3


def test_a_subclass_is_trained():
    weight = nn.Parameter(torch.zeros(2).as_subclass(Metres))
    optimizer = torch.optim.Adam([weight], lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        ((weight - torch.tensor([1.0, -1.0])) ** 2).sum().backward()
        optimizer.step()
    assert isinstance(weight, nn.Parameter) and type(weight) is Metres
    assert torch.allclose(weight.as_subclass(torch.Tensor), torch.tensor([1.0, -1.0]), atol=1e-2)


def test_subclasses_with_slots():
    s = torch.ones(2).as_subclass(Slotted)
    s.unit = "s"
    assert type(s + 1) is Slotted and s.unit == "s" and not hasattr(s + 1, "unit")


def test_pickles_and_copies():
    m = torch.ones(2).as_subclass(Metres)
    m.unit = "m"
    for again in (copy.copy(m), pickle.loads(pickle.dumps(m))):
        assert type(again) is Metres and again.unit == "m" and again.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="only works for subclass types that implement new_empty"):
        copy.deepcopy(m)


def test_the_function_is_told_apart_from_the_method():
    x = torch.ones(2).as_subclass(Logging)
    for call, function in (
        (lambda: torch.sum(x), torch.sum),
        (lambda: x.sum(), torch.Tensor.sum),
        (lambda: x * 2, torch.Tensor.mul),
        (lambda: torch.multiply(x, 2), torch.multiply),
        (lambda: torch.special.softmax(x, 0), torch.special.softmax),
        (lambda: x.requires_grad, torch.Tensor.requires_grad.__get__),
        (lambda: F.softmax(x, 0), F.softmax),
    ):
        Logging.log.clear()
        call()
        assert Logging.log == [function]


@pytest.mark.filterwarnings("ignore:Using backward")
def test_formulas_take_no_part():
    x = torch.ones(2).as_subclass(Logging).requires_grad_()
    y = (x * x * x).sum()
    with torch._C.DisableTorchFunctionSubclass():
        loss = y * 1
    Logging.log.clear()
    torch.autograd.backward(loss, create_graph=True)
    assert Logging.log == []
    assert x.grad.tolist() == [3.0, 3.0]
    with torch._C.DisableTorchFunctionSubclass():
        x.grad = None  # `x.grad` refers to its own history


def test_forward_mode_passes_through_a_subclass():
    from adjoint.autograd import forward_ad

    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.ones(2), torch.tensor([1.0, 2.0]))
        y = x.as_subclass(Metres) * 3
        tangent = forward_ad.unpack_dual(y).tangent
    assert tangent.tolist() == [3.0, 6.0]


def test_within_vmap_tensors_are_of_their_own_kind():
    result = torch.vmap(lambda x: x.as_subclass(Metres) * 2)(torch.ones(3))
    assert result.tolist() == [2.0] * 3


def test_a_class_without_memory():
    class Wrapper(torch.Tensor):
        __torch_dispatch__ = None

        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is torch.Tensor.add:
                return cls(args[0].inner + args[1])
            return super().__torch_function__(func, types, args, kwargs)

    w = Wrapper(torch.ones(2, dtype=torch.float64))
    assert w.shape == (2,) and w.dtype is torch.float64 and (w + 1).inner.tolist() == [2.0, 2.0]


def test_results_die_at_once():
    gc.collect()
    gc.disable()
    try:
        import weakref

        x = torch.ones(2).as_subclass(Metres).requires_grad_()
        y = (x * 2).exp()
        alive = weakref.ref(y)
        del y
        assert alive() is None
    finally:
        gc.enable()


# ---------------------------------------------------------------- modes


def test_modes_are_left_by_exceptions():
    with pytest.raises(ValueError, match="stop"), Names():
        raise ValueError("stop")
    mode = Names()
    torch.ones(1)
    assert mode.names == [] and torch._C._len_torch_function_stack() == 0


def test_an_exception_in_a_mode_leaves_it_active():
    class Once(Names):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            super().__torch_function__(func, types, args, kwargs)
            raise ValueError

    with Once() as mode:
        for _ in range(2):
            with pytest.raises(ValueError):
                torch.ones(1)
    assert mode.names == ["torch.ones", "torch.ones"]


def test_a_mode_receives_the_calls_of_a_model():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    with Names() as mode:
        model(torch.ones(1, 2)).sum().backward()
    assert mode.names == [
        "torch.ones",
        "torch.nn.functional.linear",
        "torch.nn.functional.relu",
        "torch.nn.functional.linear",
        "torch.Tensor.sum",
        "torch.Tensor.backward",
    ]


def test_modes_and_switches_are_of_one_thread():
    seen = []

    def work():
        seen.append(type(torch.ones(1).as_subclass(Metres) + 1))

    with Names() as mode, torch._C.DisableTorchFunctionSubclass():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [Metres] and mode.names == []


@pytest.mark.thorough
def test_many_threads_open_the_doors_once():
    program = """
import threading, adjoint as torch
def work(failed=[]):
    for _ in range(50):
        assert (torch.ones(2) + 1).sum().item() == 4
        assert torch.cat([torch.ones(1), torch.zeros(1)]).mean().item() == 0.5
threads = [threading.Thread(target=work) for _ in range(4)]
failures = []
threading.excepthook = lambda failure: failures.append(failure)
for thread in threads: thread.start()
class Mine(torch.Tensor): pass
for thread in threads: thread.join()
print(len(failures), type(torch.ones(1).as_subclass(Mine) + 1).__name__)
"""
    assert run(program) == ["0", "Mine"]


# ---------------------------------------------------------------- attributes and predicates


def test_every_function_that_can_be_overridden_is():
    class Everything:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    names = overrides.get_testing_overrides()
    taken = set()
    for function in names:
        owner = (overrides.resolve_name(function) or "").rpartition(".")[0]
        if owner.startswith("torch.Tensor") or not owner:
            continue
        result = function(Everything())
        assert result is function or overrides.resolve_name(result) == overrides.resolve_name(function), function
        taken.add(function)
    assert len(taken) > 500


def test_every_method_can_be_taken_over():
    class Mine(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    x = torch.Tensor.as_subclass(torch.ones(1), Mine)
    for function in overrides.get_overridable_functions()[torch.Tensor]:
        name = overrides.resolve_name(function).removeprefix("torch.Tensor.")
        if name == "__setitem__":  # the test ignores the result
            continue
        taken = function(x)
        assert callable(taken), name
        assert overrides.is_tensor_method_or_property(taken)


def test_testing_overrides_have_the_parameters():
    override = overrides.get_testing_overrides()[F.relu]
    assert list(inspect.signature(override).parameters) == ["input", "inplace"] and override(1) == -1


def test_names_of_functions():
    assert overrides.resolve_name(torch.Tensor.add) == "torch.Tensor.add"
    assert overrides.resolve_name(torch.Tensor.T.__get__) == "torch.Tensor.T.__get__"
    assert overrides.resolve_name(len) is None and overrides.resolve_name([]) is None


def test_a_class_that_defines_it_otherwise_is_warned():
    class Old:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func.__name__

    with pytest.warns(UserWarning, match="as a plain method is deprecated"):
        assert torch.mul(Old(), 2) == "mul"


def test_every_function_is_reported_by_its_called_name():
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return [func]

    stand_ins = overrides.get_testing_overrides()
    for owner, functions in overrides.get_overridable_functions().items():
        for function in functions:
            name = overrides.resolve_name(function)
            if owner is torch.Tensor:
                continue
            parameters = inspect.signature(stand_ins[function]).parameters.values()
            needed = [one for one in parameters if one.default is one.empty and one.kind is not one.KEYWORD_ONLY]
            result = function(*[Duck() for _ in needed or [None]])
            assert result == [function], name
            assert getattr(owner, name.rpartition(".")[2]) is function, name


FIRST_MEETING = """
import adjoint as torch

class Length:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, [type(value).__name__ for value in args]

assert {call} == {expected}
assert torch.allclose(Length(), torch.ones(1)) == ("allclose", ["Length", "Tensor"])
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("torch.ones(2) * Length()", ("mul", ["Tensor", "Length"])),
        ("torch.ones(2, 2) @ Length()", ("matmul", ["Tensor", "Length"])),
        ("torch.exp(Length())", ("exp", ["Length"])),
        ("torch.cat([torch.ones(1), Length()])", ("cat", ["list"])),
    ],
)
@pytest.mark.thorough
def test_the_first_object_that_is_no_tensor_puts_wrappers_in_place(call, expected):
    program = FIRST_MEETING.format(call=call, expected=expected)
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_only_the_class_of_the_tensor_overrides_an_assignment_to_its_attributes():
    Logging.log.clear()
    for tensor in (torch.ones(2), nn.Parameter(torch.ones(2))):
        tensor.data = torch.zeros(2).as_subclass(Logging)
        tensor.grad = torch.full((2,), 3.0).as_subclass(Logging)
    assert not Logging.log
    assert tensor.tolist() == [0, 0]
    torch.ones(2).as_subclass(Logging).data = torch.zeros(2)
    assert [func.__name__ for func in Logging.log] == ["__set__"]


def test_objects_in_nested_keys_override():
    class Key:
        @classmethod
        def __torch_function__(cls, func, types, args, kwargs=None):
            return func.__name__

    assert torch.ones(2, 2)[(0, (Key(), Key()))] == "__getitem__"
    with pytest.raises(TypeError, match="expected a sequence"):
        torch.overrides.has_torch_function(object())


def test_modes_refuse_class_methods():
    class Function(torch.overrides.TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return -1

    class Dispatch(torch.utils._python_dispatch.TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return -1

    for mode in (Function, Dispatch):
        with mode(), pytest.raises(RuntimeError, match="classmethod is not supported"):
            torch.ones(2) + 1


def test_modes_receive_the_parsing_of_the_arguments_of_to():
    class Log(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    names = []
    with Log():
        assert torch._C._nn._parse_to("cpu")[0] == torch.device("cpu")
    assert names == ["_parse_to"]
