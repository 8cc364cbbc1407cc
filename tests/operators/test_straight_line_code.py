"""The straight-line code of an operator agrees with its slow path: results, layouts, versions, nodes, saved values, errors.

Each sample runs twice: first step by step through the plan, then as generated code. The operands have one dtype, several dtypes,
or another memory layout. The call is out of place, in place, or with `out=`: tensors like the results, which get their bits,
an operand, or a part of the memory of an operand. Some calls run in inference mode, or while another thread is in a mode.
"""

import contextlib
import itertools
import zlib

import numpy
import pytest

import adjoint as torch
from adjoint.dispatch import slow_path
from adjoint.operators import OPERATORS
from adjoint.tape.modes import FLAGS

from .samples import SAMPLES
from .test_every_operator import IN_PLACE_ONLY, as_list, is_sparse
from .test_large_operands import expanded, with_gaps


@contextlib.contextmanager
def slowly(op):
    """Run the plans of an operator step by step, without generating code."""
    op.plans.clear()
    op.frequent.clear()
    op.code.of_patterns.clear()
    into, op.code.into = op.code.into if op.out else None, lambda *_: NotImplemented
    try:
        with beside_a_mode():
            yield
    finally:
        op.code.into = into
        for plan in op.plans.values():
            plan.code = op.code.of_plan(plan)


@contextlib.contextmanager
def beside_a_mode():
    """Keep another thread in a mode."""
    number = 10**9 + len(FLAGS.special)
    FLAGS.special[number] = True
    try:
        yield
    finally:
        del FLAGS.special[number]


SITUATIONS = {
    "alone": (contextlib.nullcontext, contextlib.nullcontext),
    "beside a mode": (contextlib.nullcontext, beside_a_mode),
    "in inference mode": (contextlib.nullcontext, torch.inference_mode),
    "of inference tensors": (torch.inference_mode, torch.inference_mode),
}
"""The contexts in which operands are made, and in which an operator is called."""


OUT_WAYS = "out", "out over an operand", "out over a part"

DTYPES = {
    "float32": ["float32"],
    "float64": ["float64"],
    "bfloat16": ["bfloat16"],
    "complex64": ["complex64"],
    "int64": ["int64"],
    "bool": ["bool"],
    "float32 and float64": ["float32", "float64"],
    "float64 and float32": ["float64", "float32"],
    "float32 and int64": ["float32", "int64"],
    "int32 and float32": ["int32", "float32"],
    "bfloat16 and float32": ["bfloat16", "float32"],
    "float64 and complex64": ["float64", "complex64"],
    "bool and float32": ["bool", "float32"],
}

LAYOUTS = {
    "plain": lambda tensor: tensor,
    "transposed": lambda tensor: tensor.mT.contiguous().mT if tensor.ndim > 1 else tensor,
    "with gaps": with_gaps,
    "expanded": expanded,
}


def built(call, kinds, layout):
    """Create the arguments of a sample. The dtypes are assigned to differentiable tensors in turn."""
    args, kwargs, _ = call.build(requires_grad=False)
    dtypes = itertools.cycle([getattr(torch, kind) for kind in kinds])

    def made(value):
        if isinstance(value, list):
            return [*map(made, value)]
        if not isinstance(value, torch.Tensor):
            return value
        if not value.is_floating_point():
            return layout(value)
        dtype = next(dtypes)
        tensor = layout(value.to(dtype)).detach()
        return tensor.requires_grad_() if tensor.is_floating_point() or tensor.is_complex() else tensor

    return [*map(made, args)], {name: made(value) for name, value in kwargs.items()}


def described(value):
    """Describe a value in a form that can be compared."""
    if isinstance(value, torch.Tensor):
        with torch.no_grad():
            array = value.detach()
            if value.is_neg() and value.dtype is torch.bool:
                return "no such values"
            array = array.resolve_conj().resolve_neg()
            content = array.to(torch.float32) if array.dtype in (torch.bfloat16, torch.float16) else array
        return (
            value.dtype, tuple(value.shape), value.stride() if value.numel() else None, value.requires_grad,
            "inference" if value.is_inference() else value._version,
            value.is_leaf, value._base is None, value.grad_fn and type(value.grad_fn).__name__, content.numpy().tobytes(),
        )  # fmt: skip
    if isinstance(value, (list, tuple)):
        return [*map(described, value)]
    if isinstance(value, numpy.ndarray):
        return value.dtype, value.shape, value.tobytes()
    return repr(value) if isinstance(value, float) else type(value)


