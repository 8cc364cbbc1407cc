"""Derivatives of functions of tensors: Jacobians, Hessians, and their products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..aten.torch_dispatch import ones_like, zeros_like
from ..operators import stack
from ..tape.modes import is_grad_enabled
from ..tensor import Tensor
from ..transforms.jacobians import by_input, by_output, unit_vectors
from ..transforms.reverse import jvp as forward_product
from ..transforms.reverse import vjp as transposed_product
from ..transforms.reverse import vmap
from ..transforms.tangents import recorded_grad
from .backward import grad
from .grad_mode import enable_grad, set_grad_enabled

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = Tensor | tuple[Tensor, ...]
Function = Callable[..., Tensors]

_OUTPUTS = "outputs of the user-provided function"


def vjp(
    func: Function, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return the outputs of `func`, and the product of the vector `v` with its Jacobian: v^T J.

    Args:
        v: a vector with the shape of the outputs. It may be omitted if the output has a single element.
        create_graph: whether the results can be differentiated.
        strict: whether to raise RuntimeError if an output does not depend on an input. Otherwise the result is zeros.

    >>> import adjoint as torch
    >>> torch.autograd.functional.vjp(lambda x: x * x, torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        many, given = _prepared(inputs, "vjp", create_graph)
        outputs_many, outputs = _outputs(func(*given), "vjp", strict)
        vector = _vector(v, outputs, outputs_many, "vjp", "the user-provided function returns")
    product = _pulled(outputs, given, vector, strict, create_graph, "back")
    return _returned(outputs, outputs_many, create_graph), _returned(product, many, create_graph)


def jvp(
    func: Function, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return the outputs of `func`, and the product of its Jacobian with the vector `v`: J v.

    `v` has the shape of the inputs. It may be omitted if the input has a single element. The vector-Jacobian product is
    linear in its vector, so its derivative with respect to this vector, times `v`, is J v. The other arguments are as
    in `vjp`.

    >>> import adjoint as torch
    >>> torch.autograd.functional.jvp(lambda x: x.sum() ** 2, torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
    (tensor(9.), tensor(6.))
    """
    with enable_grad():
        many, given = _prepared(inputs, "jvp", create_graph)
        vector = _vector(v, given, many, "jvp", "the input to the user-provided function is")
        outputs_many, outputs = _outputs(func(*given), "jvp", strict)
    product = _pushed(outputs, given, vector, strict, create_graph, ("back", "back_trick"))
    return _returned(outputs, outputs_many, create_graph), _returned(product, outputs_many, create_graph)


