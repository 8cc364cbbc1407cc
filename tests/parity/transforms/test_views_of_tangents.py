"""Tangents of custom functions that return views.

For these functions, PyTorch loads decompositions, and warns once per process. The tests run after the tests of forward mode,
which otherwise treat this warning as an error of PyTorch.
"""
# ruff: noqa: E501

import pytest

torch = pytest.importorskip("torch")

from tests.parity.candidate import candidate
from tests.parity.programs import program_test

PROGRAMS = {
    "tangents_of_views": """
        forward_ad = torch.autograd.forward_ad
        def case(forward, jvp):
            class Function(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return forward(x)
                @staticmethod
                def jvp(ctx, t):
                    return jvp(t)
            with forward_ad.dual_level():
                t = torch.arange(6.).reshape(2, 3)
                dual = forward_ad.make_dual(torch.ones(2, 3), t)
                result = Function.apply(dual)
                tangent = forward_ad.unpack_dual(result).tangent
                show(result, tangent, tangent.stride(), tangent._is_view(), tangent._base is t)
                result.mul_(2)
                show(forward_ad.unpack_dual(result), forward_ad.unpack_dual(dual), t)
        made = [lambda x: x.view(3, 2), lambda x: x.view_as(x), lambda x: x, lambda x: x * 2, lambda x: x[0], lambda x: x.clone(), lambda x: x[0].clone().expand(2, 3)]
        for forward in made[:6]:
            for jvp in made:
                if (forward, jvp) not in ((made[1], made[6]), (made[2], made[6])):
                    raises(lambda: case(forward, jvp))
        for jvp in (lambda t: (t, 3), lambda t: (t, t), lambda t: (t,), lambda t: t, lambda t: [t]):
            raises(lambda: case(lambda x: (x * 1, 3), jvp))
    """,
}

test_views_of_tangents = program_test(PROGRAMS)


SHARED = {
    "expanded": lambda a: a[:1].expand(3, 4),
    "windows": lambda a: a.flatten().unfold(0, 4, 1)[:3],
    "strided": lambda a: a.as_strided((3, 4), (2, 1)),
}


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("function", ["exp", "clone", "abs", "t", "sum"])
def test_elements_that_share_memory_have_tangents_of_their_own(name: str, function: str) -> None:
    primal = SHARED[name](candidate.rand(3, 4, dtype=candidate.float64))
    tangent = candidate.rand(3, 4, dtype=candidate.float64)
    use = lambda a: getattr(a, function)()
    _, expected = candidate.func.jvp(use, (primal.clone(),), (tangent,))
    _, found = candidate.func.jvp(use, (primal,), (tangent,))
    candidate.testing.assert_close(found, expected)
    forward = candidate.autograd.forward_ad
    with forward.dual_level():
        found = forward.unpack_dual(use(forward.make_dual(primal, tangent))).tangent
        candidate.testing.assert_close(found, expected)
