"""Operators that programs define: their kernels, derivatives and batching rules, and their names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from adjoint._runtime.first_use import import_late
from adjoint.aten.overloads import OpOverload, OpOverloadPacket
from adjoint.aten.schemas import FunctionSchema
from adjoint.autograd.function import Function
from adjoint.autograd.grad_mode import no_grad
from adjoint.autograd.graph import increment_version
from adjoint.device import device
from adjoint.dispatch.decorators import tensors as operators
from adjoint.dtypes import float64
from adjoint.kernels.memory.storage import owner
from adjoint.tape import modes
from adjoint.tape.torch_dispatch import DISPATCHING
from adjoint.tensor import Tensor
from adjoint.torch_names._library.fallback import without_derivative
from adjoint.torch_names._library.schema_arguments import Arguments, bind
from adjoint.transforms import tree

REGISTERED: dict[str, Packet] = {}
"""The operators that programs have defined, by full name."""

KERNELS: dict[str, dict[str, Callable[..., Any]]] = {}
"""The kernels, by full name and overload, and by dispatch key. A kernel may be registered before its operator."""

_OURS = ("CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
"""The keys of kernels that can run here, in order of preference."""


class Packet(OpOverloadPacket):
    """A defined operator with its overloads, such as `torch.ops.shop.scaled`."""

    def __init__(self, namespace: str, name: str) -> None:
        super().__init__(name)
        self._namespace, self.__module__ = namespace, f"torch._ops.{namespace}"
        self._definitions: dict[str, CustomOpDef] = {}

    def __getattr__(self, overload: str) -> Any:
        if overload in (definitions := vars(self).get("_definitions", {})):
            return definitions[overload]._opoverload
        if overload.startswith("__"):
            raise AttributeError(overload)
        raise AttributeError(f"The underlying op of '{self}' has no overload name '{overload}'")

    def overloads(self) -> list[str]:
        """Return the names of the overloads."""
        return list(self._definitions)

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def _applied(self, /, *args: Any, **names: Any) -> Any:
        """Apply the overload that accepts these arguments, or raise an error if no overload does."""
        found = list(self._definitions.values())
        if len(found) == 1:
            return found[0]._opoverload._applied(*args, **names)
        errors = []
        for definition in found:
            try:
                arguments = bind(definition._signature, args, names)
            except RuntimeError as error:
                errors.append(str(error))
            else:
                return definition.apply(arguments)
        raise RuntimeError(
            "Overloaded torch operator invoked from Python failed to match any schema:\n" + "\n\n".join(errors)
        )


class Overload(OpOverload):
    """One overload of a defined operator, such as `torch.ops.shop.scaled.default`."""

    def __init__(self, definition: CustomOpDef, packet: Packet, name: str) -> None:
        super().__init__(packet, name)
        self._definition = definition

    @property
    def _schema(self) -> FunctionSchema:
        return self._definition._signature

    @property
    def namespace(self) -> str:
        """The namespace of the operator."""
        return self._definition._namespace

    @property
    def tags(self) -> list[Any]:
        """The tags from the definition."""
        return self._definition._tags

    _defined_in_python = True

    def name(self) -> str:
        """The name, such as `shop::scaled`. `default` is omitted."""
        ending = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self._definition._qualname}{ending}"

    def __str__(self) -> str:
        return f"{self._packet}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._packet}', overload='{self._overloadname}')>"

    def _applied(self, /, *args: Any, **names: Any) -> Any:
        return self._definition.apply(bind(self._schema, args, names))


@dataclass(frozen=True, slots=True)
class Form:
    """The grouping of the flat arguments of a call. `given` and `defaults` have the same meaning as in `Arguments`."""

    structure: tree.TreeSpec
    given: int
    defaults: frozenset[str]

    def nested(self, leaves: Iterable[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return values for the flat arguments, nested like these arguments in the positional and keyword arguments."""
        positional, keywords = tree.tree_unflatten(list(leaves), self.structure)
        return positional, keywords

    def arguments(self, leaves: Iterable[Any]) -> Arguments:
        """Return the arguments of the call."""
        positional, keywords = self.nested(leaves)
        return Arguments(list(positional), keywords, self.given, self.defaults)

    def flat_gradients(self, found: Any) -> list[Any]:
        """Return the gradients that a formula returns, nested like the arguments, one for each flat argument."""
        found = found if isinstance(found, tuple) else (found,)
        positional = self.structure.child(0).children()
        if not all(each.is_leaf() for each in positional):
            wanted, got = positional[: self.given], tree.tree_structure(found)
            if got.type is not tuple or got.children() != wanted:
                raise RuntimeError(
                    "Expected the return from backward to be of the same structure as the inputs. Got: "
                    f"{got} (return from backward), {wanted} (inputs)"
                )
            found = tuple(tree.tree_leaves(found))
        count = self.structure.num_leaves
        return [*found, *(None,) * (count - len(found))][:count]


