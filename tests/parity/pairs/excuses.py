"""Differences that are intended, or that PyTorch does not define, each with its reason."""

import re
from collections.abc import Callable
from typing import NamedTuple

from .cells import Cell, is_as_meant, is_derivative


def inner_is_derivative(cell: Cell) -> bool:
    """Return whether the gradients of the inner feature alone agree with central differences."""
    return is_derivative(Cell("negated", cell.inner, cell.operator))


class Excuse(NamedTuple):
    """`cell` is a pattern for the name of the cell, `difference` a pattern for the description of the difference.

    `example` is a cell that needs the excuse. `confirmed`, if given, checks that adjoint is right, by PyTorch's answer to a
    meaning of the cell or by finite differences.
    """

    reason: str
    cell: str
    difference: str
    example: str
    confirmed: Callable[[Cell], bool] | None = None


MISTAKEN = "(layer_norm|BatchNorm1d|solve|cross_entropy|softmax)$"
FORWARD = "(jvp|dual numbers)"
DIFFERENTIATED = f"({FORWARD}|vjp|second backward)"

EXCUSES = [
    Excuse(
        "PyTorch's results may require grad although they depend on no leaf; values and gradients are the same",
        "",
        "^result \\d+: requires_grad False, expected True$",
        "inference mode of jvp of index_put_",
    ),
    # PyTorch is wrong
    Excuse(
        "PyTorch's third derivatives are wrong, and those of forward mode",
        f"of {MISTAKEN}",
        "^gradient",
        "inference mode of jvp of layer_norm",
        is_derivative,
    ),
    Excuse(
        "the same, as results",
        f"of {DIFFERENTIATED} of {MISTAKEN}",
        "^result",
        "jvp of jvp of layer_norm",
        inner_is_derivative,
    ),
    Excuse(
        "the same, as tangents",
        f"{FORWARD} of .* of {MISTAKEN}",
        "^result",
        "dual numbers of subclass of solve",
        is_as_meant,
    ),
    Excuse(
        "PyTorch's attention mistakes expanded and overlapping rows",
        "(expanded|overlapping|large).* of attention$",
        "^result",
        "inference mode of overlapping of attention",
        is_as_meant,
    ),
    Excuse(
        "transforms of PyTorch reach no other thread",
        "(vjp|jvp) of another thread",
        "^(result|gradient)",
        "vjp of another thread of transpose",
        is_as_meant,
    ),
    Excuse(
        "autocast of PyTorch does not reach what vmap takes apart",
        "(autocast of vmap|vmap( of the first)? of autocast)",
        "^result \\d+: dtype bfloat16, expected float32",
        "autocast of vmap of the first of attention",
        is_as_meant,
    ),
    Excuse(
        "within jvp, PyTorch's tensors require no grad, and their gradients are zeros",
        "^jvp of second backward",
        "^result",
        "jvp of second backward of mul",
        is_as_meant,
    ),
    Excuse(
        "PyTorch computes no tangents within a custom function",
        f"^checkpoint reentrant of {FORWARD}",
        "^(result|gradient)",
        "checkpoint reentrant of dual numbers of div",
        is_as_meant,
    ),
    Excuse(
        "PyTorch's transforms lose the class of what they return",
        "subclass",
        "^result \\d+: kind Tagged, expected Tensor$",
        "vjp of subclass of solve",
        is_as_meant,
    ),
    Excuse(
        "PyTorch's tangents of elements that share memory share it too",
        f"overlapping of {FORWARD}",
        "^(result|gradient)",
        "overlapping of jvp of dropout",
        is_as_meant,
    ),
    Excuse(
        "PyTorch has no second derivative of attention",
        "of attention$",
        "^result.*derivative for aten::",
        "vmap of vjp of attention",
        is_derivative,
    ),
    Excuse(
        "PyTorch adds up the products of large convolutions in bfloat16",
        "(autocast of large|large of autocast) of conv2d$",
        "^gradient 1",
        "large of autocast of conv2d",
        is_derivative,
    ),
    Excuse(
        "PyTorch's queues lose pending conjugations and negations",
        "another process.* (conjugated|negated) |(conjugated|negated) of another process",
        "^(result|gradient)",
        "conjugated of another process of transpose",
        is_as_meant,
    ),
    # intended differences
    Excuse(
        "the order in which nested batches draw random numbers",
        "vmap.* of vmap.* of dropout$",
        "^(result|gradient)",
        "vmap of the first of vmap of dropout",
    ),
    Excuse(
        "which of dimensions is the faster where strides are equal, in which order random numbers are drawn",
        "overlapping.* of dropout$",
        "^(result|gradient)",
        "overlapping of vjp of dropout",
    ),
    Excuse(
        "a hook that is registered within a transform also sees the backward around it",
        f"({DIFFERENTIATED} of hooks|hooks of {DIFFERENTIATED})",
        "^(gradient|result)",
        "jvp of hooks of layer_norm",
    ),
    Excuse(
        "tensors within vmap do not require grad, so that no hook is registered",
        "vmap.* of hooks of LSTM$",
        "^gradient.*Batching rule not implemented",
        "vmap of the first of hooks of LSTM",
    ),
    Excuse(
        "no_grad stops the reverse mode that the meaning uses, not forward mode",
        f"^{FORWARD} of (no grad|inference mode)",
        "^(result|gradient).*by its meaning",
        "dual numbers of no grad of softmax",
    ),
    Excuse(
        "inference mode stops no forward mode here",
        "^jvp of inference mode",
        "^result",
        "jvp of inference mode of sum",
    ),
    Excuse(
        "a reentrant checkpoint runs without recording, in which the meaning's gradients are not computed",
        "^checkpoint reentrant of (second backward|vjp) of attention$",
        "^(result|gradient).*by its meaning",
        "checkpoint reentrant of second backward of attention",
    ),
    Excuse(
        "the gradients of the two biases of a layer are one tensor",
        "results changed in place of .* of LSTM$",
        "^result",
        "results changed in place of second backward of LSTM",
    ),
    Excuse(
        "a sparse gradient becomes dense where an operator has no sparse kernel",
        "sparse gradients",
        "^(result|gradient) \\d+: layout strided, expected sparse_coo",
        "checkpoint of sparse gradients of results of addcmul_",
    ),
    Excuse(
        "PyTorch's backward of the Huber loss refuses mixed dtypes",
        "mixed dtypes of mixed dtypes of huber_loss$",
        "^raised nothing, expected RuntimeError: Found dtype Float but",
        "mixed dtypes of mixed dtypes of huber_loss",
    ),
    Excuse(
        "rows of the results of PyTorch's attention share memory where those of the queries do",
        "(overlapping of results changed|results changed in place of overlapping).* of attention$",
        "^result",
        "overlapping of results changed in place of attention",
    ),
    # refusals in other words
    Excuse(
        "which of the reasons to refuse a sparse gradient is told",
        "sparse gradients",
        "^raised (Not|Runtime).*expected (NotImplementedError: Could not run|RuntimeError: embedding does not support)",
        "conjugated of sparse gradients of inputs of dropout",
    ),
    Excuse(
        "PyTorch looks at dtypes in kernels, which tensors on meta and batches do not reach",
        "(mixed dtypes|autocast|conjugated).*(meta|vmap)|(meta|vmap).*(mixed dtypes|autocast|conjugated)",
        "^raised RuntimeError: (expected (scalar type|m1 and m2)|self and mat2 must|Expected (object of scalar|both inputs))",
        "vmap of mixed dtypes of linear",
    ),
    Excuse(
        "which of an operator's reasons to refuse complex numbers is told",
        "conjugated",
        "^raised \\w+: .*(complex|not implemented for 'Complex|Complex(Double|Float) but|Expected tensor for argument #1)"
        ".*, expected \\w+: .*(does not support|not implemented for|use forward AD|weight to be|register_meta|!this_view_meta)",
        "jvp of conjugated of BatchNorm1d",
    ),
    Excuse(
        "PyTorch notices the mixed dtypes of batch norm too late",
        "mixed dtypes.* of BatchNorm1d$",
        "expected RuntimeError: !needs_dynamic_casting",
        "mixed dtypes of overlapping of BatchNorm1d",
    ),
    Excuse(
        "the operator without kernel is called by another name",
        "meta.* of masked$",
        "register_meta function for torch.nonzero",
        "checkpoint reentrant of meta of masked",
    ),
    Excuse(
        "PyTorch has no LSTM in bfloat16 on all processors",
        "autocast.* of LSTM$",
        "could not create a primitive",
        "mixed dtypes of autocast of LSTM",
    ),
    Excuse(
        "PyTorch's batching fails in its own words, or for the lack of a rule",
        "vmap",
        "expected (MemoryError|RuntimeError: (The expanded size|expand\\(|Batching rule|maybe_level|Either your tensor))",
        "vmap of another thread of BatchNorm1d",
    ),
    Excuse(
        "files with classes that nobody has allowed are refused in other words",
        "(pickled of subclass|subclass of pickled)",
        "raised UnpicklingError: Weights only load failed",
        "subclass of pickled of mul",
    ),
    Excuse(
        "PyTorch has no second derivative of attention, and says so first",
        "of attention$",
        "^raised RuntimeError: one of the variables.*expected RuntimeError: derivative for aten::",
        "results changed in place of vjp of attention",
    ),
    Excuse(
        "PyTorch has no forward mode of attention, and says so first",
        f"{FORWARD}.* of attention$",
        "^raised CheckpointError.*expected NotImplementedError: Trying to use forward AD",
        "jvp of checkpoint of attention",
    ),
    # not yet supported by adjoint
    Excuse(
        "`make_dual` of a subclass gives a plain tensor",
        "(subclass.*dual numbers|dual numbers.*subclass)",
        "kind Tensor, expected Tagged",
        "dual numbers of subclass of LSTM",
    ),
    Excuse(
        "recurrent layers of a subclass give plain tensors",
        "subclass.* of LSTM$",
        "kind Tensor, expected Tagged",
        "second backward of subclass of LSTM",
    ),
    Excuse(
        "tensors made in inference mode within a transform count as captured when they are changed",
        f"{DIFFERENTIATED} of inference mode",
        "^raised RuntimeError: During a grad",
        "jvp of inference mode of filled buffer",
    ),
    Excuse(
        "the error names the operation of the result; PyTorch names a node or a layout that it made inside",
        "results changed in place",
        "^raised RuntimeError: (one of the variables .* inplace operation: ).*, expected RuntimeError: \\1",
        "jvp of results changed in place of cumprod",
    ),
    Excuse(
        "PyTorch's meta functions write dtypes in another way",
        "^meta of mixed dtypes",
        "of type Double and B of type Float instead, expected .*of type torch.float64 and B of type torch.float32",
        "meta of mixed dtypes of solve",
    ),
    Excuse(
        "the error names the library",
        "^vmap",
        "is being called inside adjoint",
        "vmap of vjp of mul_ of a view",
    ),
]


def excuse(cell: Cell, difference: str) -> Excuse | None:
    """Return the reason why the difference is accepted, or None."""
    return next((each for each in EXCUSES if _excuses(each, cell, difference)), None)


def _excuses(each: Excuse, cell: Cell, difference: str) -> bool:
    if not re.search(each.cell, str(cell)) or not re.search(each.difference, difference):
        return False
    return each.confirmed is None or each.confirmed(cell)
