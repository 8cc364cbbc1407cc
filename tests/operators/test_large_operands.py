"""Samples of all operators give the same results on operands that are large enough for tiles, compiled loops and threads.

The test compares the values, dtypes and gradients of a large call with the results of NumPy on one thread and on plain copies of
the operands. It compares the other properties of the results with the small call.
"""

import itertools
import re
import zlib

import numpy
import pytest

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS

from .samples import SAMPLES
from .sampling import Input, Sample
from .test_every_operator import apply, as_list, every_other, reversed_order

LARGE = 1 << 14
"""A number of elements above the usual thresholds."""


def scaled(call, times, sizes):
    """Return the call with all sizes in `sizes` multiplied by `times`."""

    def larger(value):
        if isinstance(value, list):
            return [*map(larger, value)]
        if not isinstance(value, Input):
            return value
        shape = tuple(size * times if size in sizes else size for size in value.shape)
        return Input(shape, value.make, value.differentiable, value.always_real)

    kwargs = {name: larger(value) for name, value in call.kwargs.items()}
    return Sample(tuple(map(larger, call.args)), kwargs, call.complex_numbers, seeded=call.seeded, after=call.after)


def most_elements(shapes, times, sizes):
    return max((numpy.prod([size * times if size in sizes else size for size in shape]) for shape in shapes), default=0)


def enlarged(name, call):
    """Return the call with as many enlarged sizes as its other arguments allow, or None if no size can be enlarged."""
    small = outcome(name, call, *built(call, lambda tensor: tensor))
    if small.error is not None:
        return None
    given = [each.shape for each in call.inputs()]
    results = [tuple(result.shape) for result in small.results]
    sizes = sorted({size for shape in given for size in shape if size > 1}, reverse=True)
    for count in range(len(sizes), 0, -1):
        for chosen in itertools.combinations(sizes, count):
            times = 2
            while most_elements(given, times, chosen) < LARGE and most_elements(results, times, chosen) < 8 * LARGE:
                times = times * 5 // 4 + 1
            larger = scaled(call, times, chosen)
            with by_numpy():
                found = outcome(name, larger, *built(larger, lambda tensor: tensor))
            if most_elements(given, times, chosen) >= LARGE // 8 and found.is_like(small):
                return larger
    return None


class by_numpy:
    """Compute on one thread, without compiled loops."""

    def __enter__(self):
        self.before = LOOPS.enabled, torch.get_num_threads()
        LOOPS.enabled = False
        torch.set_num_threads(1)

    def __exit__(self, *_):
        LOOPS.enabled, threads = self.before
        torch.set_num_threads(threads)


# --- operands -------------------------------------------------------------------------------------------------------


class Derived(torch.Tensor):
    pass


def conjugated(tensor):
    if tensor.is_complex():
        return tensor.conj().resolve_conj().conj()
    return torch._neg_view(-tensor) if tensor.is_floating_point() else tensor


def expanded(tensor):
    return tensor[:1].clone().expand(tensor.shape) if tensor.ndim and len(tensor) else tensor


def repeated(tensor):
    return tensor[..., :1].clone().expand(tensor.shape) if tensor.ndim and tensor.shape[-1] else tensor


def unaligned(tensor):
    memory = torch.empty(tensor.numel() + 1, dtype=tensor.dtype)
    memory[1:] = tensor.reshape(-1)
    return memory[1:].view(tensor.shape)


def with_gaps(tensor):
    if tensor.ndim < 2:
        return tensor
    memory = torch.empty([*tensor.shape[:-1], tensor.shape[-1] + 3], dtype=tensor.dtype)
    memory[..., : tensor.shape[-1]] = tensor
    return memory[..., : tensor.shape[-1]]


def read_only(tensor):
    array = tensor.numpy().copy()
    array.flags.writeable = False
    return torch.from_numpy(array)


KINDS = {
    "plain": lambda tensor: tensor,
    "reversed": reversed_order,
    "steps": every_other,
    "swapped": lambda tensor: tensor.mT.contiguous().mT if tensor.ndim > 1 else tensor,
    "conjugated": conjugated,
    "expanded": expanded,
    "repeated": repeated,
    "unaligned": unaligned,
    "gaps": with_gaps,
    "read-only": read_only,
    "derived": lambda tensor: tensor.as_subclass(Derived),
    "parameter": lambda tensor: torch.nn.Parameter(tensor, tensor.is_floating_point()),
}
DTYPES = {
    "float64": (torch.float64,),
    "float32": (torch.float32,),
    "bfloat16": (torch.bfloat16,),
    "float32, float64": (torch.float32, torch.float64),
    "float32, int64": (torch.float32, torch.int64),
}


def built(call, kind, dtypes=(torch.float64,), *, shared=False, number=False):
    """Create the arguments.

    The dtypes are assigned to differentiable tensors in turn. `shared`: equal descriptions become one tensor. `number`: the
    second tensor has no dimensions.
    """
    args, kwargs, tensors = call.build(call.complex_numbers == "only", requires_grad=False)
    differentiable, counted, known = {id(tensor) for tensor in tensors}, itertools.count(), {}

    def made(tensor):
        place, follows = next(counted), id(tensor) in differentiable
        if follows and not tensor.is_complex():
            tensor = tensor.to(dtypes[place % len(dtypes)])
        if number and place == 1 and tensor.numel():
            tensor = tensor.reshape(-1)[0]
        key = tuple(tensor.shape), tensor.dtype
        if shared and key in known:
            return known[key]
        tensor = kind(tensor)
        if follows and (tensor.is_floating_point() or tensor.is_complex()):
            tensor.requires_grad_()
        return known.setdefault(key, tensor) if shared else tensor

    return mapped(made, args, kwargs)


