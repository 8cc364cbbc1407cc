"""Reductions: one declaration for all forms in which a function reduces a tensor.

    @reduction(kernels.sum, whole=Kernel(kernels.sum, small=kernels.total), tangent="linear", out_decides=True)
    class sum:
        '''The sum over `dim` (one or several), or of all elements.'''
        def forward(self: Array, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None): ...
        def grad_self(grad, self_shape, dim, keepdim, xp): return xp.spread(grad, self_shape, dim, keepdim)
        def grad_all(grad, self_shape, xp): return xp.expand(grad, self_shape)

`forward` declares the parameters of the function: one dimension (`dim: Int`) or several (`Dims`), `keepdim`, `dtype`,
or a `correction`. The signature and the options determine the operators, the public function that chooses among them,
and the forms that errors list. If a function reduces all elements, PyTorch records a separate node. `whole` is the
kernel of that operator, and `grad_all` is its formula.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._runtime.tracebacks import shorten
from ...dispatch.annotations import Array, Dtype
from ...dispatch.arguments import MISSING, invalid_arguments
from ...dispatch.declaration import OPERATORS
from ...dispatch.decorators import operator, public, tensors
from ...dispatch.numpy_names import with_numpy_names
from ...dispatch.signatures import FORMS, form
from ...tensor import Tensor
from .overloads import identify


def reduction(
    kernel: Any,
    *,
    whole: Any = None,
    whole_options: dict[str, Any] | None = None,
    whole_node: int = 0,
    pairwise: str | None = None,
    fields: tuple[str, ...] = (),
    **options: Any,
) -> Callable[[type], Any]:
    """Declare a function that reduces a tensor.

    The class provides its name, its documentation, its signature and the formulas.

    Args:
        kernel: the kernel, with the parameters of `forward`.
        whole: the kernel of the operator over all elements, if it is a separate operator. True means that the single
            operator has two overloads in PyTorch, which errors list.
        whole_options: additional options of that operator (see `decorators.operator`).
        whole_node: 0 or 1, the number in the name of its node. The operator over dimensions has the other number.
        pairwise: the operator for a second tensor in place of `dim`.
        fields: the names of several results, which form a named tuple.
        options: the options of the operator over dimensions.
    """

    def declare(declaration: type) -> Any:
        name, forward = declaration.__name__, declaration.__dict__["forward"]
        if fields:
            options.update(outputs=fields, returns=options.get("function_name", name))
        if "correction" in forward.__code__.co_varnames:
            return _with_correction(kernel, declaration, options)
        if whole is None or whole is True:
            function = operator(kernel=kernel, **options)(declaration)
            if whole is True:
                FORMS[name] = lambda: _forms_of_one(function.operator)
            return function
        over = operator(kernel=kernel, **_chosen(declaration, "dim", 1 - whole_node, options))(
            _part(declaration, forward, "grad_all")
        )
        in_dtype = "dtype" in forward.__code__.co_varnames
        of_all = {
            **_chosen(declaration, "all", whole_node, {"tangent": options.get("tangent")}),
            "method": False,
            "batch": batch_over(f"{name}_dim"),
            **(whole_options or {}),
        }
        signature = _all_in_dtype if in_dtype else _all
        every = operator(kernel=whole, **of_all)(
            _part(declaration, signature, "grad_self", "nondifferentiable", grad_all="grad_self")
        )
        FORMS[name] = lambda: _forms(every.operator, over.operator, pairwise)
        if in_dtype:
            return _published(
                _choosing_in_dtype(name, every, over), declaration, True, on_arrays=kernel, methods_retried=False
            )
        return _published(_choosing(name, every, over, pairwise), declaration, True, methods_retried=False)

    return declare


def _with_correction(kernel: Any, declaration: type, options: dict[str, Any]) -> Any:
    """Return the declaration of a moment. Its function also accepts `unbiased`, for a `correction` of 1 or 0."""
    method = options.get("method", True)
    over = operator(kernel=kernel, **_chosen(declaration, "correction", 0, options))(declaration)
    FORMS[declaration.__name__] = lambda: _forms_with_correction(over.operator, method)
    return _published(_corrected(declaration.__name__, over), declaration, method)


def _chosen(declaration: type, suffix: str, number: int, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of one of several operators of a function. This operator has a separate node and no public name."""
    name = declaration.__name__
    node = f"{''.join(part.capitalize() for part in name.split('_'))}Backward{number}"
    names = {"name": f"{name}_{suffix}", "function_name": name, "node": node, "namespace": None, "method": ()}
    return {**options, **names}


def _all(self: Array) -> Any: ...


def _all_in_dtype(self: Array, *, dtype: Dtype = None) -> Any: ...


def _part(declaration: type, forward: Any, *left_out: str, **renamed: str) -> type:
    """Return the declaration of one of the operators, with this signature and without the formula of the other operator."""
    members = {
        renamed.get(name, name): value
        for name, value in vars(declaration).items()
        if name not in ("forward", *left_out, "__dict__", "__weakref__")
    }
    return type(declaration.__name__, (), {**members, "forward": staticmethod(forward)})


def _published(function: Any, declaration: type, method: Any, **options: Any) -> Any:
    identify(function, declaration.__name__, declaration.__doc__, declaration.__module__)
    return public(method=method, **options)(function)


