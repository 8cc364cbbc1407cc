"""`torch.export`: modules as graphs with lifted parameters, which run without the code of the module.

A call of a module is captured with the machinery of `torch.compile`. The nodes are the public functions that the module calls.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import adjoint as torch
from adjoint._runtime.first_use import import_late
from adjoint.compiler.errors import UserError
from adjoint.compiler.graphs import Backend
from adjoint.compiler.program import Source
from adjoint.compiler.symbols import Symbol, called, symbols_in
from adjoint.compiler.variant import captured
from adjoint.transforms import tree

from .export_signature import (
    Calling,
    Dim,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    Size,
    TensorArgument,
    dims,
)

__all__ = [
    "Dim",
    "ExportGraphSignature",
    "ExportedProgram",
    "InputKind",
    "OutputKind",
    "default_decompositions",
    "dims",
    "export",
    "load",
    "save",
    "unflatten",
]


class _Unlifted(torch.fx.graph.CodeGen):
    """Writes the code of a function of the module's own arguments."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Return the first lines."""
        names = f"{''.join(f'{name}, ' for name in free_vars)}= " if free_vars else ""
        return f"def forward(self, *args, **kwargs):\n    {names}self._calling.flatten(args, kwargs)"

    def generate_output(self, output_args: Any, **options: Any) -> str:
        """Return the last line."""
        return f"return self._calling.unflatten({output_args!r})"


class ExportedProgram:
    """A module as a graph. `graph_module`: its parameters, buffers and the tensors that callers give are inputs.

    `graph_signature` tells which input is which. `state_dict` contains the parameters and buffers, `constants` other tensors,
    `example_inputs` the arguments of the export, and `range_constraints` the bounds of dimensions.

    >>> import adjoint as torch
    >>> program = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(1, 3),))
    >>> [name for name, _ in program.named_parameters()]
    ['weight', 'bias']
    """

    def __init__(
        self,
        graph_module: Any,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, torch.Tensor],
        constants: dict[str, torch.Tensor],
        calling: Calling,
        example_inputs: tuple[Any, dict[str, Any]],
    ) -> None:
        self.graph_module, self.graph_signature = graph_module, graph_signature
        self.state_dict, self.constants, self._calling = state_dict, constants, calling
        self.example_inputs, self.dialect = example_inputs, "TORCH"

    @property
    def graph(self) -> Any:
        """The graph."""
        return self.graph_module.graph

    @property
    def range_constraints(self) -> dict[str, tuple[int, int | None]]:
        """The least and greatest sizes of the named dimensions."""
        found = [each.dim for each in self._calling.sizes if isinstance(each.dim, Dim)]
        return {each.__name__: (each.min, each.max) for each in found}

    def named_parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the names and the parameters."""
        yield from [(name, self.state_dict[name]) for name in self.graph_signature.parameters]

    def named_buffers(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the names and the buffers."""
        tensors = {**self.constants, **self.state_dict}
        yield from [(name, tensors[name]) for name in self.graph_signature.buffers]

    def parameters(self) -> Iterator[torch.Tensor]:
        """Yield the parameters."""
        yield from [each for _, each in self.named_parameters()]

    def buffers(self) -> Iterator[torch.Tensor]:
        """Yield the buffers."""
        yield from [each for _, each in self.named_buffers()]

    def validate(self) -> None:
        """Raise an error if the graph is not well-formed."""
        self.graph.lint()

    def module(self, check_guards: bool = True) -> Any:
        """Return a module that takes the arguments of the original module, and shares its parameters.

        It raises an `AssertionError` for arguments that the export does not cover.
        """
        graph: Any = torch.fx.Graph()
        made: dict[Any, Any] = {}
        tensors = {**self.constants, **self.state_dict}
        targets = {each.arg.name: each.target for each in self.graph_signature.input_specs}
        used = {}
        for node in self.graph.nodes:
            target = targets.get(node.name) if node.op == "placeholder" else None
            if target is None:
                made[node] = graph.node_copy(node, made.__getitem__)
            else:
                used[target] = tensors[target]
                made[node] = graph.get_attr(target)
        graph.set_codegen(_Unlifted())
        module = torch.fx.GraphModule(used, graph)
        module._calling = self._calling
        return module

    def run_decompositions(self, decomp_table: Any = None, **options: Any) -> ExportedProgram:
        """Return the program with operators of PyTorch's dispatcher as nodes.

        Args:
            decomp_table: by operator, a function that is traced instead.
            options: accepted, but without effect.
        """
        placeholders = [node for node in self.graph.nodes if node.op == "placeholder"]
        examples = [
            torch.zeros(node.meta["example_value"].shape, dtype=node.meta["example_value"].dtype)
            for node in placeholders
        ]
        with torch.no_grad():
            make_fx = import_late("adjoint.fx.experimental.proxy_tensor").make_fx
            traced = make_fx(self.graph_module.forward, decomp_table)(*examples)
        for node, old in zip(
            [each for each in traced.graph.nodes if each.op == "placeholder"], placeholders, strict=True
        ):
            node.name = node.target = old.name
            node.meta.update(old.meta)
        traced.recompile()
        outputs = traced.graph.output_node().args[0]
        specs = [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(each.name)) for each in outputs]
        signature = self.graph_signature._replace(output_specs=specs)
        made = ExportedProgram(traced, signature, self.state_dict, self.constants, self._calling, self.example_inputs)
        made.dialect = "ATEN"
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise an error, as in PyTorch."""
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def __str__(self) -> str:
        code = self.graph_module.code.strip().replace("\n", "\n    ")
        ranges = f"Range constraints: {self.range_constraints}"
        return f"ExportedProgram:\n    {code}\n\nGraph signature: {self.graph_signature}\n{ranges}\n"


def default_decompositions() -> dict[Any, Any]:
    """Return an empty table, because operators of the dispatcher are not decomposed further.

    >>> import adjoint as torch
    >>> torch.export.default_decompositions()
    {}
    """
    return {}


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the names and the leaves of an argument."""
    if isinstance(value, (list, tuple, dict)):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(each, f"{path}_{key}")
    else:
        yield path, value


