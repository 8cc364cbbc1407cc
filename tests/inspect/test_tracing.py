"""A traced backward gives the same gradients as an untraced backward, records every step, and leaves no state behind."""

import gc
import sys
import weakref

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adjoint as torch
from adjoint.inspect import trace_backward
from adjoint.inspect.values import in_short
from adjoint.tape import modes


@st.composite
def programs(draw):
    """Draw a list of operations."""
    return [
        draw(st.tuples(st.integers(0, 6), st.integers(0, 9), st.integers(0, 9)))
        for _ in range(draw(st.integers(1, 12)))
    ]


def run(program):
    """Return the leaves and the loss of a program. The program keeps values moderate."""
    leaves = [
        torch.tensor([0.5, -1.0, 2.0, 0.25], requires_grad=True),
        torch.tensor([1.5, 0.5, -0.5, 1.0], requires_grad=True),
    ]
    pool = list(leaves)
    for kind, one, other in program:
        a, b = pool[one % len(pool)], pool[other % len(pool)]
        if kind == 0:
            new = a * b.tanh()
        elif kind == 1:
            new = a + b.sum()
        elif kind == 2:
            new = a.sin()
        elif kind == 3:
            first, second = a.chunk(2)
            new = torch.cat([second, first * 2])
        elif kind == 4:
            new = a * 1
            new[:2] = b[2:]
        elif kind == 5:
            new = torch.where(a > b, a, b)
        else:
            new = torch.sort(a)[0]
        pool.append(new)
    return leaves, (pool[-1] * pool[0]).sum()


@pytest.mark.thorough
@settings(max_examples=50, deadline=None)
@given(programs())
def test_gradients_are_those_of_an_untraced_backward(program):
    leaves, loss = run(program)
    loss.backward()
    expected = [leaf.grad for leaf in leaves]
    leaves, loss = run(program)
    trace = trace_backward(loss, params={"a": leaves[0], "b": leaves[1]})
    nodes = {tensor.name: tensor.node for tensor in trace.snapshot.tensors if tensor.kind == "leaf"}
    for name, leaf, grad in zip("ab", leaves, expected, strict=True):
        assert (leaf.grad is None) == (grad is None)
        if grad is not None:
            assert numpy.array_equal(leaf.grad._array, grad._array)
            (last,) = [step.accumulated for step in trace.steps if step.node == nodes[name]]
            assert last == in_short(grad._array)
    check_flows(trace)


def check_flows(trace):
    """A node with a single incoming edge receives the gradient that was sent along this edge.

    Every node that runs sends a gradient along each of its outgoing edges.
    """
    nodes = {node.id: node for node in trace.snapshot.nodes}
    sent = {}
    for step in trace.steps:
        assert [(flow.node, flow.index) for flow in step.outgoing] == (
            [] if nodes[step.node].accumulate else nodes[step.node].next
        )
        for flow in step.incoming:
            flows = sent.get((step.node, flow.index), [])
            if len(flows) == 1:
                assert (flow.data, flow.shape) == (flows[0].data, flows[0].shape)
        for flow in step.outgoing:
            if flow.node is not None and flow.data is not None:
                sent.setdefault((flow.node, flow.index), []).append(flow)
    positions = {step.node: number for number, step in enumerate(trace.steps)}
    for step in trace.steps:
        assert all(positions[flow.node] > positions[step.node] for flow in step.outgoing if flow.node in positions)


def test_steps_of_a_product():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    x = torch.tensor([3.0, 4.0])
    w.grad = torch.tensor([10.0, 10.0])
    loss = (w * x).sum()
    trace = trace_backward(loss)
    summed, multiplied, accumulated = trace.steps
    assert [flow.data for flow in summed.incoming] == ["1"]
    assert [flow.data for flow in summed.outgoing] == ["[1, 1]"]
    assert [flow.data for flow in multiplied.outgoing] == ["[3, 4]", None]
    assert multiplied.freed == ["other"]
    assert multiplied.freed_bytes == 8
    assert (accumulated.accumulated, accumulated.incoming[0].data) == ("[13, 14]", "[3, 4]")
    assert trace.snapshot.tensors[0].grad == "[10, 10]"  # the gradient before the backward
    assert trace["MulBackward0"].gradient[0].mean == 1
    assert "w.grad = [13, 14]" in str(trace)
    assert str(trace) in trace.text()


def test_gradients_meet_and_broadcasting_is_undone():
    w = torch.tensor([2.0], requires_grad=True)
    x = torch.ones(3)
    y = w * x
    trace = trace_backward((y + y).sum())
    nodes = {node.id: node.name for node in trace.snapshot.nodes}
    (step,) = [step for step in trace.steps if nodes[step.node] == "MulBackward0"]
    assert step.incoming[0].data == "[2, 2, 2]"
    assert step.outgoing[0].shape == [1]
    assert step.outgoing[0].data == "[6]"


def test_several_outputs_and_undefined_gradients():
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    first, _, third = w.split(1)
    trace = trace_backward((first * third).sum())
    nodes = {node.id: node.name for node in trace.snapshot.nodes}
    (step,) = [step for step in trace.steps if nodes[step.node] == "SplitBackward0"]
    assert [flow.data for flow in step.incoming] == ["[3]", None, "[1]"]