class CustomOpDef:
    """An operator that a program has defined. It can be called, and its derivative and batching rule can be registered.

    `schema`: the signature, such as `(Tensor x, float factor) -> Tensor`. `is_bare`: whether the operator was defined
    only by its schema. Until such an operator has a derivative, autograd records the operations of its kernel. Other
    operators must not return their arguments or share memory with them. Autograd marks the arguments that such
    operators change.
    """

    def __init__(self, namespace: str, name: str, schema: str, is_bare: bool = True, overload: str = "default") -> None:
        self._namespace, self._name, self._is_bare = namespace, name, is_bare
        self._qualname = f"{namespace}::{name}"
        ending = "" if overload == "default" else f".{overload}"
        self._schema = schema
        self._signature = FunctionSchema(f"{name}{ending}{schema}", namespace)
        if not is_bare and any(
            each.kwarg_only and each.type.startswith("Tensor") for each in self._signature.arguments
        ):
            raise NotImplementedError(
                "custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: "
                f"{str(self._signature).removeprefix(f'{namespace}::')}"
            )
        self._returns_list = [each.type for each in self._signature.returns] == ["Tensor[]"]
        self._kernels = KERNELS.setdefault(f"{self._qualname}{ending}", {})
        self._disabled: set[str] = set()
        self._fake: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        self._vmap: Callable[..., Any] | None = None
        self._function: type[Function] | None = None
        self._first: Callable[..., Any] | None = None
        self._tags: list[Any] = []
        self._autocast: Any = None
        packet = REGISTERED.setdefault(self._qualname, Packet(namespace, name))
        self._opoverload = Overload(self, packet, overload)
        packet._definitions[overload] = self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    # --- what belongs to the operator -----------------------------------------------------------------------------

    def register_kernel(self, device_types: Any, func: Callable[..., Any] | None = None, /) -> Any:
        """Register the function that computes on these devices. Without `func`, return a decorator."""
        kinds = [device_types] if isinstance(device_types, str) or device_types is None else device_types

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for kind in kinds:
                if kind is not None:
                    device(kind)  # raises an error for invalid device types
                self._kernels["CPU" if kind in (None, "cpu") else str(kind)] = function
            return function

        return register if func is None else register(func)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A context that computes with the kernel of a device, or with the function that defined the operator."""
        before = set(self._disabled)
        key = "CPU" if device_type == "cpu" else device_type
        (self._disabled.discard if enabled else self._disabled.add)(key)
        try:
            yield
        finally:
            self._disabled = before

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Register the function that computes the shapes of results, from tensors without elements on the device "meta"."""
        self._fake = fn
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Register the derivative.

        `setup_context(ctx, inputs, output)` saves values, and `backward(ctx, *grads)` returns gradients.

        Raises:
            RuntimeError: if the operator changes its arguments, or if its results are views of its arguments.
        """
        if any(each.alias_info is not None for each in (*self._signature.arguments, *self._signature.returns)):
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema {self._signature}. Please "
                "create a functional operator and register an autograd formula for that."
            )
        self._backward, self._setup_context, self._function = backward, setup_context, None

    def register_vmap(self, func: Callable[..., Any] | None = None, /) -> Any:
        """Register the batching rule `func(info, in_dims, *args)`, which returns the result and its batch dimension."""
        if func is None:
            return self.register_vmap
        self._vmap, self._function = func, None
        return func

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None, /) -> Any:
        """Accept a rule for a dispatch mode. The rule is never called."""
        return fn if fn is not None else lambda function: function

    def register_autocast(self, device_type: str, cast_inputs: Any, /) -> None:
        """Register the dtype to which autocast converts the floating-point inputs. Only the device type "cpu" has an effect."""
        if device_type == "cpu":
            self._autocast = cast_inputs

    # --- calls ----------------------------------------------------------------------------------------------------

    def kernel(self) -> Callable[..., Any]:
        """Return the function that computes."""
        for key in _OURS:
            if key in self._kernels and key not in self._disabled:
                return self._kernels[key]
        if self._first is not None:
            return self._first
        raise NotImplementedError(
            f"Could not run '{self._qualname}' with arguments from the 'CPU' backend. This could be because the operator doesn't "
            "exist for this backend: it has no implementation for it."
        )

    def __call__(self, *args: Any, **names: Any) -> Any:
        """Apply the operator.

        Raises:
            RuntimeError: if the arguments do not fit the schema.
        """
        return self._opoverload(*args, **names)

    def apply(self, arguments: Arguments) -> Any:
        """Apply the operator to arguments that are known to fit."""
        if self._autocast is not None and modes.STATE.autocast is not None:
            with import_late("adjoint").autocast("cpu", enabled=False):
                return self.apply(self._cast(arguments))
        positional, keywords = arguments.for_kernel()
        autograd = self._kernels.get("Autograd")
        if autograd is not None:
            return autograd(*positional, **keywords)
        if any(tensor.is_meta for tensor in _tensors((positional, keywords))):
            return self._called(self._on_meta(), positional, keywords)
        if "CPU" not in self._kernels and "CompositeImplicitAutograd" in self._kernels:
            return self.kernel()(*positional, **keywords)
        if self._is_bare and self._backward is None and self._vmap is None:
            changed = [each.alias_info is not None and each.alias_info.is_write for each in self._signature.returns]
            kernel = self.kernel()
            seen: Any = lambda *args, **names: self._called(kernel, args, names)
            return without_derivative(self._qualname, seen, tuple(positional), keywords, changed)
        if self._signature.is_mutable and not self._signature.returns:
            with no_grad():
                self._computed(arguments)
            return None
        if self._function is None:
            self._function = self._as_function()
        leaves, structure = tree.tree_flatten((tuple(arguments.positional), arguments.keywords), _is_value)
        result = self._function.apply(Form(structure, arguments.given, arguments.defaults), *leaves)
        return list(result) if self._returns_list and isinstance(result, tuple) else result

    def _cast(self, arguments: Arguments) -> Arguments:
        """Return the arguments with floating-point tensors in the dtype for autocast."""

        def cast(value: Any) -> Any:
            casts = isinstance(value, Tensor) and value.is_floating_point() and value.dtype is not float64
            return value.to(self._autocast) if casts else value

        positional, keywords = tree.tree_map(cast, (list(arguments.positional), arguments.keywords))
        return Arguments(positional, keywords, arguments.given, arguments.defaults)

    def _called(self, kernel: Callable[..., Any], positional: Iterable[Any], keywords: dict[str, Any]) -> Any:
        """Return the result of the kernel, or of a mode or class that receives the operator."""
        if not (modes.FLAGS.special or DISPATCHING):
            return kernel(*positional, **keywords)
        call = import_late("adjoint.aten.torch_dispatch").overload_called
        return call(self._opoverload, kernel, tuple(positional), keywords, not self._signature.is_mutable)

    def _on_meta(self) -> Callable[..., Any]:
        found = self._fake or self._kernels.get("Meta")
        if found is not None:
            return found
        if self._is_bare:
            raise NotImplementedError(
                f"Could not run '{self._qualname}' with arguments from the 'Meta' backend. This could be because the operator "
                "doesn't exist for this backend: it has no implementation for it."
            )
        raise RuntimeError(
            f"There was no fake impl registered for {self}. This is necessary for torch.compile/export/fx tracing to work. "
            f"Please use `{getattr(self.kernel(), '__name__', self._name)}.register_fake` to add an fake impl."
        )

    def _computed(self, arguments: Arguments) -> Any:
        """Return the result of the kernel, after the checks for operators that `custom_op` defines."""
        positional, keywords = arguments.for_kernel()
        result = self._called(self.kernel(), positional, keywords)
        if self._is_bare:
            return result
        seen = [owner(tensor._array) for tensor in _tensors((positional, keywords))]
        for tensor in _tensors(result):
            memory = owner(tensor._array)
            if any(memory is each for each in seen):
                raise RuntimeError(
                    f"{self._name} (with implementation in {sys.modules[__name__]}): The output of this custom operator (1) "
                    "must not also be an input to this custom operator and (2) may not alias any inputs to this custom "
                    "operator or other returns. The most common way to trigger this error is if we have y = custom_op(x) and y "
                    "and x are the same Tensor. Please instead return a clone of the offending output tensor(s) (e.g. return "
                    "x.clone()) or refactor the custom operator to not return y."
                )
            seen.append(memory)
        values = dict(zip((each.name for each in self._signature.arguments), positional, strict=False)) | keywords
        for argument in self._signature.arguments:
            if argument.alias_info is not None and argument.alias_info.is_write:
                increment_version(_tensors(values.get(argument.name)))
        return result

    def _as_function(self) -> type[Function]:
        """Return the operator as a function with a derivative. The arguments are a `Form` and the flat arguments."""
        definition = self

        def forward(form: Form, *leaves: Any) -> Any:
            result = definition._computed(form.arguments(leaves))
            return tuple(result) if isinstance(result, list) else result

        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx._form, *leaves = inputs
            positional, keywords = ctx._form.nested(leaves)
            ctx.needs_input_grad = ctx._form.nested(ctx.needs_input_grad[1:])[0]
            if definition._setup_context is None:
                return
            output = list(output) if definition._returns_list else output
            more = {"keyword_only_inputs": keywords} if keywords else {}
            definition._setup_context(ctx=ctx, inputs=positional, output=output, **more)

        def backward(ctx: Any, *grads: Any) -> Any:
            if definition._backward is None:
                raise RuntimeError(
                    f"Trying to backward through {definition._opoverload} but no autograd formula was registered. Please use "
                    "register_autograd to add one."
                )
            if definition._returns_list:
                grads = (list(grads),)
            found = definition._backward(ctx, *grads)
            return (None, *ctx._form.flat_gradients(found))

        def vmap(info: Any, in_dims: Any, form: Form, *leaves: Any) -> Any:
            if definition._vmap is not None:
                positional, keywords = form.arguments(leaves).for_kernel()
                dims, _ = form.nested(in_dims[1:])
                return definition._vmap(info, dims[: form.given], *positional, **keywords)
            results = [
                definition.apply(form.arguments(_at(leaves, in_dims[1:], place))) for place in range(info.batch_size)
            ]
            parts, shape = zip(*map(tree.tree_flatten, results), strict=True)
            stacked = tree.tree_unflatten(
                [operators.stack(list(column)) for column in zip(*parts, strict=True)], shape[0]
            )
            return stacked, tree.tree_map(lambda _: 0, stacked)

        name = f"GeneratedBackwardFor_{self._namespace}_{self._name}_{self._opoverload._overloadname}"
        rules: dict[str, Callable[..., Any]] = {
            "forward": forward,
            "setup_context": setup_context,
            "backward": backward,
            "vmap": vmap,
        }
        return type(
            name,
            (Function,),
            {key: staticmethod(part) for key, part in rules.items()} | {"__module__": "torch._library.autograd"},
        )


def _is_value(argument: Any) -> bool:
    """Return whether an argument is a list without tensors, which counts as one argument."""
    return type(argument) is list and not all(isinstance(each, Tensor) for each in argument)


def _at(leaves: tuple[Any, ...], dims: tuple[Any, ...], place: int) -> list[Any]:
    return [
        leaf if dim is None or not isinstance(leaf, Tensor) else leaf.select(dim, place)
        for leaf, dim in zip(leaves, dims, strict=True)
    ]


def _tensors(values: Any) -> list[Tensor]:
    return [each for each in tree.tree_leaves(values) if isinstance(each, Tensor)]