def _shapes_of(bound: inspect.BoundArguments, dynamic_shapes: Any) -> dict[tuple[int, int], Any]:
    """Return the dimensions of arguments that may change, by the position of the tensor and the dimension."""
    if not dynamic_shapes:
        return {}
    if isinstance(dynamic_shapes, dict) and dynamic_shapes.keys() != bound.arguments.keys():
        raise UserError(
            "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names "
            f"{[*bound.arguments]} of `inputs`, but here they are {[*dynamic_shapes]}."
        )
    found: dict[tuple[int, int], Any] = {}
    position = 0

    def visit(value: Any, shape: Any) -> None:
        nonlocal position
        if isinstance(value, (list, tuple, dict)):
            for key in value if isinstance(value, dict) else range(len(value)):
                visit(value[key], shape[key] if shape else None)
            return
        for dim, wanted in shape.items() if isinstance(shape, dict) else enumerate(shape or ()):
            if wanted is not Dim.STATIC and not (wanted is None or isinstance(wanted, int)):
                found[position, dim % value.ndim] = wanted
        position += 1

    for name, value in bound.arguments.items():
        place = name if isinstance(dynamic_shapes, dict) else [*bound.arguments].index(name)
        visit(value, dynamic_shapes[place])
    return found


def _named(wanted: Any) -> str:
    return wanted.__name__ if isinstance(wanted, Dim) else str(wanted)