def node_of(result):
    """Describe a node: its class, its edges, and its saved values."""
    node = result.grad_fn
    if node is None:
        return None
    edges = [
        (None if next_node is None else type(next_node).__name__, number) for next_node, number in node.next_functions
    ]
    saved = {}
    for name in sorted(name for name in dir(node) if name.startswith("_saved_")):
        saved[name] = described(getattr(node, name))
    return type(node).__name__, edges, saved


def ran(name, way, call, kinds, layout, situation, *, slow):
    """Return the error of a call, or the results, their nodes, and the operands after the call."""
    made_in, called_in = SITUATIONS[situation]
    with made_in():
        args, kwargs = built(call, kinds, layout)
        if way == "in place":
            args[0] = args[0].clone()
    with called_in():
        return called(name, way, args, kwargs, slow)


def called(name, way, args, kwargs, slow):
    """Return the results of a call with these arguments."""
    op = OPERATORS[name]
    function = op.function
    if way == "in place":
        function = op.inplace_function
    seed = zlib.crc32(name.encode())
    made = None
    if way.startswith("out"):
        with torch.no_grad():
            args = [value.detach() if isinstance(value, torch.Tensor) else value for value in args]
            torch.manual_seed(seed)
            try:
                made = function(*args, **kwargs)
            except Exception:
                return "refused without `out=`, too"
        outs = [torch.empty_strided(each.shape, each.stride(), dtype=each.dtype) for each in as_list(made)]
        operands = [value for value in args if isinstance(value, torch.Tensor)]
        if way != "out" and operands:
            outs[0] = operands[-1]
            if way == "out over a part" and operands[-1].ndim and len(operands[-1]) > 1:
                base = torch.cat([operands[-1], operands[-1][:1]])
                args = [base[:-1] if value is operands[-1] else value for value in args]
                outs[0] = base[1:]
        kwargs = {**kwargs, "out": outs[0] if isinstance(made, torch.Tensor) else tuple(outs)}
    torch.manual_seed(seed)
    try:
        if slow:
            with slowly(op):
                results = function(*args, **kwargs)
        else:
            results = function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error), [described(value) for value in args]
    tensors = [result for result in as_list(results) if isinstance(result, torch.Tensor)]
    if way == "out" and not op.shape_of_elements:
        assert [described(each)[-1] for each in as_list(made)] == [described(each)[-1] for each in tensors]
    return described(results), [*map(node_of, tensors)], [described(value) for value in args]


CASES = [
    pytest.param(name, call, id=f"{name}-{number}")
    for name, calls in SAMPLES.items()
    for number, call in enumerate(calls)
    if name in OPERATORS and name not in IN_PLACE_ONLY and not is_sparse(OPERATORS[name])
]


@pytest.mark.one_each("name")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "call"), CASES)
@pytest.mark.long_cases
def test_both_ways_are_the_same(name, call, monkeypatch):
    op = OPERATORS[name]
    monkeypatch.setattr(slow_path, "OFTEN", None)  # calls must not generate code; only `slowly` generates code
    ways = ["function", *(["in place"] if op.inplace else []), *(OUT_WAYS if op.out and not op.many else [])]
    for way, kinds, layout, situation in itertools.product(ways, DTYPES, LAYOUTS, SITUATIONS):
        everywhere = kinds in ("float32", "float32 and float64")
        if not everywhere and (layout != "plain" or (way != "function" and kinds != "int64")):
            continue
        if situation != "alone" and not (everywhere or kinds == "int64"):
            continue
        readers = [ran(name, way, call, DTYPES[kinds], LAYOUTS[layout], situation, slow=slow) for slow in (True, False)]
        assert readers[0] == readers[1], (way, kinds, layout, situation)
