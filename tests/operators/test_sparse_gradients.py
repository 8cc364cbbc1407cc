"""Every operator gives the same numbers for a sparse gradient and for the equal dense gradient."""

import numpy
import pytest

import adjoint as torch

from .test_every_operator import DIFFERENTIABLE, as_list, of_tensors

LAYOUTS = {
    "coo": lambda grad: grad.to_sparse(),
    "rows": lambda grad: grad.to_sparse(1),
    "uncoalesced": lambda grad: torch.sparse_coo_tensor(
        torch.cat([grad.to_sparse().indices()] * 2, 1), torch.cat([grad.to_sparse().values() / 2] * 2), grad.shape
    ),
    "csr": lambda grad: grad.to_sparse_csr(),
    "csc": lambda grad: grad.to_sparse_csc(),
    "bsr": lambda grad: grad.to_sparse_bsr((1, 1)),
    "bsc": lambda grad: grad.to_sparse_bsc((1, 1)),
}


def gradient_for(output):
    """Return a gradient in which every third element is zero."""
    generator = numpy.random.RandomState(0)
    values = numpy.asarray(generator.randn(*output.shape) * (generator.rand(*output.shape) < 0.7))
    grad = torch.from_numpy(values).to(output.dtype)
    return grad * (1 + 2j) if output.is_complex() else grad


def check(case, layouts):
    name, call = case
    for complex_numbers in {False, True} if call.complex_numbers is True else {call.complex_numbers == "only"}:
        args, kwargs, tensors = call.build(complex_numbers)
        for output in as_list(of_tensors(name, call, args, kwargs)(*tensors)):
            if output.grad_fn is None or not output.numel():
                continue
            grad = gradient_for(output)
            for layout in layouts:
                if layout in ("coo", "uncoalesced") or output.ndim == 2 or (layout == "rows" and output.ndim):
                    compare(output, tensors, grad, LAYOUTS[layout](grad))


def compare(output, tensors, dense, sparse):
    for create_graph in (False, True):
        options = {"retain_graph": True, "create_graph": create_graph, "allow_unused": True}
        expected = torch.autograd.grad(output, tensors, dense, **options)
        found = torch.autograd.grad(output, tensors, sparse, **options)
        for one, other in zip(found, expected, strict=True):
            assert (one is None) == (other is None)
            if other is not None:
                assert one.dtype == other.dtype
                one, other = (each.detach().to_dense().resolve_conj().numpy() for each in (one, other))
                numpy.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("name", "call"), DIFFERENTIABLE)
@pytest.mark.one_each("name")
def test_gradients_of_coordinates(name, call):
    check((name, call), ["coo"])


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "call"), DIFFERENTIABLE)
def test_gradients_of_other_sparse_layouts(name, call):
    check((name, call), [layout for layout in LAYOUTS if layout != "coo"])


def test_expanded_rows_are_appended_to_a_sparse_gradient():
    table, rows = torch.nn.Embedding(10, 3, sparse=True), torch.tensor([7, 1, 3])
    for _ in range(2):
        table(rows).sum().backward()
    assert table.weight.grad._indices().tolist() == [[7, 1, 3, 7, 1, 3]]
    assert torch.equal(table.weight.grad.to_dense()[rows], torch.full((3, 3), 2.0))
