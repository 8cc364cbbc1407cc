"""Cases that the tests of an autograd library cover: nested containers, forward mode, nodes, attributes, transforms."""
# ruff: noqa: E501

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

PROGRAMS = {
    "trees": """
        from collections import namedtuple, OrderedDict, defaultdict, deque
        tree = torch.utils._pytree
        Pair = namedtuple("Pair", "x y")
        values = (1, (1, 2), [1, (2, 3)], {"a": 1, "b": [2]}, OrderedDict(b=1, a=2), (), [], {}, None, Pair(1, 2), deque([1], 3), defaultdict(list, a=1), "ab")
        for value in values:
            leaves, spec = tree.tree_flatten(value)
            show(leaves, str(spec).split("<")[0], spec.num_leaves, spec.num_nodes, spec.num_children, spec.is_leaf(), str(tree.tree_unflatten(leaves, spec)))
            for other in values:
                raises(lambda: str(tree.tree_map(lambda x, y: (x, y), value, other)).replace(" ", "")) if str(value) != "{}" else None
        spec = tree.tree_structure((1, [2, {"a": 3}]))
        show(spec == tree.tree_structure((5, [6, {"a": 7}])), spec == tree.tree_structure((5, [6, {"b": 7}])), spec == 3, hash(spec) == hash(tree.tree_structure((5, [6, {"a": 7}]))))
        show(spec.unflatten([1, 2, 3]), str(spec.child(1)), len(spec.children()), tree.LeafSpec().is_leaf())
        raises(lambda: spec.unflatten([1])); raises(lambda: tree.tree_unflatten(3, spec)); raises(lambda: spec.flatten_up_to(3))
        show(spec.flatten_up_to((1, [(2,), {"a": {}}])))
        show(tree.tree_map_only(int, lambda x: x + 1, [1, 2.0, "a"]), tree.tree_map_only((int, float), lambda x: x + 1, [1, 2.0, "a"]), tree.tree_map_only(lambda x: x == 1, lambda x: 9, [1, 2]))
        raises(lambda: tree.tree_map_only(3, lambda x: x, [1]))
        show(tree.tree_all(lambda x: x > 0, [1, (2,)]), tree.tree_any(lambda x: x > 1, [1]), tree.tree_leaves({"a": [1, None]}), tree.tree_is_leaf(3), tree.tree_is_leaf([3]))
        show(tree.tree_map(lambda x: x, [1, [2]], is_leaf=lambda x: x == [2]), len(tree.tree_leaves([1, (2, 3)], is_leaf=lambda x: isinstance(x, tuple))))
        for prefix in (0, (0, 1), [0, 1], (0, [1, 2]), (0,), (0, (1, 2)), None):
            show(tree._broadcast_to_and_flatten(prefix, tree.tree_structure((1, [2, 3]))))
    """,
    "registered_containers": """
        fn, tree = torch.func, torch.utils._pytree
        class Box:
            def __init__(self, x, y, m): self.x, self.y, self.m = x, y, m
            def __repr__(self): return f"Box({self.x}, {self.y}, {self.m})"
        tree.register_pytree_node(Box, lambda box: ([box.x, box.y], box.m), lambda items, m: Box(*items, m))
        raises(lambda: tree.register_pytree_node(Box, None, None))
        one = torch.ones(2)
        show(str(tree.tree_map(lambda x: x + 1, [Box(1, 2, 3)])))
        parts = lambda box: [box.x, box.y, box.m]
        show(parts(fn.grad(lambda box: (box.x * box.y).sum())(Box(one, one * 3, "k"))))
        show(fn.vmap(lambda box: box.x + box.y)(Box(one, one * 3, "k")), parts(fn.vmap(lambda a: Box(a, a * 2, "z"))(one)))
        show(parts(fn.vjp(lambda a: Box(a, a * 2, "z"), one)[0]), parts(fn.jacrev(lambda a: Box(a, a * 2, "z"))(one)))
        show([parts(box) for box in fn.jvp(lambda a: Box(a, a * 2, "z"), (one,), (one,))])
        show(fn.vmap(lambda box: box.x, in_dims=(Box(0, None, "k"),))(Box(one, one, "k")))
        raises(lambda: fn.vmap(lambda box: box.x, in_dims=(Box(0, None, "q"),))(Box(one, one, "k")))
        tree._deregister_pytree_node(Box)
        raises(lambda: fn.vmap(lambda box: box.x)(Box(one, one, "k")))
    """,
    "containers_of_transforms": """
        from collections import OrderedDict, defaultdict, deque
        fn, tree = torch.func, torch.utils._pytree
        x = torch.ones(2, 3)
        for value in (deque([x, x * 2]), OrderedDict(u=x, v=x), defaultdict(list, u=x), {"u": [x, (x,)]}):
            show(tree.tree_leaves(fn.grad(lambda t: sum((leaf ** 2).sum() for leaf in tree.tree_leaves(t)))(value)))
            show(type(fn.vmap(lambda t: tree.tree_map(lambda leaf: leaf * 2, t))(value)).__name__)
        for dims in (0, (0,), [0], (0, 1), [0, 1], {"a": 0}, None, {"a": 0, "b": 1}, (0, (1,)), 1.0):
            for f in (lambda x: x, lambda x: (x, x), lambda x: [x, x], lambda x: {"a": x, "b": x}, lambda x: (x, (x,))):
                raises(lambda: fn.vmap(f, out_dims=dims)(x))
        for dims in (0, (0,), [0], (0, 1), None, (None,), ((0, 0),), ([0, None],), ({"a": 0, "b": None},), ({"a": 0},), "a", (0.0,)):
            for args in ((x,), ((x, x),), ([x, x],), ({"a": x, "b": x},)):
                raises(lambda: fn.vmap(lambda t: sum(leaf.sum() for leaf in tree.tree_leaves(t)), in_dims=dims)(*args))
        value, pull = fn.vjp(lambda x: (x, {"a": x}), torch.ones(2))
        for given in ((x[0, :2], {"b": x[0, :2]}), [x[0, :2], {"a": x[0, :2]}], (x[0, :2], {"a": None}), (x[0, :2], {"a": 3})):
            raises(lambda: pull(given))
        show(fn.vjp(torch.sum, torch.ones(2))[1](None))
    """,
    "forward_mode_corners": """
        fw = torch.autograd.forward_ad
        one = torch.ones(2)
        with fw.dual_level():
            raises(lambda: fw.make_dual(one, one, level=-2)); raises(lambda: fw.make_dual(one, one, level=3))
            dual = fw.make_dual(one, one * 3)
            show(fw.unpack_dual(dual, level=-1).tangent, fw.unpack_dual(one, level=1).tangent)
            raises(lambda: torch.add(one, one, out=dual))
            for f in (torch.round, lambda d: torch.round(d, decimals=1), lambda d: torch.div(d, 2, rounding_mode="floor"), lambda d: torch.div(d, 2, rounding_mode="trunc"), torch.floor, torch.sign, lambda d: torch.fill(d, 3.0), lambda d: d > 1, lambda d: d.argmax(), lambda d: d.int()):
                show(fw.unpack_dual(f(dual)).tangent)
            for f in (lambda d: d // 2, lambda d: torch.heaviside(d, d)):
                try:
                    f(dual)
                except NotImplementedError as error:
                    show(str(error).startswith("Trying to use forward AD with"))
            with torch.inference_mode():
                inside = fw.make_dual(torch.ones(2), one)
                show(fw.unpack_dual(inside).tangent, fw.unpack_dual(inside * 2).tangent)
    """,
    "accumulating_by_hand": """
        x = torch.ones(2, requires_grad=True)
        node = (x * 2).grad_fn.next_functions[0][0]
        show(node(torch.ones(2)), x.grad, node(None), x.grad, node(torch.ones(2)), x.grad)
        raises(lambda: node()); raises(lambda: node(3))
        x.register_hook(lambda grad: show("hook")); x.register_post_accumulate_grad_hook(lambda p: show("after", p.grad))
        node.register_prehook(lambda grads: show("before"))
        with torch.no_grad():
            show(node(torch.ones(2)))
        x.grad = None
        show(node(torch.ones(2, requires_grad=True) * 2), x.grad.requires_grad)
        class Several(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 1, None, 3, x.double()
            @staticmethod
            def backward(ctx, *grads): return grads[0]
        show([(m.shape, str(m.dtype)) for m in Several.apply(x)[0].grad_fn._input_metadata], [m.shape for m in (x * 2).grad_fn._input_metadata])
    """,
    "saved_tensors_share_versions": """
        for kind in range(4):
            class Save(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.save_for_backward(x)
                    return x.sin()
                @staticmethod
                def backward(ctx, grad):
                    (x,) = ctx.saved_tensors
                    before = a._version
                    x.add_(1)
                    show(a._version == before, x._version, packed[-1]._version)
                    return grad
            packed = []
            a = torch.tensor(1.0, requires_grad=True).clone()
            other = a.clone().detach()
            makers = [lambda x: x, lambda x: other, lambda x: x.clone(), lambda x: a]
            def pack(x):
                packed.append(makers[kind](x))
                return packed[-1]
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
                b = Save.apply(a)
            b.backward()
        class Raw(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x, None)
                return x * 2
            @staticmethod
            def backward(ctx, grad): return grad
        x = torch.ones(2, requires_grad=True)
        saved = torch._C._autograd.SavedTensor
        show([isinstance(each, saved) for each in Raw.apply(x).grad_fn._raw_saved_tensors], isinstance(x.exp().grad_fn._raw_saved_result, saved), isinstance(x[torch.tensor([0])].grad_fn._raw_saved_indices[0], saved))
    """,
    "attributes": """
        x = torch.ones(2, requires_grad=True)
        del x.grad
        for name in ("data", "requires_grad", "_backward_hooks"):
            raises(lambda: delattr(x, name))
        x.volatile = True
        del x.volatile
        torch.autograd.Variable(x, volatile=True)
        for grad in (torch.ones(2, device="meta"), torch.ones(3), torch.ones(2).double(), 3):
            raises(lambda: setattr(x, "grad", grad))
        show(str(type(x)).replace("adjoint", "torch"), str(type(x.shape)).replace("adjoint", "torch"), str(type(x.device)).replace("adjoint", "torch"), str(type(x.dtype)).replace("adjoint", "torch"))
        show(x.resize(2, 1).shape, x.resize_as(torch.ones(1, 2)).shape)
        raises(lambda: torch.autograd.set_detect_anomaly(True, 3))
        class Old(torch.autograd.function.InplaceFunction): pass
        Old(True)
    """,
    "numbers_that_require_grad": """
        v = torch.tensor(2.0, requires_grad=True)
        one = torch.ones(1)
        def refuses(f):
            try:
                f(v)
            except TypeError:
                show(True)
            else:
                show(False)
            show(f(v.detach()) is not None)
        F = torch.nn.functional
        for f in (lambda n: torch.full((2,), n), torch.arange, lambda n: torch.full_like(one, n), lambda n: one.new_full((2,), n), lambda n: torch.add(one, 1, alpha=n), lambda n: F.leaky_relu(one, n), lambda n: F.elu(one, n), lambda n: F.hardshrink(one, n), lambda n: F.threshold(one, n, 0.0), lambda n: torch.addmm(one[None], one[None], one[None], beta=n), lambda n: torch.zeros(2).uniform_(0, n), lambda n: torch.zeros(2).normal_(0, n), lambda n: torch.zeros(2).exponential_(n)):
            refuses(f)
        for flag in (1, "a"):
            for f in (torch.ones, torch.rand):
                try:
                    f(2, requires_grad=flag)
                except TypeError:
                    show("refused")
        y = torch.ones(3)
        for kind in (torch.int8, torch.int16, torch.int32, torch.int64, torch.float32):
            index = torch.tensor([0], dtype=kind)
            raises(lambda: y[index]); raises(lambda: y.__setitem__(index, 1.0))
        show(y[torch.tensor(0, dtype=torch.int8)])
    """,
    "captured_inference_tensors": """
        fn = torch.func
        with torch.inference_mode():
            x = torch.ones(2)
        w = torch.ones(2, requires_grad=True)
        show(fn.grad(lambda z: (z * x).sum())(torch.ones(2)), fn.jacrev(lambda z: z * x)(torch.ones(2)), fn.vjp(lambda z: z * x, torch.ones(2))[1](x), fn.grad(fn.grad(lambda z: z * x[0] * z))(torch.tensor(1.0)), fn.vmap(fn.grad(lambda z: z * x[0] * z))(torch.ones(2)))
        raises(lambda: fn.vmap(lambda z: w * x * z)(torch.ones(2))); raises(lambda: w * x)
    """,
    "derivatives_that_are_not_written": """
        fw = torch.autograd.forward_ad
        calls = (torch.detach_copy, lambda x: x // x, lambda x: torch.heaviside(x, x), lambda x: torch.binomial(x, x * 0.1), lambda x: torch.special.zeta(x, x), lambda x: torch.geqrf(x.reshape(1, 2))[0], torch.unique, torch.unique_consecutive, lambda x: torch.igamma(x, x), lambda x: torch.igammac(x, x))
        for f in calls:
            y = f(torch.rand(2).add(1).requires_grad_())
            show(y.grad_fn.name(), type(y.grad_fn).__name__)
            raises(lambda: y.sum().backward())
            with fw.dual_level():
                try:
                    f(fw.make_dual(torch.rand(2).add(1), torch.ones(2)))
                except NotImplementedError as error:
                    show(str(error).split(" because")[0])
        with fw.dual_level():
            raises(lambda: fw.make_dual(torch.ones(2), torch.ones(2)).resize_(3))
    """,
    "saved_tensors_read_by_hand": """
        class Keeps(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x, None, x.sin())
                return x * 2
            @staticmethod
            def backward(ctx, grad): return grad
        x = torch.ones(2, requires_grad=True)
        y = Keeps.apply(x)
        saved = y.grad_fn._raw_saved_tensors
        show(saved[0].unpack() is x, saved[1].unpack(), saved[2].unpack())
        saved[0].register_hooks(lambda x: 3, lambda packed: torch.ones(2) * packed)
        show(saved[0].unpack(), saved[0].data)
        z = x * 2
        w = z * z
        z.add_(1)
        raises(lambda: w.grad_fn._raw_saved_self.unpack())
    """,
    "arguments_of_functions_by_keyword_only": """
        class Keyword(torch.autograd.Function):
            @staticmethod
            def forward(x, *, y): return x + y
            @staticmethod
            def setup_context(ctx, inputs, output): pass
            @staticmethod
            def backward(ctx, grad): return grad
            @staticmethod
            def vmap(info, in_dims, x, *, y): return x + y, 0
        x = torch.ones(3)
        raises(lambda: Keyword.apply(x, y=x))
        raises(lambda: torch.vmap(lambda x: Keyword.apply(x, y=x))(x))
    """,
    "rules_are_called_for_batched_arguments_only": """
        class Product(torch.autograd.Function):
            @staticmethod
            def forward(x, y): return x * y
            @staticmethod
            def setup_context(ctx, inputs, output): ctx.save_for_backward(*inputs), ctx.save_for_forward(*inputs)
            @staticmethod
            def backward(ctx, grad): x, y = ctx.saved_tensors; return grad * y, grad * x
            @staticmethod
            def jvp(ctx, xt, yt): x, y = ctx.saved_tensors; return xt * y + yt * x
            @staticmethod
            def vmap(info, in_dims, x, y):
                show(info.batch_size, info.randomness, in_dims)
                return Product.apply(*(each if dim is None else each.movedim(dim, 0) for each, dim in zip((x, y), in_dims))), 0
        a, b = torch.arange(6.).reshape(3, 2), torch.arange(2.)
        fn = torch.func
        show(fn.hessian(lambda a: Product.apply(a, a).sum())(b), fn.jacfwd(Product.apply)(b, b), fn.jacrev(Product.apply)(b, b))
        show(fn.vmap(fn.grad(lambda a, b: Product.apply(a, b).sum()), (0, None))(a, b), fn.vmap(Product.apply, (0, None))(a, b))
        for returned in (lambda x: (x, 0), lambda x: (x, None), lambda x: (x, -1), lambda x: (x * 2, 0), lambda x: x, lambda x: (x, 0, 1)):
            class Rule(Product):
                vmap = staticmethod(lambda info, in_dims, x, y: returned(x))
            raises(lambda: show(fn.vmap(Rule.apply)(a, a)))
    """,
    "same_random_numbers_of_different_distributions": """
        for f in (torch.bernoulli, lambda x: torch.bernoulli(x, 0.5), lambda x: torch.multinomial(x, 2), lambda x: torch.normal(x, 1.), torch.poisson, lambda x: torch.binomial(x, x * 0.5), lambda x: torch.zeros(3).bernoulli_(x), lambda x: x.clone().normal_(), torch.rand_like, lambda x: torch.nn.functional.dropout(x, 0.5)):
            for randomness in ("same", "different", "error"):
                torch.manual_seed(0)
                raises(lambda: show(torch.vmap(f, randomness=randomness)(torch.ones(2, 3))))
    """,
    "tables_of_operators": """
        eye, F, ones = torch.eye(2), torch.nn.functional, torch.ones
        coo = eye.to_sparse() * 5
        raises(lambda: show((coo // 2).to_dense(), coo.div(2, rounding_mode="trunc").to_dense(), coo.int().floor_divide_(torch.tensor(2)).to_dense()))
        raises(lambda: coo // coo); raises(lambda: eye // coo); raises(lambda: coo / ones(2))
        raises(lambda: coo @ torch.eye(3).to_sparse())
        for count in (0, 3, -1):
            raises(lambda: eye.to_sparse(count))
        show(torch.empty(2, 2, layout=torch.sparse_coo)._nnz())
        csr = eye.to_sparse_csr()
        show(csr.sum(0, keepdim=True).to_dense())
        raises(lambda: csr.sum(0)); raises(lambda: csr.to_sparse_csc().sum(1, keepdim=True))
        for weight in (torch.tensor(0.5, dtype=torch.double), torch.tensor(1), torch.tensor(0.25, dtype=torch.bfloat16), ones(2, dtype=torch.double)):
            raises(lambda: show(torch.lerp(ones(2), torch.zeros(2), weight)))
        raises(lambda: torch.movedim(ones(2, 3, 4, 5, 6), (1, 0, -4), (0, 4, -5)))
        raises(lambda: torch.linalg.norm(eye, dim=(0, 1, 5))); raises(lambda: torch.linalg.norm(eye, 2, dim=(0, 1, 2)))
        for beta in (2, 0.5, True):
            raises(lambda: show(torch.addr(eye.bool(), ones(2).bool(), ones(2).bool(), beta=beta)))
        raises(lambda: torch.fft.fftfreq(4, dtype=torch.int)); raises(lambda: torch.return_types.max((1, 2, 3)))
        for key in ((0, 5), (0, 0, 9), (..., 9), (None, 5), (0, ..., 9), (0, slice(0, 1), 9), (None, 0, None, 9)):
            raises(lambda: torch.zeros(3, 4, 5)[key])
        a = ones(1, 2, 2)
        attend = F.scaled_dot_product_attention
        raises(lambda: attend(a, a, a.double()))
        show(F.max_pool2d_with_indices(torch.arange(16.0).view(1, 4, 4), 2, return_indices=True))
        show(torch.masked._input_mask(eye, mask=torch.tensor([True, False])))
        raises(lambda: torch.masked._input_mask(eye)); raises(lambda: torch.masked._input_mask(eye, mask=ones(1, 2, 2).bool()))
        half = torch.tensor(2.0, dtype=torch.bfloat16, requires_grad=True)
        torch.dist(half, torch.tensor(1.0, dtype=torch.bfloat16), 4).backward()
        show(half.grad)
        meta = ones(2, device="meta")
        show(torch.testing.assert_close(meta, meta))
        raises(lambda: torch.testing.assert_close(torch.tensor(True), torch.tensor(False)))
    """,
    "tables": """
        mask, numbers = torch.tensor([[True, False, True], [False, False, False]]), torch.rand(2, 3)
        for name in ("sum", "amax", "median", "std", "cumsum", "softmax", "normalize"):
            op = getattr(torch.masked, name)
            raises(lambda: show(torch.masked._output_mask(op, numbers, mask=mask), torch.masked._output_mask(op, numbers, 1, mask=mask[0])))
            raises(lambda: torch.masked._output_mask(op, numbers))
        show(torch.masked._output_mask(torch.masked.prod, numbers, dim=-1, keepdim=True, mask=mask), torch.masked._output_mask(torch.masked.norm, numbers, 2, 1, mask=mask))
        raises(lambda: torch.masked._output_mask(torch.masked.sum, numbers, dim=5, mask=mask))
        for offset in (None, 0, 3, 5, 10):
            x = torch.arange(20.0)[5:15].requires_grad_()
            show(torch.autograd.grad((x.as_strided((2, 2), (1, 2), offset) * torch.tensor([1.0, 2.0])).sum(), x))
        number = torch.tensor([1, 2, 3])
        for name in ("add", "radd", "rmul", "rand", "ror", "rxor", "mul"):
            try:
                show(getattr(torch.Tensor, f"__{name}__")(2, number))
            except TypeError as error:
                show(str(error).split(" for ")[1])
        targets = torch.empty(4, 2), torch.empty(0)
        show(torch.histogram(torch.tensor([0.1, 0.2, 0.9]), 2, range=(0.0, 1.0), out=targets), [t.shape for t in targets])
        show(torch.histogram(torch.arange(4.0), torch._neg_view(torch.tensor([0.0, -1, -5]))))
        for f in (torch.softmax, torch.log_softmax, lambda x, d, out: torch.diag(x, out=out), lambda x, d, out: torch.quantile(x, 0.5, d, out=out)):
            x, leaf = ones(3, requires_grad=True), f(ones(3), 0, out=ones(0)).requires_grad_()
            for given in (x, x.detach()):
                try:
                    show(f(given, 0, out=leaf))
                except RuntimeError as error:
                    show(str(error).split("(): ")[-1], leaf)
            show(f(x, 0, out=ones(0)))
        for f, shape in ((F.dropout3d, (3, 2, 2, 2)), (F.dropout1d, (3, 4))):
            x = ones(shape, requires_grad=True) * 1
            dropped = f(x, 0.5, training=True, inplace=True)
            show(dropped is x, x.shape, x._version, x.grad_fn.name())
        show(torch.vmap(torch.argwhere)(ones(2, 3)))
        with torch.autograd.forward_ad.dual_level():
            x, columns = torch.autograd.forward_ad.make_dual(torch.rand(3, 2), ones(3, 2)), torch.rand(2, 3).t()
            for result in (x * columns, columns * x, x[:, :1].expand(3, 2) + columns, columns.exp() * x.sin()):
                show(result.stride(), torch.autograd.forward_ad.unpack_dual(result).tangent.stride())
        raises(lambda: torch.gradient(ones(3, 3), spacing=[torch.tensor([1, 2, 4]), torch.empty(3, device="meta")], dim=(0, 1)))
    """,
}

test_autograd_cases = program_test(PROGRAMS)
