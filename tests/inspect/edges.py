"""Compare a snapshot with the live graph."""

import adjoint as torch
from adjoint.inspect.model import Snapshot
from adjoint.tape.node import AccumulateGrad


def assert_same_edges(picture: Snapshot, roots) -> None:
    """Walk `next_functions` and the snapshot side by side."""
    nodes = {node.id: node for node in picture.nodes}
    tensors = {tensor.id: tensor for tensor in picture.tensors}
    matched, stack = {}, []
    for root, key in zip(roots, picture.roots, strict=True):
        box = tensors[key]
        function = root.grad_fn if root.grad_fn is not None else torch.autograd.graph.get_gradient_edge(root).node
        assert box.output_nr == root.output_nr
        stack.append((function, box.node))
    while stack:
        function, key = stack.pop()
        if function in matched:
            assert matched[function] == key
            continue
        matched[function] = key
        box = nodes[key]
        assert box.name == type(function).__name__
        assert box.accumulate == isinstance(function, AccumulateGrad)
        assert len(box.next) == len(function.next_functions) == len(box.inputs)
        for (other, number), (target, index) in zip(function.next_functions, box.next, strict=True):
            assert (other is None) == (target is None)
            assert number == index
            if other is not None:
                stack.append((other, target))
    assert len(matched) == len(nodes) == len(set(matched.values()))
    for operation in picture.operations:
        made = [tensors[key] for key in operation.outputs]
        assert {tensor.node for tensor in made} == {operation.node}
        flowing = [tensors[key] for key in operation.inputs if tensors[key].kind != "constant"]
        ends = [(target, index) for target, index in nodes[operation.node].next if target is not None]
        assert sorted((tensor.node, tensor.output_nr) for tensor in flowing) == sorted(ends)
