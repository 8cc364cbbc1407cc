"""Operators called by the names of PyTorch's dispatcher: arguments, the types of results, gradients, and wrappers as `out`."""
# ruff: noqa: E501

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

PROGRAMS = {
    "types_of_results": """
        aten = torch.ops.aten
        x = torch.arange(6.).view(2, 3)
        for result in (aten.split.Tensor(x, 1), aten.split(x, 1), aten.unbind.int(x), aten.chunk(x, 2), aten.max.dim(x, 0),
                       aten.sort.default(x), aten.topk(x, 1), aten.linalg_svd(x), aten.aminmax(x), aten.frexp(x), aten.mode(x),
                       aten.linalg_slogdet(x[:, :2]), aten.var_mean.correction(x), aten.hsplit.int(x, 3), aten.where(x > 1),
                       aten.meshgrid([x[0], x[0]]), aten.broadcast_tensors([x, x]), aten.atleast_1d.Sequence([x])):
            show(type(result).__name__, type(result).__module__, [tuple(each.shape) for each in result])
    """,
    "composites": """
        aten = torch.ops.aten
        x = torch.arange(6.).view(2, 3)
        h = x[:, :2]
        show(aten.size(x), aten.stride(x), aten.sym_size(x), aten.sym_size.int(x, 1), aten.sym_stride(x), aten.sym_numel(x), aten.dim(x))
        show(aten.storage_offset(x[1]), aten.sym_storage_offset(x[1]), aten.is_contiguous(x), aten.item(x[1, 1]), aten.is_leaf(x))
        show(aten.numpy_T(x), aten.mT(x), aten.mH(x), aten.matrix_H(x), aten.lift(x), aten.lift_fresh_copy(x))
        show(aten.linear(x, x), aten.one_hot(torch.tensor([1])), aten.relu6(x), aten.pad(x, [1, 1]), aten.l1_loss(x, x + 1, 2))
        show(aten.lstm_cell(x, [h, h], torch.ones(8, 3), torch.ones(8, 2)), aten.gru_cell(x, h, torch.ones(6, 3), torch.ones(6, 2)))
        show(aten.pad_sequence([x, x[:1]]), aten.nonzero_numpy(x), aten.tensordot(x, x, [1], [1]), aten.__and__(x > 1, x > 2))
        show(aten.max_pool2d_with_indices(x[None], 2), aten.max_pool2d_with_indices.default(x[None], [2], 1))
    """,
    "gradients_of_convolutions": """
        forward_ad = torch.autograd.forward_ad
        x, w = torch.arange(16.).view(1, 1, 4, 4), torch.arange(18.).view(2, 1, 3, 3)
        grad = torch.ones(1, 2, 2, 2)
        def gradients(*given, mask=(True, True, True)):
            return torch.ops.aten.convolution_backward(*given, (2,), (1, 1), (0, 0), (1, 1), False, (0, 0), 1, mask)
        show(gradients(grad, x, w, mask=(False, False, False)))
        for place in range(3):
            for mask in ((True, True, True), (False, True, True), (True, False, False)):
                with forward_ad.dual_level():
                    given = [grad, x, w]
                    given[place] = forward_ad.make_dual(given[place], torch.full_like(given[place], 2))
                    for result in gradients(*given, mask=mask):
                        show(None if result is None else tuple(forward_ad.unpack_dual(result)))
        with torch.inference_mode():
            show(gradients(grad, x, w))
        w.requires_grad_()
        result = gradients(grad, x, w)[0]
        result.sum().backward()
        show(result, w.grad)
    """,
    "single_numbers_for_lists": """
        with torch.library._scoped_library('numbers', 'FRAGMENT') as library:
            library.define('f(Tensor x, int[2] l=1, float[3]? m=None, bool[2] b=True, int[] z=[1], SymInt[2] s=0, int[2]? q=None) -> Tensor')
            library.impl('f', lambda *args: (show(args[1:]), args[0])[1], 'CPU')
            x, f = torch.ones(1), torch.ops.numbers.f
            f(x), f(x, 5), f(x, [1]), f(x, True), f(x, m=2.5), f(x, m=[1, 2, 3]), f(x, q=4)
            for names in (dict(m=2), dict(b=False), dict(z=3), dict(s=4), dict(l=2.5)):
                raises(f, x, **names)
    """,
    "versions_of_wrappers": """
        class Wrapper(torch.Tensor):
            @staticmethod
            def __new__(cls, inner):
                made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
                made.inner = inner
                return made
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                unwrapped = lambda each: each.inner if isinstance(each, cls) else each
                args, kwargs = map(unwrapped, args), {name: unwrapped(each) for name, each in (kwargs or {}).items()}
                result = func(*args, **kwargs)
                return cls(result)
        ones = torch.ones(2)
        for change in (lambda w: w.add_(1), lambda w: w.zero_(), lambda w: w.copy_(ones), lambda w: w.mul_(Wrapper(ones)),
                       lambda w: torch.sin(ones, out=w), lambda w: torch.sin(Wrapper(ones), out=w), lambda w: torch.add(ones, ones, out=w)):
            for recording in (True, False):
                with torch.set_grad_enabled(recording):
                    wrapper = Wrapper(torch.zeros(2))
                    change(wrapper)
                    show(wrapper._version, wrapper.inner)
        x = torch.ones(2, requires_grad=True)
        x.grad = Wrapper(torch.zeros(2))
        held = x.grad
        for _ in range(2):
            (x * 2).sum().backward()
            show(x.grad is held, held.inner)
        y = Wrapper(torch.ones(2)).requires_grad_()
        y.grad = Wrapper(torch.zeros(2))
        held = y.grad
        (y * 2).sum().backward()
        show(y.grad is held, held.inner)
    """,
}

test_program_shows_the_same = program_test(PROGRAMS)
