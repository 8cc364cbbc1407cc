"""The declaration of an operator is one class. All functions and nodes of the operator are generated from it.

    @operator(inplace=True, dunder="__mul__")
    class mul:
        '''Elementwise product of `self` and `other`, broadcast together.'''
        def forward(self: Array, other: Array): return numpy.multiply(self, other)
        def grad_self(grad, other): return grad * other.conj()
        def grad_other(grad, self): return grad * self.conj()

`forward` computes on arrays (without it, the operator takes one tensor, `self`). The parameters of `forward` annotated
`Array` (or `Array | None`, or `Arrays` for a sequence) are the tensors. Other parameters are passed unchanged.
`grad_<input>` is the vector-Jacobian product for one input. The names of its parameters determine what the node saves:

    grad             the gradient of the output (`grads`, a list, if there are several)
    <input>          that input; `<input>_shape`, `<input>_dtype`, `<input>_strides`, `<input>_geometry`: only that
    <parameter>      the value of a parameter that is not a tensor
    result           the output (`<name>` of one of several `outputs`)
    xp               the namespace of operators to compute with: on arrays (`kernels`) in an ordinary backward, on
                     tensors under `create_graph=True`, so that one formula serves both

`large_grad_<input>` is an alternative formula that is faster for large gradients. It has the same parameters, and runs
on arrays.

An operator that is one overload of a function specifies the function's name as `function_name`. Other parameters may be
annotated with the type (`signatures.TYPE_WORDS`) that PyTorch requires, such as `dim: Int`. Arguments of other types
are rejected with PyTorch's message. `lists` names the saved values that are lists of tensors. Each of these tensors
passes through saved-tensor hooks, and backward releases it. `constants` are the inputs that must not require grad, each
with the function name for the error. `saved_display` defines the values of `node._saved_<name>` as functions of the
node, if they differ from the saved values. `check_out(input, out)` may refuse an `out` that determines the dtype. An
attribute that follows from the declaration may be set afterwards, as in `dropout.operator.random = True`. The attribute
`aten_gradients` names PyTorch's operators for the gradients (see the module `aten_gradients`).

`batch`, as a method or an option, is the batching rule for `vmap`: a function `batch(op, batch, *args)`, or the name of
a mechanism (`transforms.batching.MECHANISMS`). By default it follows from the rest of the declaration.

Gradients that are not needed are not computed, and values that only they need are not saved. `grad_inputs` replaces the
formulas of single inputs, and returns the gradients that its parameter `needs` lists.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from .._runtime.first_use import unwatched
from ..codegen.kernel import Kernel, as_kernel
from ..tape.node import Node
from . import registry
from .annotations import Array
from .registry import Declared
from .return_types import return_type

TENSORS = ARRAY, OPTIONAL_ARRAY, ARRAYS = "Array", "Array | None", "Arrays"
VALUE = ""

OPERATORS: Declared = Declared(registry.operators())
"""Every declared operator, by name. The test matrix iterates over it."""

_RESERVED = ("grad", "grads", "xp", "needs")


_OPTIONS = frozenset(
    """
    aten aten_name batch check deprecated_order elementwise function_name inplace kernel method name narrow node numbers out
    outputs overloaded promote returns same_out shape_of_elements sparse tangent view vmap_name
    """.split()
)
"""The options of a declaration besides its class."""


class Operator:
    """A declared operator: its signature, its array function, its formulas, and the saved values that the formulas need.

    Options for the computation:
        `kernel`: the `codegen.kernel.Kernel` of the operator, or an array function as its only form; by default `forward`.
        `promote`: "common" converts operands to their common dtype; "float" also converts integers to the default dtype.
        `numbers`: numbers may replace tensors (by default with promotion). "first": even the first. "wide": numbers,
        and tensors without dimensions, are not rounded to half types.
        `elementwise`: results have the memory order of the operands, or of the named operands (by default with promotion).
        `outputs`, `returns`: the names of several results, and of their tuple. `view`: results are views of the first tensor.
        `check`: a function that raises errors for wrong arguments. `overloaded`: PyTorch's error for wrong operands is
        "invalid combination of arguments". `shape_of_elements`: shapes of results depend on elements ("masks": only on
        elements of masks). `sparse`: the kernel for sparse layouts (see `sparse_layouts`); "result" if it makes sparse
        tensors from dense ones. `narrow`: how it accepts dtypes that kernels do not compute with (see `narrow`).

    Options for writing results:
        `inplace`: it has an in-place variant. "disjoint": no other operand may share memory with the changed tensor, or with
        `out`. "uniform": all elements become equal, so they may share memory. "copies": the second tensor, of any device, dtype
        and memory, replaces the first. "resizes": the first tensor gets the shape of the result.
        `out`: it accepts `out=` (by default unless it is a view). "disjoint": `out` may not share memory with the inputs;
        "disjoint input": with the first input.
        "underived": it is recorded without a derivative. "decides": the dtype of `out` is the default of `dtype`.
        `same_out`: the error if the dtype of `out=` differs from the dtype of the result.

    Options for derivatives and batching:
        `node`: the name of its nodes, and of the nodes of its in-place variant if it differs, as by default for views:
        "TBackward0, TBackward1".
        `tangent`: the rule of forward mode (see `transforms.tangents`). `batch`: the rule of `vmap`.

    Options for calls:
        `name`, `function_name`: the names of the operator and of its function. `method`: whether it is a method.
        `deprecated_order`: keywords whose numbers may precede the tensors. `aten_name`, `vmap_name`: its names in messages
        ("" if messages show the shapes). `aten`: the name of its overload. If the names for its in-place variant and
        for a number as last operand differ, they follow: "Tensor, Tensor, Scalar".
    """

    def __init__(self, declaration: type, options: dict[str, Any], caller: int) -> None:
        """`caller`: the number of frames between the user's call and the function."""
        if not _OPTIONS.issuperset(options):
            raise TypeError(f"a declaration has no option {min(options.keys() - _OPTIONS)!r}")
        self.declaration = declaration
        self.name: str = options.get("name") or declaration.__name__
        self.function_name: str = options.get("function_name") or self.name
        self.doc = declaration.__doc__
        self.promote: str | None = options.get("promote")
        self.view: bool = options.get("view", False)
        inplace = options.get("inplace", False)
        self.inplace: bool = bool(inplace)
        self.no_overlap, self.uniform_write = inplace == "disjoint", inplace == "uniform"
        self.copies, self.resizes = inplace == "copies", inplace == "resizes"
        out = options.get("out", not self.view)
        self.out: bool = bool(out)
        self.out_no_overlap = out in ("disjoint", "disjoint input")
        self.out_reuses = out == "disjoint input"
        numbers = options.get("numbers", self.promote is not None)
        self.numbers: bool = bool(numbers)
        words = numbers.split() if isinstance(numbers, str) else ()
        self.number_first, self.wide_numbers = "first" in words, "wide" in words
        self.method: bool = options.get("method", True)
        self.caller = caller
        self.same_out: bool | str | Callable[..., None] | None = options.get("same_out")
        self.out_decides = out == "decides"
        self.check_out: Callable[..., None] | None = _plain(vars(declaration).get("check_out"))
        self.overloaded: bool = options.get("overloaded", False)
        self.outputs: tuple[str, ...] = tuple(options.get("outputs", ()))
        self.deprecated_order: tuple[str, ...] = tuple(options.get("deprecated_order", ()))
        self.check: Callable[..., Any] | None = options.get("check")
        self.forward: Callable[..., Any] = _plain(vars(declaration).get("forward", _of_one))
        words = options.get("sparse", "").split()
        self.sparse_result = "result" in words
        self.sparse: str | None = next((word for word in words if word != "result"), None)
        self.narrow: str | None = options.get("narrow")
        self.kernel: Kernel = as_kernel(options.get("kernel") or self.forward)
        self.elementwise: bool | tuple[str, ...] | None = options.get("elementwise")
        self.tangent: str | None = options.get("tangent") or ("linear" if self.view else None)
        node = "".join(map(str.capitalize, self.name.split("_"))) + "Backward"
        nodes: str = options.get("node") or (f"{node}0, {node}1" if self.view and inplace else f"{node}0")
        self.node_name = nodes.partition(", ")[0]
        self.out_underived = out == "underived" or self.node_name == "NotImplemented"
        self.inplace_node_name = nodes.rpartition(", ")[2]
        self.batch: str | Callable[..., Any] | None = options.get("batch") or _plain(vars(declaration).get("batch"))
        self.aten_name: str = options.get("aten_name") or self.function_name
        self.aten, *others = options.get("aten", "default").split(", ")
        self.aten_inplace = others[0] if others else self.aten.removeprefix("default")
        self.aten_number = others[-1] if others else self.aten_inplace
        self.shape_of_elements: bool | str = options.get("shape_of_elements", False)
        self.vmap_name: str | None = options.get("vmap_name")
        returns = options.get("returns")
        self.returns: Any = return_type(returns, *self.outputs) if returns else tuple
        self.plans: dict[Any, Any] = {}
        self.frequent: dict[Any, Any] = {}

    @unwatched
    def __getattr__(self, name: str) -> Any:
        """Evaluate signature and formulas on first access, because an import declares hundreds of operators and uses few."""
        if "saved_display" not in self.__dict__:
            read = object.__new__(Operator)  # in a separate object: other threads see either all or nothing
            read.__dict__.update(self.__dict__)
            read._read_signature()
            read._read_formulas()
            self.__dict__.update({name: value for name, value in read.__dict__.items() if name not in self.__dict__})
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"an operator has no attribute {name!r}") from None

    @functools.cached_property
    def apply(self) -> Callable[..., Any]:
        """The function, with all arguments by position, in the order of the declaration."""
        if not self.keyword_only:
            return self.function
        count = len(self.names) - len(self.keyword_only)
        return lambda *args: self.function(*args[:count], **dict(zip(self.names[count:], args[count:], strict=True)))

    code: Any
    function: Callable[..., Any]
    inplace_function: Callable[..., Any]
    """The operator's generated code (`generated.Code`) and functions, set by `decorators.operator`."""

    @property
    def node_class(self) -> type[Node]:
        """The class of this operator's nodes, which is created on first use."""
        return self.code.node_classes[self.node_name]

    @property
    def inplace_node_class(self) -> type[Node]:
        """Return the class of the nodes of the in-place variant. Nodes of some operators have another name in this variant."""
        return self.code.node_classes[self.inplace_node_name]

    def _read_signature(self) -> None:
        code = self.forward.__code__
        self.names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        self.keyword_only = frozenset(self.names[code.co_argcount :])
        values = self.forward.__defaults__ or ()
        positional = self.names[: code.co_argcount]
        self.defaults = dict(zip(positional[len(positional) - len(values) :], values, strict=True))
        self.defaults.update(self.forward.__kwdefaults__ or {})
        annotations = self.forward.__annotations__
        flags = {name: "Bool" for name, value in self.defaults.items() if type(value) is bool}
        kinds = {name: annotations.get(name, flags.get(name, VALUE)) for name in self.names}
        self.draws = "generator" in self.names  # the operator draws random numbers
        self.random = self.draws
        self.types = {name: kind for name, kind in kinds.items() if kind not in (*TENSORS, VALUE)}
        self.typed = tuple((position, name) for position, name in enumerate(self.names) if name in self.types)
        self.kinds = {name: kind if kind in TENSORS else VALUE for name, kind in kinds.items()}
        self.tensor_positions = tuple([k for k, name in enumerate(self.names) if self.kinds[name] != VALUE])
        self.tensors = [name for name in self.names if self.kinds[name] in (ARRAY, OPTIONAL_ARRAY)]
        self.sequence = next((name for name in self.names if self.kinds[name] == ARRAYS), None)
        elementwise = self.elementwise
        if elementwise is None:
            elementwise = self.promote is not None and self.sequence is None
        operands = tuple(self.tensors) if elementwise is True else elementwise or ()
        self.operands: tuple[str, ...] = operands if len(operands) > 1 else ()
        follows = bool(operands) or (
            self.elementwise is not False
            and self.tangent == "elementwise"
            and not getattr(self.kernel.expression, "contiguous", False)
        )
        self.operand: str | None = self.tensors[0] if follows and len(self.tensors) == 1 and not self.view else None

    def _read_formulas(self) -> None:
        members = self.declaration.__dict__
        self.joint: Callable[..., Any] | None = _plain(members.get("grad_inputs"))
        self.formulas = {name: _plain(members[f"grad_{name}"]) for name in self.names if f"grad_{name}" in members}
        self.large_formulas = {
            name: _plain(members[f"large_grad_{name}"]) for name in self.formulas if f"large_grad_{name}" in members
        }
        if self.joint is not None:
            wanted = _wanted(self.joint)
            default = self.tensors if self.sequence is None else [self.sequence]
            self.differentiable = list(members.get("differentiable", default))
            self.needs_of = dict.fromkeys(self.differentiable, wanted)
        else:
            self.differentiable = list(self.formulas)
            self.needs_of = {name: _wanted(formula) for name, formula in self.formulas.items()}
        self.differentiable_positions = tuple(map(self.names.index, self.differentiable))
        formulas = [*self.formulas.values(), *([self.joint] if self.joint is not None else [])]
        self.several = bool(self.outputs) or any("grads" in parameters_of(formula) for formula in formulas)
        self.many = self.several and not self.outputs
        result_names = self.outputs or ("result",)
        self.saved: dict[str, list[str]] = {}
        for name, wanted in self.needs_of.items():
            for item in wanted:
                self.saved.setdefault(item, []).append(name)
        self.saved_results = [item for item in self.saved if item in result_names]
        self.saved_inputs = sorted(item for item in self.saved if item in self.kinds and self.kinds[item] != VALUE)
        others = (*self.saved_results, *self.saved_inputs)
        self.saved_values = [item for item in self.saved if item not in others]
        self.aten_gradients: str | dict[str, str] | None = members.get("aten_gradients")
        self.lists = tuple(name for name in members.get("lists", ()) if name in self.saved_values)
        self.nondifferentiable_outputs = tuple(members.get("nondifferentiable", ()))
        self.constants: dict[str, str] = members.get("constants", {})
        last = (item not in self.nondifferentiable_outputs for item in reversed(self.outputs))
        self.grad_count = len(self.outputs) - next((k for k, found in enumerate(last) if found), 0) or None
        saved_display: dict[str, Callable[..., Any] | None] = dict(members.get("saved_display", {}))
        for name in self.saved_values:
            if self.types.get(name) == "Dims":
                saved_display.setdefault(name, functools.partial(_all_dims, f"saved_{name}"))
        self.saved_display = saved_display


def _all_dims(slot: str, node: Node) -> Any:
    """Return dimensions as PyTorch shows them: always as a tuple."""
    dims = getattr(node, slot)
    return dims if dims is None or isinstance(dims, (tuple, list)) else (operator.index(dims),)


def _of_one(self: Array) -> Any: ...


def _plain(function: Any) -> Any:
    return function.__func__ if isinstance(function, staticmethod) else function


def _wanted(formula: Callable[..., Any]) -> list[str]:
    return [name for name in parameters_of(formula) if name not in _RESERVED]


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the parameter names of a plain function. `inspect.signature` would be too slow at import."""
    return function.__code__.co_varnames[: function.__code__.co_argcount]
