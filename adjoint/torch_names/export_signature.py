"""How an exported graph is called: dimensions, the kinds of inputs and outputs, and the requirements on arguments."""

from __future__ import annotations

import inspect
from enum import Enum
from typing import Any, NamedTuple

import adjoint as torch
from adjoint.transforms import tree


class DimHint(NamedTuple):
    """A dimension without a name."""

    type: str

    def __repr__(self) -> str:
        return f"DimHint({self.type})"


class Dim:
    """A dimension whose size may change. Dimensions with the same `Dim` have the same size.

    `Dim.AUTO` and `Dim.DYNAMIC` are dimensions without a name, and `Dim.STATIC` one whose size is fixed.

    >>> import adjoint as torch
    >>> torch.export.Dim("batch", min=1, max=8)
    Dim('batch', min=1, max=8)
    """

    AUTO, DYNAMIC, STATIC = DimHint("AUTO"), DimHint("DYNAMIC"), DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        self.__name__, self.min, self.max = name, 0 if min is None else min, max
        if max is not None and max < self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")

    def __repr__(self) -> str:
        bound = "" if self.max is None else f", max={self.max}"
        return f"Dim({self.__name__!r}, min={self.min}{bound})"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Return one `Dim` for each name.

    >>> import adjoint as torch
    >>> torch.export.dims("batch", "length", max=64)
    (Dim('batch', min=0, max=64), Dim('length', min=0, max=64))
    """
    return tuple([Dim(name, min=min, max=max) for name in names])


class InputKind(Enum):
    """What an input of an exported graph is.

    >>> import adjoint as torch
    >>> program = torch.export.export(torch.nn.Linear(3, 2, bias=False), (torch.ones(1, 3),))
    >>> [each.kind.name for each in program.graph_signature.input_specs]
    ['PARAMETER', 'USER_INPUT']
    """

    USER_INPUT = 1
    PARAMETER = 2
    BUFFER = 3
    CONSTANT_TENSOR = 4


class OutputKind(Enum):
    """What an output of an exported graph is.

    >>> import adjoint as torch
    >>> torch.export.OutputKind.USER_OUTPUT.name
    'USER_OUTPUT'
    """

    USER_OUTPUT = 1


class TensorArgument(NamedTuple):
    """A tensor in a graph, by the name of its node."""

    name: str


class InputSpec(NamedTuple):
    """One input of a graph. `target`: the name of the parameter or buffer."""

    kind: InputKind
    arg: TensorArgument
    target: str | None
    persistent: bool | None = None


class OutputSpec(NamedTuple):
    """One output of a graph."""

    kind: OutputKind
    arg: TensorArgument
    target: str | None = None


class ExportGraphSignature(NamedTuple):
    """What the inputs and outputs of a graph are.

    >>> import adjoint as torch
    >>> torch.export.export(torch.nn.Linear(3, 2), (torch.ones(1, 3),)).graph_signature.parameters
    ('weight', 'bias')
    """

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _targets(self, kind: InputKind) -> dict[str, str]:
        return {each.arg.name: str(each.target) for each in self.input_specs if each.kind is kind}

    @property
    def user_inputs(self) -> tuple[str, ...]:
        """The names of the inputs that callers give."""
        return tuple([each.arg.name for each in self.input_specs if each.kind is InputKind.USER_INPUT])

    @property
    def user_outputs(self) -> tuple[str, ...]:
        """The names of the results."""
        return tuple([each.arg.name for each in self.output_specs])

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """The parameters, by the names of inputs."""
        return self._targets(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """The buffers, by the names of inputs."""
        return self._targets(InputKind.BUFFER)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(self.inputs_to_parameters.values())

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of the buffers."""
        return tuple(self.inputs_to_buffers.values())

    def __str__(self) -> str:
        def line(each: InputSpec | OutputSpec) -> str:
            target = "" if each.target is None else f" target={each.target!r}"
            lasting = getattr(each, "persistent", None)
            return f"{each.arg.name}: {each.kind.name}{target}" + (
                f" persistent={lasting}" if lasting is not None else ""
            )

        return "\n".join(
            ["", "# inputs", *map(line, self.input_specs), "", "# outputs", *map(line, self.output_specs), ""]
        )


class Size(NamedTuple):
    """The requirement on one size of an input. `dim`: a `Dim`, a hint, or None if the size is fixed."""

    place: str
    input: int
    dim_index: int
    example: int
    dim: Any

    def check(self, size: int, named: dict[str, int]) -> None:
        """Raise an error if a size is not accepted. `named`: the sizes of the named dimensions so far."""
        text = f"{self.place}.size()[{self.dim_index}]"
        if self.dim is None and size != self.example:
            raise AssertionError(f"Guard failed: {text} == {self.example}")
        if isinstance(self.dim, Dim):
            if size < self.dim.min and self.dim.min > 2:  # as in PyTorch, 2 stands for any size
                raise AssertionError(f"Guard failed: {text} >= {self.dim.min}")
            if self.dim.max is not None and size > self.dim.max:
                raise AssertionError(f"Guard failed: {text} <= {self.dim.max}")
            if named.setdefault(self.dim.__name__, size) != size:
                raise AssertionError(f"Guard failed: {text} == {named[self.dim.__name__]}")


class Calling(NamedTuple):
    """How a graph is called: the structure of the arguments and of the result, and what is required of them.

    `constants`: the arguments that are not tensors, by their positions. `dtypes`: the dtypes of the others. `results`: the
    results that are not tensors. `conditions`: the comparisons of sizes, as source.
    """

    signature: inspect.Signature
    structure: Any
    constants: dict[int, Any]
    dtypes: dict[int, Any]
    sizes: list[Size]
    conditions: list[tuple[str, dict[str, Any]]]
    result: Any
    results: dict[int, Any]

    def flatten(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return the tensors among the arguments, after they have been checked."""
        bound = self.signature.bind(*args, **kwargs)
        leaves, structure = tree.tree_flatten((bound.args, bound.kwargs))
        if structure != self.structure:
            raise ValueError(
                f"the exported program takes arguments with the structure {self.structure}, not {structure}"
            )
        for position, value in self.constants.items():
            if type(leaves[position]) is not type(value) or leaves[position] != value:
                raise AssertionError(f"Guard failed: an argument is {value!r} (it is {leaves[position]!r} now)")
        for position, dtype in self.dtypes.items():
            given = leaves[position]
            if not isinstance(given, torch.Tensor) or given.dtype is not dtype:
                raise AssertionError(f"Guard failed: an argument is a tensor of {dtype}")
        named: dict[str, int] = {}
        for each in self.sizes:
            shape = leaves[each.input].shape
            if each.dim_index == 0 and len(shape) != sum(other.input == each.input for other in self.sizes):
                raise AssertionError(f"Guard failed: {each.place} has {len(shape)} dimensions")
            each.check(shape[each.dim_index], named)
        for text, names in self.conditions:
            if not eval(text, {**names, "args": bound.args, "kwargs": bound.kwargs}):
                raise AssertionError("Guard failed: a comparison of sizes has another result than in the export")
        return [leaves[position] for position in self.dtypes]

    def unflatten(self, found: tuple[Any, ...]) -> Any:
        """Return the result of the module for the outputs of the graph."""
        values = iter(found)
        count = len(found) + len(self.results)
        leaves = [self.results[index] if index in self.results else next(values) for index in range(count)]
        return tree.tree_unflatten(leaves, self.result)
