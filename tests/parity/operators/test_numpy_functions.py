"""All functions of `numpy`, `numpy.linalg` and `numpy.fft` give the same results for tensors as for PyTorch's tensors."""

import inspect
import warnings

import numpy
import pytest

torch = pytest.importorskip("torch")

from tests.parity.candidate import candidate
from tests.parity.comparison import is_tensor
from tests.parity.conversion import from_array, to_array

# These functions write files or buffers, change settings, describe the library, run given code, or do not use arrays.
LEFT_OUT = frozenset(
    """add_newdoc add_docstring add_newdoc_ufunc save savez savez_compressed savetxt loadtxt load fromfile fromregex genfromtxt
    seterr seterrcall setbufsize set_printoptions set_string_function show_config show_runtime info test get_include printoptions
    errstate get_printoptions geterr geterrcall getbufsize open_memmap source lookfor who deprecate safe_eval empty empty_like
    frombuffer fromiter from_dlpack issubclass_ obj2sctype sctype2char maximum_sctype find_common_type""".split()
)

ARRAYS = {
    "matrix": numpy.array([[3.0, -1.5, 2.0], [0.5, 4.0, -2.0]]),
    "square": numpy.array([[4.0, 1.0], [1.0, 3.0]]),
    "vector": numpy.array([3, 1, 2, 1]),
    "complex": numpy.array([1 + 2j, 3 - 1j]),
    "bool": numpy.array([[True, False], [True, True]]),
    "number": numpy.array(2.5),
}

CALLS = """
f(x)
f(x, x)
f(x, 1)
f(x, 2)
f(2, x)
f(x, 0, 1)
f(x, (1, 0))
f(x, (-1,))
f((x, x))
f([x, x])
f(x > 1, x, x)
f(x, x, x)
f(x, x > 0)
f(x, axis=0)
f(x, axis=-1)
f(x, axis=None)
f(x, axis=0, keepdims=True)
f(x, axis=0, out=None)
f(x, 2, axis=0)
f(x, 1, axis=-1)
f((x, x), axis=0)
f(x, order="F")
f(x, (-1,), order="F")
f(x, dtype="float64")
f(x, out=None)
f(x, 0.5, axis=0)
f("i...->i...", x)
f(x, [0], axis=0)
f(x, 3, mode="wrap")
f(x, a)
f(a, x)
""".strip().splitlines()
# These functions read a tensor as a sequence, but PyTorch's tensors are not sequences.
SEQUENCES = frozenset("bmat broadcast_shapes choose resize".split())


def functions():
    for place in (numpy, numpy.linalg, numpy.fft):
        for name in sorted(dir(place)):
            function = getattr(place, name)
            if (
                name.startswith("_")
                or name in LEFT_OUT | SEQUENCES
                or not callable(function)
                or inspect.isclass(function)
            ):
                continue
            yield pytest.param(function, id=f"{place.__name__}.{name}".removeprefix("numpy."))


def described(value):
    """Describe a result in terms that both libraries share: types of containers, shapes, dtypes and elements."""
    if is_tensor(value):
        return "tensor", *described(to_array(value.detach().resolve_conj()))[1:]
    if isinstance(value, tuple | list):
        return tuple(described(item) for item in value)
    if isinstance(value, numpy.ndarray | numpy.generic):
        rounded = numpy.round(value, 9) if value.dtype.kind in "fc" else value
        return (
            type(value).__name__,
            value.shape,
            str(value.dtype),
            str(rounded.tolist()) if value.dtype != object else "",
        )
    return "object", str(value) if isinstance(value, int | float | str) else ""


def outcome(make, function, call, array):
    given = {"f": function, "x": make(array.copy()), "a": array.copy()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return described(eval(call, given))
        except Exception as error:
            return error


def bare(description):
    """Return a description that does not distinguish tensors from arrays and scalars."""
    if description and isinstance(description[0], tuple):
        return tuple(map(bare, description))
    return description[1:]


@pytest.mark.parametrize("others", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("function", list(functions()))
def test_a_function_of_numpy_answers_as_on_pytorchs_tensors(function, others):
    """If a function refuses PyTorch's tensors, it may accept adjoint's tensors and give the same result as for arrays."""
    different = []
    for row, (name, array) in enumerate(ARRAYS.items()):
        for call in CALLS[(row + others) % 2 :: 2]:
            actual, expected, of_array = (
                outcome(make, function, call, array)
                for make in (lambda a: from_array(candidate, a), lambda a: from_array(torch, a), lambda a: a)
            )
            if isinstance(expected, Exception):
                right = isinstance(actual, Exception) or (
                    not isinstance(of_array, Exception) and bare(actual) == bare(of_array)
                )
            else:
                right = actual == expected
            if not right:
                different.append(f"{call} of {name}: {actual!r}, PyTorch: {expected!r}, of arrays: {of_array!r}")
    assert not different, "\n".join(different)
