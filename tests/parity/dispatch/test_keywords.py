"""Functions refuse unknown keywords. If sizes or dimensions are separate arguments, the error has PyTorch's message."""

import inspect
import warnings

import pytest

torch = pytest.importorskip("torch")

from tests.parity.behaviour import assert_same
from tests.parity.candidate import candidate

LINES = """
t.reshape((3, 2), order="F")
t.reshape(3, 2, shape=(3, 2))
t.reshape(shape=(3, 2))
t.reshape(shape=(3, 2), foo=1)
t.reshape(foo=1)
t.view(3, 2, foo=1)
t.view(torch.int32, foo=1)
t.view(size=(3, 2))
t.view(size=(3, 2), foo=1)
t.view(dtype=torch.int32)
t.view(3, 2, dtype=torch.int32)
t.view(3, 2, size=(1,))
t.repeat(2, 2, axis=0)
t.repeat(2, axis=0)
t.repeat(repeats=(2, 2))
t.repeat(2, 2, repeats=(1,))
t.tile(2, foo=1)
t.tile(dims=(2,))
t.tile(2, dims=(2,))
t.expand(2, 3, foo=1)
t.expand(size=(2, 3))
t.expand(2, 3, size=(2, 3))
t.expand(2, 3, implicit=True)
t.permute(1, 0, foo=1)
t.permute((1, 0), axes=1)
t.permute(dims=(1, 0))
t.permute(1, 0, dims=(1, 0))
t.flip(0, foo=1)
t.flip((0,), foo=1)
t.flip(dims=(0,))
t.flip(0, dims=(0,))
t.broadcast_to((2, 3), foo=1)
t.broadcast_to((2, 3), size=(2, 3))
t.tensor_split(2, foo=1)
t.tensor_split(2, 1, foo=1)
t.tensor_split(sections=2)
t.tensor_split(2, sections=2)
t.tensor_split(2, indices=(1,))
t.tensor_split(tensor_indices_or_sections=torch.tensor(2))
t.tensor_split(2, axis=1)
torch.tensor_split(t, 2, foo=1)
torch.tensor_split(t, indices_or_sections=2)
torch.tensor_split(input=t, sections=2)
torch.tensor_split(t, 2, input=t)
torch.where(t > 1, t, t, foo=1)
torch.where(t > 1, foo=1)
torch.where(condition=t > 1, input=t, other=t)
torch.where(t > 1, t, t, input=t)
torch.permute(t, (1, 0), foo=1)
torch.flip(t, (0,), foo=1)
torch.roll(t, 1, foo=1)
torch.reshape(t, (3, 2), order="F")
torch.tile(t, (2,), foo=1)
torch.broadcast_to(t, (2, 3), foo=1)
""".strip().splitlines()

# These functions change settings of the process, read or write files, or run code.
LEFT_OUT = (
    "set_",
    "autocast",
    "seed",
    "save",
    "load",
    "fork",
    "wait",
    "compile",
    "_grad",
    "inference_mode",
    "from_file",
)


@pytest.mark.parametrize("line", LINES)
def test_unknown_keywords(line):
    assert_same(f"t = torch.arange(6.0).view(2, 3)\n{line}")


def functions():
    spaces = ("", "nn.functional", "linalg", "fft", "special", "sparse", "Tensor")
    for space in spaces:
        place = candidate
        for part in filter(None, space.split(".")):
            place = getattr(place, part)
        for name in sorted(dir(place)):
            function = None if name.startswith("_") or any(part in name for part in LEFT_OUT) else getattr(place, name)
            if callable(function) and not inspect.isclass(function) and not inspect.ismodule(function):
                again = space == "Tensor" and hasattr(candidate, name)
                marks = pytest.mark.thorough if again else ()
                yield pytest.param(function, space == "Tensor", id=f"{space}.{name}".lstrip("."), marks=marks)


@pytest.mark.parametrize(("function", "is_method"), list(functions()))
def test_no_function_ignores_a_keyword(function, is_method):
    t = candidate.arange(6.0).view(2, 3)
    given = [
        (),
        (2,),
        ((2, 3),),
        (2, 3),
        (1, 0),
        (t,),
        (t, t),
        (t, t, t),
        (t, 2),
        (t, (2, 3)),
        (t, 1, 0),
        ([t, t],),
        (t > 1, t, t),
    ]
    for arguments in given:
        receiver = (t.clone(),) if is_method else ()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                function(*receiver, *arguments)
            except Exception:
                continue
            with pytest.raises((TypeError, RuntimeError)):
                function(*receiver, *arguments, no_such_keyword=1)
