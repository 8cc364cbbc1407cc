"""For views that read storages directly, tangents have the same memory layout as their primals."""

import pytest

import adjoint as torch

PRIMALS = {
    "all": lambda base: base,
    "later rows": lambda base: base[1:],
    "every second row": lambda base: base[::2],
    "columns": lambda base: base[:, 1:3],
    "transposed": lambda base: base.t(),
    "a part transposed": lambda base: base[2:, ::2].t(),
}


@pytest.mark.parametrize("primal", PRIMALS)
@pytest.mark.parametrize("strided", [((3, 2), (4, 1), 1), ((2, 3), (2, 5), 6), ((4,), (3,), None), ((2, 2), (1, 1), 9)])
def test_as_strided_reads_tangents_where_it_reads_the_primal(primal, strided):
    base = torch.arange(24.0).reshape(6, 4)
    x = PRIMALS[primal](base)
    tangent = torch.cos(torch.arange(float(x.numel()))).reshape(x.shape)
    in_memory = PRIMALS[primal](torch.zeros(6, 4))
    in_memory.copy_(tangent)
    expected = in_memory.as_strided(*strided)
    result, found = torch.func.jvp(lambda x: x.as_strided(*strided), (x,), (tangent,))
    assert result.equal(x.as_strided(*strided))
    assert found.equal(expected)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, tangent)
        assert torch.autograd.forward_ad.unpack_dual(dual.as_strided(*strided)).tangent.equal(expected)


@pytest.mark.parametrize("primal", PRIMALS)
def test_changes_through_as_strided_reach_the_tangent(primal):
    def changed(base):
        base = base * 1
        PRIMALS[primal](base).as_strided((2, 3), (4, 1), 5).mul_(3.0)
        return base.sin()

    base, tangent = torch.arange(24.0).reshape(6, 4), torch.linspace(0, 1, 24).reshape(6, 4)
    factor = torch.ones(24)
    factor.as_strided((2, 3), (4, 1), 5).fill_(3.0)
    factor = factor.reshape(6, 4)
    _, found = torch.func.jvp(changed, (base,), (tangent,))
    torch.testing.assert_close(found, (base * factor).cos() * factor * tangent)