def export(
    mod: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """Call a module once, and return the functions that it calls as a graph. The state of the module does not change.

    Args:
        mod: a module.
        args, kwargs: the arguments of the module.
        dynamic_shapes: for each argument, by name or in order, its dimensions whose sizes may change: a dict from
            dimensions to `Dim`, or a sequence. The export compares the graph with the module at other sizes.
        strict, preserve_module_call_signature, prefer_deferred_runtime_asserts_over_guards: accepted, but without effect.

    Raises:
        torch._dynamo.exc.UserError: if the module cannot be one graph, for example because a condition depends on the elements
            of a tensor, or if the graph does not fit other sizes.

    >>> import adjoint as torch
    >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    >>> print(program.graph_module.code.strip())
    def forward(self, input):
        input_1 = input
        relu = torch.nn.functional.relu(input_1, False);  input_1 = None
        return (relu,)
    >>> program.module()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if not isinstance(mod, torch.nn.Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    bound = inspect.signature(mod.forward).bind(*args, **(kwargs or {}))
    wanted = _shapes_of(bound, dynamic_shapes)
    program, written = _exported(mod, bound, wanted)
    if wanted and not _fits_other_sizes(mod, program, written, bound, wanted):
        if any(isinstance(each, Dim) or each is Dim.DYNAMIC for each in wanted.values()):
            names = ", ".join(sorted({*map(_named, wanted.values())}))
            raise UserError(f"Constraints violated ({names})! The graph of the module does not fit other sizes.")
        program, _ = _exported(mod, bound, {})
    return program


def _exported(
    mod: torch.nn.Module, bound: inspect.BoundArguments, wanted: dict[tuple[int, int], Any]
) -> tuple[ExportedProgram, Any]:
    """Return the program of a call, and the capture."""
    args, kwargs = bound.args, bound.kwargs
    leaves, structure = tree.tree_flatten((args, kwargs))
    paths = [path for name, value in bound.arguments.items() for path, _ in _leaves(value, name)]
    positions = {id(leaf): position for position, leaf in enumerate(leaves)}

    def dims_of(place: str, tensor: torch.Tensor) -> frozenset[int]:
        return frozenset(dim for position, dim in wanted if positions.get(id(tensor)) == position)

    backend = Backend(lambda module, examples: module.forward)
    _, variant, reason = captured(mod, args, kwargs, set(), dims_of if wanted else None, backend=backend)
    if variant is None:
        raise UserError(f"the module cannot be exported as one graph: {reason}")
    written = backend.written
    recorder, tracer = written.observer.recorder, written.tracer
    written.observer.restore()
    if written.observer.stores:
        raise UserError("the module cannot be exported as one graph: it sets attributes")
    for (position, dim), each in [*wanted.items()]:
        if any(root.endswith(f".shape[{dim}]") and _is_of(root, written, leaves[position]) for root in tracer.fixed):
            if each is not Dim.AUTO:
                raise UserError(f"Constraints violated ({_named(each)})! The code of the module fixes this size.")
            del wanted[position, dim]
    conditions = _conditions(tracer)
    user = {}
    for position, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor):
            number = next((number for number, (_, value) in recorder.inputs.items() if value is leaf), None)
            if number is None:
                recorder.inputs[number := recorder.name(leaf)] = f"leaf {position}", leaf
            user[number] = paths[position]
    results, of_result = written.leaves
    outputs = [recorder.known(each).number for each in results if isinstance(each, (torch.Tensor, Symbol))]
    (piece,) = recorder.graphs(outputs)
    state = mod.state_dict(keep_vars=True)
    state = {name: state[name] for name, _ in [*mod.named_parameters(remove_duplicate=False), *state.items()]}
    parameters = {id(each): name for name, each in mod.named_parameters()}
    buffers = {id(each): name for name, each in mod.named_buffers()}
    specs: dict[int, InputSpec] = {}
    constants: dict[str, torch.Tensor] = {}
    for number, (_, value) in recorder.inputs.items():
        name = parameters.get(id(value)) or buffers.get(id(value)) or f"lifted_tensor_{number}"
        kind = InputKind.PARAMETER if id(value) in parameters else InputKind.BUFFER if id(value) in buffers else None
        if number in user:
            specs[number] = InputSpec(InputKind.USER_INPUT, TensorArgument(user[number]), None)
        else:
            form = f"{'c' if kind is None else kind.name[0].lower()}_{name.replace('.', '_')}"
            lasting = (name in state) if kind is InputKind.BUFFER else None
            specs[number] = InputSpec(kind or InputKind.CONSTANT_TENSOR, TensorArgument(form), name, lasting)
            if name not in state:
                constants[name] = value
    order = sorted(specs, key=lambda number: ((number in user), specs[number].kind.value if number not in user else 0))
    module = piece.module({number: each.arg.name for number, each in specs.items()}, order, outputs)
    names_of_results = [each.name for each in module.graph.output_node().args[0]]
    placeholders = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    signature = ExportGraphSignature(
        [specs[number]._replace(arg=TensorArgument(name)) for number, name in zip(order, placeholders, strict=True)],
        [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(name)) for name in names_of_results],
    )
    tensors = {position: leaf for position, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)}
    calling = Calling(
        inspect.signature(mod.forward),
        structure,
        {position: leaf for position, leaf in enumerate(leaves) if position not in tensors},
        {position: leaf.dtype for position, leaf in tensors.items()},
        [
            Size(paths[position], position, dim, size, wanted.get((position, dim)))
            for position, leaf in tensors.items()
            for dim, size in enumerate(leaf.shape)
        ],
        conditions,
        of_result,
        {index: each for index, each in enumerate(results) if not isinstance(each, (torch.Tensor, Symbol))},
    )
    return ExportedProgram(module, signature, state, constants, calling, (args, dict(kwargs))), written


def _conditions(tracer: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the comparisons of sizes, as source with the objects that it names."""
    found = []
    for function, operands, outcome in tracer.outcomes:
        roots: frozenset[str] = frozenset().union(*[each.roots for each in symbols_in(operands)])
        if roots & tracer.extents.keys():
            if any(root.startswith("%") for root in roots):
                raise UserError("the module cannot be exported for other sizes: it compares sizes of its own tensors")
            source = Source()
            text = called(function, operands, source.constant)
            found.append((f"{text} is {source.constant(outcome)}", source.namespace))
    return found


def _is_of(root: str, written: Any, tensor: torch.Tensor) -> bool:
    """Return whether a symbol for a size belongs to a tensor among the arguments."""
    return any(each is tensor and root.startswith(f"{place}.shape") for place, each in written.given.tensors)


def _fits_other_sizes(
    mod: torch.nn.Module, program: ExportedProgram, written: Any, bound: inspect.BoundArguments, wanted: dict[Any, Any]
) -> bool:
    """Return whether the program and the module give the same results at other sizes."""
    leaves, structure = tree.tree_flatten((bound.args, bound.kwargs))
    for (position, dim), each in wanted.items():
        leaf = leaves[position].detach()
        if isinstance(each, Dim) and each.max is not None and leaf.shape[dim] >= each.max:
            leaves[position] = leaf.narrow(dim, 0, leaf.shape[dim] - 1).clone()
        else:
            leaves[position] = torch.cat([leaf, leaf.narrow(dim, 0, 1)], dim)
    results = []
    with torch.no_grad():
        for run in (mod, program.module()):
            args, kwargs = tree.tree_unflatten(
                [each.clone() if isinstance(each, torch.Tensor) else each for each in leaves], structure
            )
            try:
                results.append(tree.tree_leaves(run(*args, **kwargs)))
            except Exception:  # noqa: BLE001  (the module does not accept these sizes, or the graph does not)
                return False
            finally:
                written.observer.restore()
    return len(results[0]) == len(results[1]) and all(
        torch.equal(one, other)
        or (one.shape == other.shape and torch.allclose(one, other, equal_nan=True, rtol=1e-6, atol=1e-8))
        if isinstance(one, torch.Tensor)
        else one == other
        for one, other in zip(*results, strict=True)
    )


FORMAT = "adjoint graph 1"


def save(ep: ExportedProgram, f: Any, **options: Any) -> None:
    """Write an exported program to a file.

    >>> import io
    >>> import adjoint as torch
    >>> torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), io.BytesIO())
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the file contains more than tensors
        torch.save({"format": FORMAT, "program": ep}, f)


def load(f: Any, **options: Any) -> ExportedProgram:
    """Read the file that `save` has written. As with other pickles, load only files that you trust.

    >>> import io
    >>> import adjoint as torch
    >>> file = io.BytesIO()
    >>> torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), file)
    >>> _ = file.seek(0)
    >>> torch.export.load(file).module()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    given = torch.load(f, weights_only=False)
    if not (isinstance(given, dict) and given.get("format") == FORMAT):
        raise RuntimeError("the file does not contain an exported program")
    program: ExportedProgram = given["program"]
    return program


def unflatten(module: ExportedProgram, flat_args_adapter: Any = None) -> Any:
    """Return the module of an exported program. Its parts are not modules again.

    >>> import adjoint as torch
    >>> module = torch.export.unflatten(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)))
    >>> module(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return module.module()
