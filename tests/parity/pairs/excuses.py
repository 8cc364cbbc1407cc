"""Differences that are meant, or of what PyTorch leaves open, each with its reason."""

import re
from collections.abc import Callable
from typing import NamedTuple

from .cells import Cell, is_as_meant, is_derivative


def inner_is_derivative(cell: Cell) -> bool:
    """Whether the gradients of the inner feature alone agree with central differences."""
    return is_derivative(Cell("negated", cell.inner, cell.operator))


class Excuse(NamedTuple):
    """`cell` is searched for in the cell as written, `difference` in the words that say what differs.

    Where `confirmed` is given, it says whether adjoint is right: what PyTorch answers to a meaning of the cell, or finite
    differences.
    """

    reason: str
    cell: str
    difference: str
    confirmed: Callable[[Cell], bool] | None = None


MISTAKEN = "(layer_norm|BatchNorm1d|solve|cross_entropy|softmax)$"
FORWARD = "(jvp|dual numbers)"
DIFFERENTIATED = f"({FORWARD}|vjp|second backward)"

EXCUSES = [
    Excuse(
        "PyTorch's results may require grad although they depend on no leaf; values and gradients are the same",
        "",
        "^result \\d+: requires_grad False, expected True$",
    ),
    # PyTorch is wrong
    Excuse(
        "PyTorch's third derivatives are wrong, and those of forward mode", f"of {MISTAKEN}", "^gradient", is_derivative
    ),
    Excuse("the same, as results", f"of {DIFFERENTIATED} of {MISTAKEN}", "^result", inner_is_derivative),
    Excuse("the same, as tangents", f"{FORWARD} of .* of {MISTAKEN}", "^result", is_as_meant),
    Excuse(
        "PyTorch's attention mistakes expanded and overlapping rows",
        "(expanded|overlapping|large).* of attention$",
        "^result",
        is_as_meant,
    ),
    Excuse(
        "transforms of PyTorch reach no other thread", "(vjp|jvp) of another thread", "^(result|gradient)", is_as_meant
    ),
    Excuse(
        "autocast of PyTorch does not reach what vmap takes apart",
        "(autocast of vmap|vmap( of the first)? of autocast)",
        "^result \\d+: dtype bfloat16, expected float32",
        is_as_meant,
    ),
    Excuse(
        "within jvp, PyTorch's tensors require no grad, and their gradients are zeros",
        "^jvp of second backward",
        "^result",
        is_as_meant,
    ),
    Excuse(
        "PyTorch computes no tangents within a custom function",
        f"^checkpoint reentrant of {FORWARD}",
        "^(result|gradient)",
        is_as_meant,
    ),
    Excuse(
        "PyTorch's transforms lose the class of what they return",
        "subclass",
        "^result \\d+: kind Tagged, expected Tensor$",
        is_as_meant,
    ),
    Excuse(
        "PyTorch's tangents of elements that share memory share it too",
        f"overlapping of {FORWARD}",
        "^(result|gradient)",
        is_as_meant,
    ),
    Excuse(
        "PyTorch has no second derivative of attention",
        "of attention$",
        "^result.*derivative for aten::",
        is_derivative,
    ),
    Excuse(
        "PyTorch adds up the products of large convolutions in bfloat16",
        "(autocast of large|large of autocast) of conv2d$",
        "^gradient 1",
        is_derivative,
    ),
    Excuse(
        "PyTorch's queues lose pending conjugations and negations",
        "another process.* (conjugated|negated) |(conjugated|negated) of another process",
        "^(result|gradient)",
        is_as_meant,
    ),
    # what is meant differs
    Excuse(
        "the order in which nested batches draw random numbers",
        "vmap.* of vmap.* of dropout$",
        "^(result|gradient)",
    ),
    Excuse(
        "tangents are not propagated in inference mode; those of the meaning are",
        f"^inference mode of {FORWARD}",
        "^(result|gradient).*by its meaning",
    ),
    Excuse(
        "which of dimensions is the faster where strides are equal, in which order random numbers are drawn",
        "overlapping.* of dropout$",
        "^(result|gradient)",
    ),
    Excuse(
        "a hook that is registered within a transform also sees the backward around it",
        f"({DIFFERENTIATED} of hooks|hooks of {DIFFERENTIATED})",
        "^(gradient|result)",
    ),
    Excuse(
        "tensors within vmap do not require grad, so that no hook is registered",
        "vmap.* of hooks of LSTM$",
        "^gradient.*Batching rule not implemented",
    ),
    Excuse(
        "no_grad stops the reverse mode that the meaning uses, not forward mode",
        f"^{FORWARD} of (no grad|inference mode)",
        "^(result|gradient).*by its meaning",
    ),
    Excuse(
        "inference mode stops no forward mode here",
        "^jvp of inference mode",
        "^result",
    ),
    Excuse(
        "a reentrant checkpoint runs without recording, in which the meaning's gradients are not computed",
        "^checkpoint reentrant of (second backward|vjp) of attention$",
        "^(result|gradient).*by its meaning",
    ),
    Excuse(
        "the gradients of the two biases of a layer are one tensor",
        "results changed in place of .* of LSTM$",
        "^result",
    ),
    Excuse(
        "a sparse gradient becomes dense where an operator has no sparse kernel",
        "sparse gradients",
        "^(result|gradient) \\d+: layout strided, expected sparse_coo",
    ),
    Excuse(
        "PyTorch's backward of the Huber loss refuses mixed dtypes",
        "mixed dtypes of mixed dtypes of huber_loss$",
        "^raised nothing, expected RuntimeError: Found dtype Float but",
    ),
    Excuse(
        "rows of the results of PyTorch's attention share memory where those of the queries do",
        "(overlapping of results changed|results changed in place of overlapping).* of attention$",
        "^result",
    ),
    # refusals in other words
    Excuse(
        "which of the reasons to refuse a sparse gradient is told",
        "sparse gradients",
        "^raised (Not|Runtime).*expected (NotImplementedError: Could not run|RuntimeError: embedding does not support)",
    ),
    Excuse(
        "PyTorch looks at dtypes in kernels, which tensors on meta and batches do not reach",
        "(mixed dtypes|autocast|conjugated).*(meta|vmap)|(meta|vmap).*(mixed dtypes|autocast|conjugated)",
        "^raised RuntimeError: (expected (scalar type|m1 and m2)|self and mat2 must|Expected (object of scalar|both inputs))",
    ),
    Excuse(
        "which of an operator's reasons to refuse complex numbers is told",
        "conjugated",
        "^raised \\w+: .*(complex|not implemented for 'Complex|Complex(Double|Float) but|Expected tensor for argument #1)"
        ".*, expected \\w+: .*(does not support|not implemented for|use forward AD|weight to be|register_meta|!this_view_meta)",
    ),
    Excuse(
        "PyTorch notices the mixed dtypes of batch norm too late",
        "mixed dtypes.* of BatchNorm1d$",
        "expected RuntimeError: !needs_dynamic_casting",
    ),
    Excuse(
        "the operator without kernel is called by another name",
        "meta.* of masked$",
        "register_meta function for torch.nonzero",
    ),
    Excuse("PyTorch has no LSTM in bfloat16 on all processors", "autocast.* of LSTM$", "could not create a primitive"),
    Excuse(
        "PyTorch's batching fails in its own words, or for the lack of a rule",
        "vmap",
        "expected (MemoryError|RuntimeError: (The expanded size|expand\\(|Batching rule|maybe_level|Either your tensor))",
    ),
    Excuse(
        "files with classes that nobody has allowed are refused in other words",
        "(pickled of subclass|subclass of pickled)",
        "raised UnpicklingError: Weights only load failed",
    ),
    Excuse(
        "PyTorch has no second derivative of attention, and says so first",
        "of attention$",
        "^raised RuntimeError: one of the variables.*expected RuntimeError: derivative for aten::",
    ),
    Excuse(
        "PyTorch has no forward mode of attention, and says so first",
        f"{FORWARD}.* of attention$",
        "^raised CheckpointError.*expected NotImplementedError: Trying to use forward AD",
    ),
    # what adjoint does not do yet
    Excuse(
        "`make_dual` of a subclass gives a plain tensor",
        "(subclass.*dual numbers|dual numbers.*subclass)",
        "kind Tensor, expected Tagged",
    ),
    Excuse("recurrent layers of a subclass give plain tensors", "subclass.* of LSTM$", "kind Tensor, expected Tagged"),
    Excuse(
        "tensors made in inference mode within a transform count as captured when they are changed",
        f"{DIFFERENTIATED} of inference mode",
        "^raised RuntimeError: During a grad",
    ),
]


def excuse(cell: Cell, difference: str) -> Excuse | None:
    """Why the difference is accepted, if it is known."""
    return next((each for each in EXCUSES if _excuses(each, cell, difference)), None)


def _excuses(each: Excuse, cell: Cell, difference: str) -> bool:
    if not re.search(each.cell, str(cell)) or not re.search(each.difference, difference):
        return False
    return each.confirmed is None or each.confirmed(cell)