def test_memory_is_freed_when_the_last_node_lets_go():
    w = torch.ones(10, requires_grad=True)
    x = torch.ones(10)
    trace = trace_backward((w * x).sum() + (w * x).sum() + w.exp().sum())
    assert sum(step.freed_bytes for step in trace.steps) == trace.snapshot.bytes == 80
    kept = trace_backward(w.exp().sum(), retain_graph=True)
    assert all(step.freed == [] for step in kept.steps)


def test_arguments_of_backward():
    w, v = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y = w * v
    trace = trace_backward(y, torch.tensor([1.0, 2.0]), inputs=[w], create_graph=False)
    assert numpy.array_equal(w.grad._array, [1, 2])
    assert v.grad is None
    assert [step.accumulated for step in trace.steps if step.accumulated] == ["[1, 2]"]
    trace_backward([w.sum(), (v * 2).sum()])
    assert numpy.array_equal(v.grad._array, [2, 2])
    with pytest.warns(UserWarning, match="create_graph") if not _warned() else _nothing():
        trace_backward((v**3).sum(), create_graph=True)
    assert v.grad.requires_grad
    v.grad = None


def _warned():
    return "cycles" in sys.modules["adjoint._runtime.tracebacks"]._given


class _nothing:
    def __enter__(self):
        return None

    def __exit__(self, *exception):
        return None


def test_hooks_run_and_are_told():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = w * 3
    y.register_hook(lambda grad: grad * 10)
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + 1, inputs[1]))
    y.retain_grad()

    def clear(leaf):
        leaf.grad.zero_()

    w.register_post_accumulate_grad_hook(clear)
    trace = trace_backward(y.sum())
    _, multiplied, accumulated = trace.steps
    assert multiplied.incoming[0].data == "[10, 10]"
    assert multiplied.outgoing[0].data == "[31, 31]"
    assert [hook.partition(":")[0] for hook in multiplied.hooks] == ["tensor", "retain_grad", "node post"]
    assert accumulated.accumulated == "[0, 0]"
    assert numpy.array_equal(y.grad._array, [10, 10])


def assert_nothing_left(y, w):
    assert modes.STATE.recorder is None
    assert not modes.FLAGS.special
    assert y.grad_fn._hooks is None
    assert w._extra is None or w._extra.hooks is None


def test_nothing_is_left_behind():
    w = torch.ones(2, requires_grad=True)
    y = w.exp()
    trace_backward(y.sum())
    assert_nothing_left(y, w)


def test_nothing_is_left_behind_where_a_hook_raises():
    w = torch.ones(2, requires_grad=True)
    y = w.exp()
    z = y * 2
    before = modes.FLAGS.special

    def fail(grad):
        raise ValueError("no")

    z.register_hook(fail)
    with pytest.raises(ValueError, match="no"):
        trace_backward(z.sum())
    assert_nothing_left(y, w)
    assert modes.FLAGS.special == before
    assert w.grad is None


def test_a_trace_keeps_nothing_alive():
    w = torch.ones(2, requires_grad=True)
    y = w.exp()
    references = weakref.ref(y), weakref.ref(y.grad_fn)
    gc.disable()
    try:
        trace = trace_backward(y.sum())
        del y
        assert [reference() for reference in references] == [None, None]
        assert len(trace.steps) == 3
    finally:
        gc.enable()


def test_backwards_within_the_backward_are_left_alone():
    w = torch.ones(2, requires_grad=True)
    v = torch.ones(2, requires_grad=True)
    y = w * 2

    def nested(grad):
        with torch.enable_grad():
            (v * 3).sum().backward()

    y.register_hook(nested)
    trace = trace_backward(y.sum())
    assert len(trace.steps) == 3
    assert numpy.array_equal(v.grad._array, [3, 3])


def test_under_a_profile_both_are_told():
    w = torch.ones(2, requires_grad=True)
    loss = w.exp().sum()
    with torch.autograd.profiler.profile() as profile:
        trace = trace_backward(loss)
    assert len(trace.steps) == 3
    assert any("ExpBackward0" in event.name for event in profile.function_events)


def test_custom_functions_and_checkpoints():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            assert ctx.saved_tensors
            return grad * 2

    w = torch.ones(2, requires_grad=True)
    trace = trace_backward(Twice.apply(w).sum())
    assert [step.freed for step in trace.steps] == [[], ["saved_tensors[0]"], []]
    assert trace.steps[-1].accumulated == "[2, 2]"
    v = torch.ones(2, requires_grad=True)
    trace_backward(torch.utils.checkpoint.checkpoint(lambda x: x.exp().sin(), v, use_reentrant=False).sum())
    assert v.grad is not None


def test_operations_and_nodes_carry_the_time_they_took():
    x = torch.ones(3, requires_grad=True)
    with torch.inspect.recording():
        y = x.sin().sum()
    trace = torch.inspect.trace_backward(y)
    times = {node.name: set(node.seconds) for node in trace.snapshot.nodes}
    both = {"forward", "backward"}
    assert times == {"AccumulateGrad": {"backward"}, "SinBackward0": both, "SumBackward0": both}
    assert all(0 < each < 60 for node in trace.snapshot.nodes for each in node.seconds.values())