def mapped(function, args, kwargs):
    """Return the arguments with replaced tensors."""

    def replaced(value):
        if isinstance(value, list):
            return [*map(replaced, value)]
        return function(value) if isinstance(value, torch.Tensor) else value

    return [*map(replaced, args)], {name: replaced(value) for name, value in kwargs.items()}


def copies(args, kwargs):
    """Return the same numbers in separate row-major tensors. A tensor that occurs twice stays one tensor."""
    known = {}

    def copy(tensor):
        if id(tensor) not in known:
            plain = tensor.detach().as_subclass(torch.Tensor).resolve_conj().resolve_neg()
            known[id(tensor)] = (
                torch.empty(plain.shape, dtype=plain.dtype).copy_(plain).requires_grad_(tensor.requires_grad)
            )
        return known[id(tensor)]

    return mapped(copy, args, kwargs)


# --- outcomes -------------------------------------------------------------------------------------------------------


def flat(value):
    return [item for each in as_list(value) for item in (flat(each) if isinstance(each, (list, tuple)) else [each])]


def words(error):
    """Return the text of an error without its numbers."""
    return type(error), re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "N", str(error).split("\n")[0])


class outcome:
    """The outcome of a call: results and gradients, or errors."""

    def __init__(self, name, call, args, kwargs):
        self.results, self.grads, self.error = [], [], None
        leaves = []
        mapped(lambda tensor: tensor.requires_grad and leaves.append(tensor), args, kwargs)
        try:
            result = apply(name, call, args, kwargs)
            self.results = [
                item for item in flat(call.after(result) if call.after else result) if isinstance(item, torch.Tensor)
            ]
            roots = [each for each in self.results if each.requires_grad]
            if leaves and roots:
                weights = [
                    torch.linspace(1, 2, each.numel(), dtype=torch.float64).reshape(each.shape).to(each.dtype)
                    for each in roots
                ]
                self.grads = torch.autograd.grad(roots, leaves, weights, allow_unused=True)
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
            self.error = words(error)

    def is_like(self, other):
        """Return whether both outcomes agree in all properties except numbers and shapes."""
        return self._kind() == other._kind()

    def _kind(self):
        results = [(type(each), each.dtype, each.requires_grad, each.ndim) for each in self.results]
        return self.error, results[:1], [None if each is None else (type(each), each.dtype) for each in self.grads]


TOLERANCE = {
    torch.float64: 1e-9,
    torch.complex128: 1e-9,
    torch.float32: 2e-4,
    torch.complex64: 2e-4,
    torch.bfloat16: 3e-2,
}


def assert_same(one, other, dtypes):
    """Compare results of operands of these dtypes. The sum of a float32 gradient is no more exact as a float64 number."""
    assert one.shape == other.shape
    assert one.dtype == other.dtype
    tolerance = TOLERANCE.get(one.dtype, 0) and max(TOLERANCE.get(each, 0) for each in (one.dtype, *dtypes))
    one, other = (each.detach().as_subclass(torch.Tensor).resolve_conj().resolve_neg() for each in (one, other))
    if one.dtype is torch.bfloat16:
        one, other = one.float(), other.float()
    one, other = one.numpy(), other.numpy()
    finite = numpy.abs(other[numpy.isfinite(other)])
    scale = max(float(finite.max(initial=0)), 0.1) if tolerance else 0
    numpy.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)


# --- the test -------------------------------------------------------------------------------------------------------

# The operands do not determine the results of these operators: random numbers in memory order, memory layouts, or a choice among
# equal elements or pivots. Rows of enlarged matrices repeat, so that inverses depend on rounding. The list also contains internal
# operators whose callers check dtypes and shapes (`_softmax_backward_data`).
LEFT_OUT = frozenset(
    """
    as_strided as_strided_copy as_strided_scatter view_as_complex view_as_complex_copy view_as_real reshape_alias topk
    linalg_eig linalg_eigh linalg_lu linalg_inv_ex linalg_cholesky_ex kthvalue
    linalg_svd softmax_backward log_softmax_backward linalg_qr geqrf conv_input_grad conv_weight_grad convolution prod_all
    prod_dim pdist
    addr linalg_lstsq
    """.split()
)

pytestmark = pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")

NAMES = [name for name in sorted(SAMPLES) if name not in LEFT_OUT and not SAMPLES[name][0].seeded]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thorough
def test_sizes_change_no_answers(name):
    check(name, 4)


@pytest.mark.long_cases
@pytest.mark.parametrize("name", NAMES[::12])
def test_sizes_change_no_answers_of_some(name):
    check(name, 1)


def check(name, rounds):
    call = SAMPLES[name][0]
    larger = enlarged(name, call)
    for round in range(0 if larger is None else rounds):
        compare(name, call, larger, round)


def compare(name, call, larger, round):
    """Compare the large call with NumPy and with the small call. Each round chooses other operands."""
    choice = numpy.random.RandomState(zlib.crc32(f"{name} {round}".encode()))
    kind, dtypes = (list(table)[choice.randint(len(table))] for table in (KINDS, DTYPES))
    options = {"shared": bool(choice.randint(2)), "number": choice.randint(4) == 0}
    given = built(larger, KINDS[kind], DTYPES[dtypes], **options)
    with by_numpy():
        expected = outcome(name, larger, *copies(*given))
    found = outcome(name, larger, *given)
    small = outcome(name, call, *built(call, KINDS[kind], DTYPES[dtypes], **options))
    about = f"{kind}, {dtypes}, {options}"
    assert found.error == expected.error, about
    for one, other in zip([*found.results, *found.grads], [*expected.results, *expected.grads], strict=True):
        assert (one is None) == (other is None), about
        if one is not None:
            assert_same(one, other, DTYPES[dtypes])
    assert found.is_like(small), about