def batch_over(name: str) -> Callable[..., Any]:
    """Return the batching rule of a reduction of all elements: the operator `name` over dimensions, with one row per example."""

    def rule(op: Any, batch: Any, value: Any, *rest: Any) -> Any:
        target = OPERATORS[name]
        dim = (1,) if target.types.get("dim") == "Dims" else 1
        return target.apply(batch.rows(value), dim, False, *rest)

    return rule


# --- forms, for errors ----------------------------------------------------------------------------------------


def _forms(of_all: Any, over: Any, pairwise: str | None) -> tuple[str, ...]:
    between = () if pairwise is None else (form(OPERATORS[pairwise]),)
    return form(of_all), *between, form(over, required=("dim",))


def _forms_of_one(op: Any) -> tuple[str, ...]:
    return form(op, left_out=("dim", "keepdim")), form(op), form(op, required=("dim",), words={"dim": "int"})


def _forms_with_correction(op: Any, out: bool) -> tuple[str, ...]:
    unbiased = (
        f"Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False{', *, Tensor out = None' * out}"
    )
    return unbiased, form(op, out=out), "Tensor input, bool unbiased = True"


# --- the functions that choose --------------------------------------------------------------------------------


def _choosing(name: str, of_all: Any, over: Any, pairwise: str | None) -> Any:
    def function(
        input: Any = MISSING, dim: Any = MISSING, keepdim: Any = MISSING, *, out: Any = None, **names: Any
    ) -> Any:
        try:
            if names:
                if pairwise is not None and (other := _second_operand(name, input, names)) is not None:
                    dim = other
                if names:
                    return with_numpy_names(function, names, input, dim, _given(dim, keepdim, names), out=out)
            if dim is MISSING:
                if keepdim is not MISSING:
                    raise invalid_arguments(name, input, keepdim=keepdim)
                if out is None:
                    return of_all(input)
                return (of_all if of_all.operator.out else over)(input, out=out)
            if pairwise is not None:
                if not isinstance(input, Tensor):
                    raise invalid_arguments(name, input, dim)
                if isinstance(dim, Tensor):
                    if keepdim is not MISSING:
                        raise invalid_arguments(name, input, dim, keepdim)
                    return getattr(tensors, pairwise)(input, dim, out=out)
            return over(input, dim, keepdim is not MISSING and keepdim, out=out)
        except Exception as error:
            shorten(error)
            raise

    return function


def _choosing_in_dtype(name: str, of_all: Any, over: Any) -> Any:
    def function(
        input: Any = MISSING,
        dim: Any = MISSING,
        keepdim: Any = MISSING,
        *,
        dtype: Any = None,
        out: Any = None,
        **names: Any,
    ) -> Any:
        try:
            if names:
                return with_numpy_names(function, names, input, dim, _given(dim, keepdim, names), dtype=dtype, out=out)
            if dim is MISSING:
                if keepdim is not MISSING:
                    raise invalid_arguments(name, input, keepdim=keepdim)
                if out is not None and not of_all.operator.out:
                    if dtype is None:
                        raise invalid_arguments(name, input, out=out)
                    raise TypeError(f'{name}() missing 1 required positional arguments: "dim"')
                keywords = {} if out is None else {"out": out}
                return of_all(input, dtype=dtype, **keywords)
            return over(input, dim, keepdim is not MISSING and keepdim, dtype=dtype, out=out)
        except Exception as error:
            shorten(error)
            raise

    return function


def _corrected(name: str, over: Any) -> Any:
    def function(
        input: Any = MISSING,
        dim: Any = MISSING,
        unbiased: Any = MISSING,
        keepdim: Any = False,
        *,
        correction: Any = MISSING,
        out: Any = None,
        **names: Any,
    ) -> Any:
        if names:
            return with_numpy_names(function, names, input, dim, unbiased, keepdim, correction=correction, out=out)
        if out is not None and not over.operator.out:
            raise invalid_arguments(name, input, dim, unbiased, out=out)
        if type(dim) is bool and unbiased is MISSING:
            dim, unbiased = MISSING, dim
        if type(dim) is list:
            dim = tuple(dim)
        if unbiased is not MISSING:
            if (
                correction is not MISSING
                or type(unbiased) is not bool
                or (dim is MISSING and not (keepdim is False and out is None))
            ):
                raise invalid_arguments(name, input, dim, unbiased)
            correction = int(unbiased)
        elif correction is MISSING:
            correction = None if dim is MISSING else 1
        keywords = {} if out is None else {"out": out}
        return over(input, None if dim is MISSING else dim, correction=correction, keepdim=keepdim, **keywords)

    return function


def _given(dim: Any, keepdim: Any, names: dict[str, Any]) -> Any:
    """Return the value of `keepdim` for the given arguments. After a `dim`, which is no second tensor, it has a default."""
    if keepdim is not MISSING or dim is MISSING or isinstance(dim, Tensor) or "keepdims" in names:
        return keepdim
    return False


def _second_operand(name: str, input: Any, names: dict[str, Any]) -> Any:
    """Remove the second operand from `names`, and return this operand, or None if it was not given by name."""
    other = names.pop("other", None) if "other" in names else names.pop("x2", None)
    if other is None or isinstance(other, Tensor):
        return other
    raise invalid_arguments(name, input, other)
