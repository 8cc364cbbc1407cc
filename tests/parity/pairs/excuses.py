"""Differences that are intended, or that PyTorch does not define, with their reasons."""

import re
from collections.abc import Callable
from typing import NamedTuple

from .cells import Cell, is_as_meant, is_derivative


def inner_is_derivative(cell: Cell) -> bool:
    """Return whether the gradients of the inner feature alone agree with central differences."""
    return is_derivative(Cell("negated", cell.inner, cell.operator))


class Excuse(NamedTuple):
    """`cell` is a pattern for the name of the cell, `difference` a pattern for the description of the difference.

    `example` is a cell that needs the excuse. `confirmed`, if given, checks that adjoint is right, by PyTorch's result for a
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
        "PyTorch's third derivatives and its derivatives in forward mode are wrong",
        f"of {MISTAKEN}",
        "^gradient",
        "inference mode of jvp of layer_norm",
        is_derivative,
    ),
    Excuse(
        "PyTorch's wrong third derivatives are results of this cell",
        f"of {DIFFERENTIATED} of {MISTAKEN}",
        "^result",
        "jvp of jvp of layer_norm",
        inner_is_derivative,
    ),
    Excuse(
        "PyTorch's wrong third derivatives are tangents in this cell",
        f"{FORWARD} of .* of {MISTAKEN}",
        "^result",
        "dual numbers of subclass of solve",
        is_as_meant,
    ),
    Excuse(
        "PyTorch's attention is wrong for expanded and overlapping rows",
        "(expanded|overlapping|large).* of attention$",
        "^result",
        "inference mode of overlapping of attention",
        is_as_meant,
    ),
    Excuse(
        "PyTorch's transforms do not apply in other threads",
        "(vjp|jvp) of another thread",
        "^(result|gradient)",
        "vjp of another thread of transpose",
        is_as_meant,
    ),
    Excuse(
        "PyTorch's autocast does not apply to operators that vmap decomposes",
        "(autocast of vmap|vmap( of the first)? of autocast)",
        "^result \\d+: dtype bfloat16, expected float32",
        "autocast of vmap of the first of attention",
        is_as_meant,
    ),
    Excuse(
        "within jvp, PyTorch's tensors do not require grad, and gradients are zeros",
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
        "PyTorch's transforms lose the class of results",
        "subclass",
        "^result \\d+: kind Tagged, expected Tensor$",
        "vjp of subclass of solve",
        is_as_meant,
    ),
    Excuse(
        "PyTorch's tangents share memory if the elements of the primal share memory",
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
        "PyTorch sums the products of large convolutions in bfloat16, but not on all processors",
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
        "nested batches draw random numbers in another order",
        "vmap.* of vmap.* of dropout$",
        "^(result|gradient)",
        "vmap of the first of vmap of dropout",
    ),
    Excuse(
        "if strides are equal, dimensions have another order, in which random numbers are drawn",
        "overlapping.* of dropout$",
        "^(result|gradient)",
        "overlapping of vjp of dropout",
    ),
    Excuse(
        "a hook that is registered within a transform also runs in the outer backward",
        f"({DIFFERENTIATED} of hooks|hooks of {DIFFERENTIATED})",
        "^(gradient|result)",
        "jvp of hooks of layer_norm",
    ),
    Excuse(
        "tensors within vmap do not require grad, so no hook is registered",
        "vmap.* of hooks of LSTM$",
        "^gradient.*Batching rule not implemented",
        "vmap of the first of hooks of LSTM",
    ),
    Excuse(
        "no_grad disables reverse mode, which the meaning uses, but not forward mode",
        f"^{FORWARD} of (no grad|inference mode)",
        "^(result|gradient).*by its meaning",
        "dual numbers of no grad of softmax",
    ),
    Excuse(
        "inference mode does not disable forward mode here",
        "^jvp of inference mode",
        "^result",
        "jvp of inference mode of sum",
    ),
    Excuse(
        "a reentrant checkpoint runs without recording, so the meaning has no gradients",
        "^checkpoint reentrant of (second backward|vjp) of attention$",
        "^(result|gradient).*by its meaning",
        "checkpoint reentrant of second backward of attention",
    ),
    Excuse(
        "the two biases of a layer have the same tensor as gradient",
        "results changed in place of .* of LSTM$",
        "^result",
        "results changed in place of second backward of LSTM",
    ),
    Excuse(
        "a sparse gradient becomes dense if an operator has no sparse kernel",
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
        "rows of results of PyTorch's attention share memory if the rows of queries share memory",
        "(overlapping of results changed|results changed in place of overlapping).* of attention$",
        "^result",
        "overlapping of results changed in place of attention",
    ),
    # errors with other messages
    Excuse(
        "the errors name different reasons to refuse a sparse gradient",
        "sparse gradients",
        "^raised (Not|Runtime).*expected NotImplementedError: Could not run",
        "sparse gradients of results of results changed in place of cumprod",
    ),
    Excuse(
        "PyTorch checks dtypes in kernels, which do not run for meta tensors and batches",
        "(mixed dtypes|autocast|conjugated).*(meta|vmap)|(meta|vmap).*(mixed dtypes|autocast|conjugated)",
        "^raised RuntimeError: (expected (scalar type|m1 and m2)|self and mat2 must|Expected (object of scalar|both inputs))",
        "vmap of mixed dtypes of linear",
    ),
    Excuse(
        "the errors name different reasons to refuse complex numbers",
        "conjugated",
        "^raised \\w+: .*(complex|not implemented for 'Complex|Complex(Double|Float) but|Expected tensor for argument #1)"
        ".*, expected \\w+: .*(does not support|not implemented for|use forward AD|weight to be|register_meta|!this_view_meta)",
        "jvp of conjugated of BatchNorm1d",
    ),
    Excuse(
        "PyTorch detects the mixed dtypes of batch norm too late",
        "mixed dtypes.* of BatchNorm1d$",
        "expected RuntimeError: !needs_dynamic_casting",
        "mixed dtypes of overlapping of BatchNorm1d",
    ),
    Excuse(
        "the errors name different operators without kernel",
        "meta.* of masked$",
        "register_meta function for torch.nonzero",
        "checkpoint reentrant of meta of masked",
    ),
    Excuse(
        "oneDNN computes LSTMs in bfloat16, or raises an error on other processors; PyTorch's own cells give float32, as here",
        "autocast.* of LSTM$",
        "could not create a primitive|^result \\d: dtype float32, expected bfloat16",
        "mixed dtypes of autocast of LSTM",
    ),
    Excuse(
        "PyTorch's batching raises other errors, or lacks a rule",
        "vmap",
        "expected (MemoryError|RuntimeError: (The expanded size|expand\\(|Batching rule|maybe_level|Either your tensor))",
        "vmap of another thread of BatchNorm1d",
    ),
    Excuse(
        "the errors for files with classes that are not allowed differ",
        "(pickled of subclass|subclass of pickled)",
        "raised UnpicklingError: Weights only load failed",
        "subclass of pickled of mul",
    ),
    Excuse(
        "PyTorch first raises the error that attention has no second derivative",
        "of attention$",
        "^raised RuntimeError: one of the variables.*expected RuntimeError: derivative for aten::",
        "results changed in place of vjp of attention",
    ),
    Excuse(
        "PyTorch first raises the error that attention has no forward mode",
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
        "tensors that inference mode creates within a transform count as captured, so changes of them are refused",
        f"{DIFFERENTIATED} of inference mode",
        "^raised RuntimeError: During a grad",
        "jvp of inference mode of filled buffer",
    ),
    Excuse(
        "the error names the operation of the result; PyTorch's error names an internal node or layout",
        "results changed in place",
        "^raised RuntimeError: (one of the variables .* inplace operation: ).*, expected RuntimeError: \\1",
        "jvp of results changed in place of cumprod",
    ),
    Excuse(
        "PyTorch's meta functions write dtypes in another way",
        "^(meta of mixed dtypes|mixed dtypes of meta)",
        "of type Double and B of type Float instead, expected .*of type torch.float64 and B of type torch.float32",
        "meta of mixed dtypes of solve",
    ),
    Excuse(
        "the error contains the name of the library",
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
