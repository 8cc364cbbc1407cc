"""`torch.library.opcheck`: tests of an operator that a program has defined, with given arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint import autograd, testing
from adjoint.tensor import Tensor
from adjoint.transforms import tree

from .custom_ops import CustomOpDef, _tensors


class OpCheckError(Exception):
    """A test of `opcheck` has failed."""


def _copied(values: Any) -> Any:
    """Return the arguments with a copy of each tensor."""
    return tree.tree_map(
        lambda each: each.detach().clone().requires_grad_(each.requires_grad) if isinstance(each, Tensor) else each,
        values,
    )


def _called(op: Callable[..., Any], given: Any) -> Any:
    return op(*given[0], **given[1])


def _schema(op: CustomOpDef, given: Any) -> None:
    """Raise an error if the operator changes an argument that its schema does not mark as changed."""
    before, after = _copied(given), _copied(given)
    _called(op, after)
    for place, argument in enumerate(op._signature.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            old, new = (
                _tensors(positional[place] if place < len(positional) else named.get(argument.name))
                for positional, named in (before, after)
            )
            try:
                testing.assert_close(new, old, rtol=0, atol=0, equal_nan=True)
            except AssertionError:
                raise RuntimeError(f"Argument {argument.name} is not defined as mutable but was mutated") from None


def _registration(op: CustomOpDef, given: Any) -> None:
    """Accept every operator that can be called, because each records its own derivative."""
    _called(op, _copied(given))


def _faked(op: CustomOpDef, given: Any) -> Any:
    """Return the results of the function that `register_fake` registered. Raise an error if no function is registered."""
    return _called(op, tree.tree_map(lambda each: each.to("meta") if isinstance(each, Tensor) else each, given))


def _shapes(op: CustomOpDef, given: Any) -> None:
    """Raise an error if the function that `register_fake` registered returns other shapes or dtypes than the kernel."""
    real, fake = _tensors(_called(op, _copied(given))), _tensors(_faked(op, given))
    for what in ("shape", "dtype"):
        for first, second in zip(
            (getattr(each, what) for each in real), (getattr(each, what) for each in fake), strict=True
        ):
            if first != second:
                raise RuntimeError(
                    f"When comparing the output of {op._opoverload} on FakeTensor and concrete Tensors, found mismatched tensor "
                    f"metadata: {what.capitalize()}s {first} and {second} are not equal!"
                )


def _differentiated(op: CustomOpDef, given: Any) -> None:
    """Raise an error if a gradient cannot be computed, or if `register_fake` does not give the shapes of the results."""
    copies = _copied(given)
    outputs = [each.sum() for each in _tensors(_called(op, copies)) if each.requires_grad]
    inputs = [each for each in _tensors(copies) if each.requires_grad]
    if outputs and inputs:
        autograd.grad(outputs, inputs, allow_unused=True)
    _faked(op, given)


TESTS: dict[str, Callable[..., None]] = {
    "test_schema": _schema,
    "test_autograd_registration": _registration,
    "test_faketensor": _shapes,
    "test_aot_dispatch_static": _differentiated,
    "test_aot_dispatch_dynamic": _differentiated,
}
DEFAULT: tuple[str, ...] = tuple(name for name in TESTS if name != "test_aot_dispatch_static")


def run(op: CustomOpDef, args: Any, kwargs: Any, test_utils: Any, raise_exception: bool) -> dict[str, Any]:
    """Run the named tests, and return "SUCCESS" or the error for each of them."""
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(names) <= set(TESTS):
        raise ValueError(
            f"opcheck(op, ..., test_utils={names}), expected test_utils to be subset of {tuple(TESTS)} but it was not"
        )
    results: dict[str, Any] = {}
    for name in names:
        results[name] = "SUCCESS"
        try:
            TESTS[name](op, (tuple(args), dict(kwargs or {})))
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            results[name] = error
    return results