def jacobian(
    func: Function,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the derivatives of all outputs of `func` with respect to all inputs, of shape `output.shape + input.shape`.

    Args:
        create_graph, strict: as in `vjp`.
        vectorize: whether to compute all rows at once.
        strategy: "reverse-mode" computes rows, one for each element of the outputs. "forward-mode" (with `vectorize`)
            computes columns, one for each element of the inputs.

    >>> import adjoint as torch
    >>> torch.autograd.functional.jacobian(lambda x: x * x.sum(), torch.tensor([1.0, 2.0]))
    tensor([[4., 1.],
            [2., 5.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than '
            'inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported '
                'together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
            )
        return _jacobian_by_columns(func, inputs, strict, vectorize)
    with enable_grad():
        many, given = _prepared(inputs, "jacobian", create_graph)
        outputs_many, outputs = _outputs(func(*given), "jacobian", strict)
        if vectorize:
            if strict:
                raise RuntimeError(
                    "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
                    "Please either set `strict=False` or `vectorize=False`."
                )
            rows = _all_rows(outputs, given, create_graph)
        else:
            rows = tuple(_rows(output, number, given, create_graph, strict) for number, output in enumerate(outputs))
        if not create_graph:
            rows = tuple(tuple(block.detach() for block in blocks) for blocks in rows)
    parts = [blocks if many else blocks[0] for blocks in rows]
    return tuple(parts) if outputs_many else parts[0]


def _rows(output: Tensor, number: int, inputs: Any, create_graph: bool, strict: bool) -> tuple[Tensor, ...]:
    """Return the Jacobian of one output, by one backward for each of its elements."""
    columns: list[list[Tensor]] = [[] for _ in inputs]
    for element in output.reshape(-1) if output.numel() else ():
        found = recorded_grad((element,), inputs, (None,), create_graph, retain_graph=True)
        for held, value in zip(columns, _filled(found, inputs, strict, create_graph, f"row {number}"), strict=True):
            held.append(value)
    return tuple(stack(held, 0).view(output.shape + tensor.shape) for held, tensor in zip(columns, inputs, strict=True))


def _all_rows(outputs: Any, inputs: Any, create_graph: bool) -> tuple[tuple[Tensor, ...], ...]:
    """Return the Jacobian of all outputs, by one batched backward."""
    bases = unit_vectors(outputs)
    wanted = [(output, basis) for output, basis in zip(outputs, bases, strict=True) if output.requires_grad]
    if wanted:
        roots, vectors = zip(*wanted, strict=True)
        found = grad(roots, inputs, vectors, None, create_graph, allow_unused=True, is_grads_batched=True)
    else:
        found = (None,) * len(inputs)
    total = sum(output.numel() for output in outputs)
    rows = [
        zeros_like(tensor).expand((total, *tensor.shape)) if value is None else value
        for value, tensor in zip(found, inputs, strict=True)
    ]
    return tuple(zip(*[by_output(each, outputs) for each in rows], strict=True))


def _construct_standard_basis_for(tensors: tuple[Tensor, ...], tensor_numels: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Return the standard basis vectors of the joint space of `tensors`. Each tensor gets the rows of its own elements."""
    if len(tensors) != len(tensor_numels):
        raise AssertionError(
            f"Expected tensors and tensor_numels to have the same length, but got {len(tensors)} and {len(tensor_numels)}"
        )
    if not tensors:
        raise AssertionError("Expected at least one tensor")
    total = sum(tensor_numels)
    return tuple(part.reshape((total, count)) for part, count in zip(unit_vectors(tensors), tensor_numels, strict=True))


def _jacobian_by_columns(func: Function, inputs: Tensors, strict: bool, vectorize: bool) -> Any:
    """Return the Jacobian by products with the basis vectors of the inputs."""
    if strict:
        raise RuntimeError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported together (yet). '
            'Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    many, given = _tensors(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`."
        )
    outputs_many = False

    def column(*directions: Tensor) -> tuple[Tensor, ...]:
        nonlocal outputs_many

        def called(*args: Tensor) -> tuple[Tensor, ...]:
            nonlocal outputs_many
            outputs_many, outputs = _tensors(func(*args), _OUTPUTS, "jacobian")
            return outputs

        tangents: tuple[Tensor, ...] = forward_product(called, given, directions)[1]
        return tangents

    blocks = [by_input(columns, given) for columns in vmap(column)(*unit_vectors(given))]
    if many:  # lists, as in PyTorch
        return blocks if outputs_many else blocks[0]
    return tuple(block[0] for block in blocks) if outputs_many else blocks[0][0]


def hessian(
    func: Function,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the second derivatives of `func`, which returns a single element. For the arguments, see `jacobian`.

    >>> import adjoint as torch
    >>> torch.autograd.functional.hessian(lambda x: x.prod(), torch.tensor([2.0, 3.0]))
    tensor([[0., 1.],
            [1., 0.]])
    """
    many, given = _tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def single(*args: Tensor) -> Tensor:
        return _single_output(func(*args), "hessian", strict)

    def gradient(*args: Tensor) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            value, pull = transposed_product(single, *args)
            return pull(ones_like(value))
        rows = jacobian(single, args, create_graph=True)
        found = tuple(row.reshape(tensor.shape) for row, tensor in zip(rows, args, strict=True))
        if strict:
            _check_jacobian(found)
        return found

    result = jacobian(
        gradient, given, create_graph=create_graph, strict=strict, vectorize=vectorize, strategy=outer_jacobian_strategy
    )
    return result if many else result[0][0]


def vhp(
    func: Function, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return the single element that `func` returns, and the product of the vector `v` with its Hessian: v^T H.

    `v` has the shape of the inputs. The other arguments are as in `vjp`.

    >>> import adjoint as torch
    >>> torch.autograd.functional.vhp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        many, given = _prepared(inputs, "vhp", create_graph)
        vector = _vector(v, given, many, "vhp", "the input to the user-provided function is")
        output, first = _first_derivative(func, given, "vhp", strict)
    product = _pulled(first, given, vector, strict, create_graph, "double_back")
    return _returned((output,), False, create_graph), _returned(product, many, create_graph)


def hvp(
    func: Function, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return the single element that `func` returns, and the product of its Hessian with the vector `v`: H v.

    `vhp` is faster and computes the same product, because Hessians are symmetric.

    >>> import adjoint as torch
    >>> torch.autograd.functional.hvp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        many, given = _prepared(inputs, "hvp", create_graph)
        vector = _vector(v, given, many, "hvp", "the input to the user-provided function is")
        output, first = _first_derivative(func, given, "hvp", strict)
    product = _pushed(first, given, vector, strict, create_graph, ("double_back", "double_back_trick"))
    return _returned((output,), False, create_graph), _returned(product, many, create_graph)


def _pulled(outputs: Any, inputs: Any, vector: Any, strict: bool, create_graph: bool, stage: str) -> tuple[Tensor, ...]:
    """Return the product of `vector` with the Jacobian of `outputs`. `stage`: the name of the derivative in error messages."""
    with set_grad_enabled(create_graph or is_grad_enabled()):
        return _filled(recorded_grad(outputs, inputs, vector, create_graph), inputs, strict, create_graph, stage)


def _pushed(
    outputs: Any, inputs: Any, vector: Any, strict: bool, create_graph: bool, stages: tuple[str, str]
) -> tuple[Tensor, ...]:
    """Return the product of the Jacobian of `outputs` with `vector`, by differentiating the vector-Jacobian product.

    The vector-Jacobian product is linear in its vector, so the point of differentiation does not matter. `stages`: the
    names of the two derivatives in error messages.
    """
    with enable_grad():
        vectors = tuple(zeros_like(output).requires_grad_() for output in outputs)
        pulled = _filled(recorded_grad(outputs, inputs, vectors, True), inputs, strict, True, stages[0], check=False)
    return _pulled(pulled, vectors, vector, strict, create_graph, stages[1])


def _first_derivative(func: Function, inputs: Any, name: str, strict: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the single output of a function, and its recorded derivative."""
    output = _single_output(func(*inputs), name, strict)
    first = _filled(recorded_grad((output,), inputs, (None,), True), inputs, strict, True, "back", check=False)
    if strict:
        _check_jacobian(first)
    return output, first


# --- inputs ----------------------------------------------------------------------------------------------------


def _tensors(value: Any, what: str, function: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Return whether `value` is a tuple, and its tensors."""
    many = isinstance(value, tuple)
    expected = f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the"
    for index, item in enumerate(value if many else (value,)):
        if not isinstance(item, Tensor):
            if many:
                raise TypeError(f"{expected} value at index {index} has type {type(item)}.")
            raise TypeError(f"{expected} given {what} has type {type(item)}.")
    return many, value if many else (value,)


def _prepared(inputs: Any, function: str, create_graph: bool) -> tuple[bool, tuple[Tensor, ...]]:
    """Return whether the inputs are a tuple, and copies or views that require grad, so that this call confines the derivative."""
    many, given = _tensors(inputs, "inputs", function)
    return many, tuple(
        tensor.view_as(tensor) if create_graph and tensor.requires_grad else tensor.detach().requires_grad_()
        for tensor in given
    )


def _outputs(value: Any, name: str, strict: bool) -> tuple[bool, tuple[Tensor, ...]]:
    many, outputs = _tensors(value, _OUTPUTS, name)
    for index, output in enumerate(outputs):
        if strict and not output.requires_grad:
            raise RuntimeError(
                f"Output {index} of the user-provided function does not require gradients. The outputs must be computed in a "
                "differentiable manner from the input when running in strict mode."
            )
    return many, outputs


def _single_output(value: Any, name: str, strict: bool) -> Tensor:
    many, outputs = _outputs(value, name, strict)
    if many:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    return outputs[0]


def _check_jacobian(found: tuple[Tensor, ...]) -> None:
    for index, value in enumerate(found):
        if not value.requires_grad:
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided function with respect to input "
                f"{index} is independent of the input. This is not allowed in strict mode. You should ensure that your function "
                "is twice differentiable and that the jacobian depends on the inputs (this would be violated by a linear "
                "function for example)."
            )


def _vector(v: Any, others: tuple[Tensor, ...], many: bool, name: str, what: str) -> tuple[Tensor, ...]:
    """Return the vector of a product. It has the number and the shapes of `others`, called `what`.

    It may be omitted if `others` have a single element. `many`: whether the user gave `others` as a tuple.
    """
    if v is None:
        if len(others) != 1 or others[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {what} a single Tensor with a single element.")
        return (ones_like(others[0]),)
    _, vector = _tensors(v, "v", name)
    if len(vector) != len(others):
        if not many:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(others)} but got {len(vector)}.")
    for index, (value, other) in enumerate(zip(vector, others, strict=True)):
        if value.shape != other.shape:
            entry = f"Entry {index} in " if many else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {other.shape} but got {value.shape}.")
    return vector


# --- outputs ---------------------------------------------------------------------------------------------------


_STRICT_GRAPH = (
    "The {what} of the user-provided function is independent of input {index}. This is not allowed in strict mode when "
    "create_graph=True."
)
_STRICT = {
    "row": (
        "Output {number} of the user-provided function is independent of input {index}. This is not allowed in strict mode."
    ),
    "back": "The output of the user-provided function is independent of input {index}. This is not allowed in strict mode.",
    "back_trick": (
        "The gradient with respect to the input is independent of entry {index} in the grad_outputs when using the double "
        "backward trick to compute forward mode gradients. This is not allowed in strict mode."
    ),
    "double_back": (
        "The jacobian of the user-provided function is independent of input {index}. This is not allowed in strict mode."
    ),
    "double_back_trick": (
        "The hessian of the user-provided function is independent of entry {index} in the grad_jacobian. This is not allowed in "
        "strict mode as it prevents from using the double backward trick to replace forward mode AD."
    ),
}


def _filled(
    found: Any, like: Any, strict: bool, create_graph: bool, stage: str, check: bool = True
) -> tuple[Tensor, ...]:
    """Replace missing derivatives by zeros. In strict mode, a missing derivative is an error."""
    results = []
    for index, (value, tensor) in enumerate(zip(found, like, strict=True)):
        if value is None:
            if strict:
                kind, _, number = stage.partition(" ")
                raise RuntimeError(_STRICT[kind].format(index=index, number=number))
            value = zeros_like(tensor)
        elif strict and check and create_graph and not value.requires_grad:
            what = "hessian" if stage.startswith("double") else "jacobian"
            raise RuntimeError(_STRICT_GRAPH.format(what=what, index=index))
        results.append(value)
    return tuple(results)


def _returned(values: tuple[Tensor, ...], many: bool, create_graph: bool) -> Any:
    if not create_graph:
        values = tuple(value.detach() for value in values)
    return values if many else values[0]
