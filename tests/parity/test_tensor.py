"""Tensors: creation, attributes, conversions, Python protocols, random numbers, printing."""
# ruff: noqa: E501

import pytest

torch = pytest.importorskip("torch")

import adjoint

from .programs import program_test

PROGRAMS = {
    "tensor_infers": """
        for data in (1, 1.5, True, 1j, [], [1, 2], [1, 2.5], [True, 2], [1, 2j], [[1, 2], [3, 4]], (1, 2), [(1,), (2,)], [[]], [[], []],
                     range(3), numpy.arange(3), numpy.float32(2), numpy.ones((2, 2)), numpy.array(3), [numpy.array([1, 2]), numpy.array([3, 4])],
                     numpy.array([True]), numpy.int8(3), [numpy.float32(1), 2], [numpy.float64(1)], numpy.array([1, 2], 'uint8'),
                     2**40, [2**62], -5, float('nan'), [float('inf'), 1]):
            show(torch.tensor(data))
        show(torch.tensor([torch.tensor(1.), torch.tensor(2)]), torch.tensor(torch.tensor([1, 2])), torch.tensor([[torch.tensor(1)]]))
        raises(lambda: torch.tensor([torch.ones(2), torch.ones(2)]))
    """,
    "tensor_options": """
        for dtype in ('float16', 'bfloat16', 'float32', 'float64', 'int8', 'int16', 'int32', 'int64', 'uint8', 'bool', 'complex64', 'complex128'):
            show(torch.tensor([0, 1, 2], dtype=getattr(torch, dtype)))
        show(torch.tensor([1.9, -1.9], dtype=torch.int64), torch.tensor([True], dtype=torch.float32))
        show(torch.tensor(1.0, requires_grad=True), torch.tensor([1.], device='cpu').device, torch.tensor([1.], device=torch.device('cpu')).device)
        warns(lambda: torch.tensor(torch.ones(2)))
        raises(lambda: torch.tensor(1.5, dtype=torch.bool, requires_grad=True))
        x = torch.ones(2, requires_grad=True)
        warns(lambda: torch.tensor(x))
    """,
    "as_tensor_and_from_numpy": """
        a = numpy.arange(4.)
        t = torch.from_numpy(a)
        t[0] = 9
        show(a, t, t.dtype, torch.from_numpy(a.reshape(2, 2).T).stride(), torch.from_numpy(a[::2]).stride())
        s = torch.as_tensor(a)
        s[1] = 8
        show(a, torch.as_tensor(s) is s, torch.as_tensor(s, dtype=torch.float32) is s, torch.as_tensor([1, 2]), torch.as_tensor(2.5))
        c = torch.tensor(a)
        c[0] = 100
        show(a)
        for d in ('uint8', 'int8', 'int16', 'int32', 'int64', 'float16', 'float32', 'float64', 'complex64', 'complex128', 'bool'):
            show(torch.from_numpy(numpy.ones(2, d)))
        raises(lambda: torch.from_numpy(numpy.ones(2, 'datetime64[s]') if False else numpy.array(['a'])))
        raises(lambda: torch.from_numpy(5))
        show(torch.asarray(a).data_ptr() == t.data_ptr(), torch.asarray([1., 2.], requires_grad=True))
        show(torch.from_numpy(numpy.array(3.0)).shape, torch.from_numpy(numpy.zeros((0, 3))).shape)
    """,
    "filled": """
        show(torch.zeros(2, 3), torch.zeros((2, 3)), torch.zeros([2]), torch.zeros(()), torch.zeros(0), torch.zeros(2, dtype=torch.int32), torch.zeros(torch.Size([2])))
        show(torch.ones(2, requires_grad=True), torch.ones(2, dtype=torch.bool), torch.full((2,), 3), torch.full((2,), 3.5), torch.full((2,), True), torch.full((), 1j))
        show(torch.full((2,), 3, dtype=torch.float16), torch.full(size=(1,), fill_value=2), torch.zeros(size=(1, 2)))
        show(torch.empty(2, 3).shape, torch.empty(2, dtype=torch.int64).dtype, torch.empty((0,)).shape)
        show(torch.zeros(2, out=torch.ones(2)))
        x = torch.ones(2, 3, dtype=torch.float64)
        show(torch.zeros_like(x), torch.ones_like(x, dtype=torch.int32), torch.full_like(x, 7), torch.empty_like(x).shape, torch.zeros_like(x.t()).stride())
        show(torch.zeros_like(x, requires_grad=True), torch.zeros_like(x[:, ::2]).stride(), torch.empty_like(x.expand(2, 3)).stride(), torch.zeros_like(x[0].expand(2, 3)).stride())
        show(x.new_zeros(2), x.new_ones((2, 2)), x.new_full((1,), 3), x.new_empty(2).dtype, x.new_tensor([1, 2]), x.new_zeros(2, dtype=torch.int8), x.new_zeros((2,), requires_grad=True))
        show(torch.empty_strided((2, 3), (1, 2)).stride(), torch.scalar_tensor(3), torch.scalar_tensor(3, dtype=torch.int64))
        show(x.new(2).shape, x.new([1., 2.]), x.new_tensor(2.5).dtype)
    """,
    "ranges": """
        show(torch.arange(5), torch.arange(1, 4), torch.arange(1, 2, 0.3), torch.arange(5, 0, -2), torch.arange(0), torch.arange(2.5), torch.arange(0, 1, 0.1, dtype=torch.float64))
        show(torch.arange(3, dtype=torch.float32), torch.arange(1.0, 4.0), torch.arange(end=3), torch.arange(start=1, end=3), torch.arange(3, requires_grad=False), torch.arange(0, 5, 2, dtype=torch.uint8))
        show(torch.arange(torch.tensor(3)), torch.arange(0, 2**31 + 2, 2**30), torch.arange(-3, 3, 1.5), torch.arange(3, dtype=torch.bfloat16), torch.arange(True))
        show(torch.linspace(0, 1, 5), torch.linspace(-2, 3, 4, dtype=torch.float64), torch.linspace(0, 10, 4, dtype=torch.int64), torch.linspace(0, 1, 1), torch.linspace(0, 1, 0), torch.linspace(5, 1, 3), torch.linspace(start=0, end=1, steps=2))
        show(torch.linspace(0, 1j, 3), torch.logspace(0, 2, 3), torch.logspace(0, 2, 3, base=2), torch.logspace(-1, 1, 2, dtype=torch.float64), torch.linspace(0, 1, 11), torch.linspace(-10, 10, 13))
        show(torch.eye(2), torch.eye(2, 3), torch.eye(3, dtype=torch.int64), torch.eye(0), torch.eye(2, requires_grad=True), torch.eye(n=2, m=1))
        warns(lambda: torch.range(1, 3))
        show(torch.tril_indices(3, 3), torch.triu_indices(2, 3, 1))
    """,
    "constructors": """
        show(torch.Tensor(2, 3).shape, torch.Tensor([1, 2]), torch.Tensor([[1, 2], [3, 4]]), torch.Tensor().shape, torch.Tensor(torch.Size([2])).shape, torch.Tensor(0).shape)
        show(torch.Tensor((1, 2)), torch.Tensor(numpy.ones(2, 'float32')), torch.Tensor([True, False]), torch.Tensor([1.5]).dtype)
        show(torch.FloatTensor([1, 2]), torch.DoubleTensor([1, 2]), torch.LongTensor([1, 2]), torch.IntTensor([1, 2]), torch.ShortTensor([1]), torch.CharTensor([1]), torch.ByteTensor([1]), torch.BoolTensor([True]), torch.HalfTensor([1]), torch.BFloat16Tensor([1.]))
        show(torch.LongTensor(2).shape, torch.FloatTensor(2, 2).shape, torch.LongTensor([]).shape, torch.FloatTensor().shape)
        x = torch.ones(2)
        y = torch.Tensor(x)
        y[0] = 5
        show(x, y is x, y.data_ptr() == x.data_ptr())
        raises(lambda: torch.Tensor(2.5))
        raises(lambda: torch.LongTensor([1.5, 'a']))
        raises(lambda: torch.FloatTensor(torch.LongTensor([1])))
        raises(lambda: torch.Tensor('a'))
        raises(lambda: torch.Tensor(None))
        raises(lambda: torch.Tensor([1, 2], dtype=torch.int64))
        show(torch.LongTensor([1.7, 2.2]), isinstance(x, torch.FloatTensor), isinstance(x, torch.LongTensor), isinstance(x, torch.Tensor))
        show(type(x), type(torch.LongTensor([1])), x.type(), torch.LongTensor([1]).type(), torch.ones(1, dtype=torch.bool).type(), torch.ones(1).bfloat16().type(), torch.ones(1).cfloat().type() if hasattr(x, 'cfloat') else None)
    """,
    "attributes": """
        x = torch.arange(24.).reshape(2, 3, 4)
        show(x.shape, x.size(), x.size(1), x.size(-1), x.dim(), x.ndim, x.ndimension(), x.numel(), x.nelement(), x.stride(), x.stride(0), x.stride(-1), x.storage_offset(), x.is_contiguous())
        show(x.element_size(), x.nbytes, x.itemsize, x.dtype, x.device, x.layout, len(x), x.is_floating_point(), x.is_complex(), x.is_signed(), x.is_cuda, x.is_sparse, x.is_quantized, x.is_meta, x.names if False else None)
        y = x[1, :, 1:]
        show(y.storage_offset(), y.stride(), y.is_contiguous(), y.contiguous().stride(), y.data_ptr() - x.data_ptr(), y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr(), x.untyped_storage().nbytes())
        show(x.T.shape if x.dim() == 2 else None, x.mT.shape, x[0].T.shape, x[0].mT.stride(), x.permute(2, 0, 1).stride(), x.permute(2, 0, 1).is_contiguous())
        show(x.requires_grad, x.grad, x.grad_fn, x.is_leaf, x.output_nr, x._version, x._base, x.name, x.retains_grad)
        show(x.real is x, (x + 0j).imag[0, 0], (x + 1j).real.stride(), x.is_conj(), x.is_neg(), x.is_inference(), x.is_pinned() if False else None)
        raises(lambda: x.size(3))
        raises(lambda: x.stride(5))
        raises(lambda: len(torch.tensor(1)))
        warns(lambda: x.T.shape)
        raises(lambda: x.H)
        show(x[0].H.shape, torch.tensor(1.).mT.shape if False else None)
        raises(lambda: torch.ones(3).mT)
        show(torch.ones(0, 3).stride(), torch.ones(2, 0, 3).stride(), torch.ones(1, 1).t().stride(), torch.ones(()).stride(), torch.ones(3, 1).t().is_contiguous())
        show(torch.Size([1, 2]).numel(), torch.Size([1, 2]) + (3,), torch.Size([2, 3])[0], torch.Size([2, 3])[:1], torch.Size([1]) == (1,), repr(torch.Size([1, 2])), torch.Size([2]) * 2)
        show(x.is_same_size(torch.ones(2, 3, 4)), x.get_device(), x.has_names() if False else None, x.is_shared() if False else None, x.storage().size() if False else None)
    """,
    "casts": """
        x = torch.tensor([1.7, -2.3, 0.0], requires_grad=True)
        show(x.float() is x, x.double(), x.half(), x.bfloat16(), x.int(), x.long(), x.short(), x.char(), x.bool(), x.to(torch.complex64), x.byte() if False else None, x.cfloat(), x.cdouble())
        show(x.to(torch.float32) is x, x.to('cpu') is x, x.cpu() is x, x.to(torch.device('cpu')) is x, x.to(x) is x, x.to(torch.float64).requires_grad, x.to(torch.float32, copy=True) is x)
        show(x.to(torch.ones(1, dtype=torch.float64)).dtype, x.to('cpu', torch.float16).dtype, x.to(dtype=torch.int64), x.to(device='cpu', dtype=torch.float64).dtype, x.type(torch.float64), x.type('torch.DoubleTensor'), x.type(torch.LongTensor), x.type_as(torch.ones(1).double()))
        show(torch.tensor([300, -1]).to(torch.uint8), torch.tensor([1e10, float('nan')]).to(torch.float16), torch.tensor([0.5, 2]).bool(), torch.tensor([1 + 2j]).to(torch.complex128), torch.tensor([2**33 + 1]).int())
        warns(lambda: torch.tensor([1 + 2j]).to(torch.float32))
        raises(lambda: x.type('torch.FooTensor'))
        y = torch.arange(6).reshape(2, 3).t()
        show(y.float().stride(), y.to(torch.float64).stride(), y.float().contiguous().stride(), y.clone().stride(), y[::2].clone().stride(), y.clone(memory_format=torch.contiguous_format).stride())
        show(torch.ones(2).to(torch.int32, non_blocking=True, copy=False).dtype)
    """,
    "item_and_lists": """
        for value in (1, 1.5, True, 1j):
            show(torch.tensor(value).item(), torch.tensor([value]).item(), torch.tensor([[value]]).tolist(), torch.tensor(value).tolist())
        show(torch.tensor(1.1).item(), torch.tensor(1.1, dtype=torch.float64).item(), torch.tensor(1.1, dtype=torch.float16).item(), torch.tensor(1.1, dtype=torch.bfloat16).tolist(), torch.ones(0).tolist(), torch.ones(2, 0).tolist())
        show(type(torch.tensor(1).item()), type(torch.tensor(1.).item()), type(torch.tensor(True).item()), type(torch.tensor([1, 2]).tolist()[0]))
        x = torch.tensor(3.7, requires_grad=True)
        show(int(x), float(x), bool(x), complex(x), x.item(), x.__int__(), x.__float__())
        show(int(torch.tensor([5])), float(torch.tensor([[5]])), bool(torch.tensor([0])), range(5)[torch.tensor(2)], [1, 2, 3][torch.tensor(1)], hex(torch.tensor(255)), '%d' % torch.tensor(3))
        raises(lambda: round(x))
        raises(lambda: [1, 2][torch.tensor([True])])
        raises(lambda: int(torch.tensor([1, 2])))
        raises(lambda: float(torch.tensor(1j)))
        raises(lambda: torch.tensor([]).item())
        raises(lambda: range(3)[torch.tensor(2.0)])
        raises(lambda: bool(torch.tensor([])))
        import math, operator
        show(math.sqrt(torch.tensor(4.)), operator.index(torch.tensor(3)), math.floor(torch.tensor(2.5)), math.ceil(torch.tensor(2.5)))
        raises(lambda: math.trunc(torch.tensor(2.5)))
        show(int(torch.tensor(float(10)**18)), float(torch.tensor(2**53 + 1)))
        raises(lambda: int(torch.tensor(float('nan'))))
        raises(lambda: int(torch.tensor(float('inf'))))
    """,
    "python_protocols": """
        x = torch.tensor([1., 2., 3.])
        show(len(x), [v.item() for v in x], list(reversed(x)), 2. in x, 5. in x, torch.tensor(2.) in x, x.__contains__(3.), hash(x) == hash(x), hash(x) == id(x))
        show(format(torch.tensor(1.5), '.3f'), f"{torch.tensor(3):05d}", f"{torch.tensor(1.5)}", '{}'.format(x), f"{torch.tensor(2.0):>10}", str(torch.tensor(7)), repr(x))
        raises(lambda: f"{x:.2f}")
        raises(lambda: 'a' in x)
        x.label = 'mine'
        show(x.label, x.__dict__)
        del x.label
        raises(lambda: x.label)
        raises(lambda: iter(torch.tensor(1.)))
        a, *rest = x
        show(a, rest, {x: 1}[x], x in {x: 1}, [x].index(x) if x.numel() == 1 else 0, max(x), sum(x), sorted(x), min(x), any(x > 2), all(x > 2))
        show(divmod(torch.tensor(7), 3) if False else None, abs(-x), pow(x, 2), round(torch.tensor(1.55), 1) if False else None, x.__array_priority__)
        show(x == 2, x != 2, x < 2, 2 < x, x == torch.tensor([1., 5., 3.]), x == None, x != None, x.__eq__(2))
        show((x > 1) & (x < 3), (x > 1) | (x < 3), ~(x > 1), (x > 1) ^ True, torch.tensor([5]) >> 1, torch.tensor([5]) << 1, 2 << torch.tensor([1]))
        show(not torch.tensor(0), bool(torch.tensor(0.1)), torch.tensor(1) and 5)
        raises(lambda: x == torch.ones(2))
        raises(lambda: 1 if x else 2)
        raises(lambda: x and x)
        show(torch.is_tensor(x), torch.is_tensor(1), isinstance(torch.nn.Parameter(x), torch.Tensor), type(torch.nn.Parameter(x) * 1))
        def delete(): del x[0]
        raises(delete)
        raises(lambda: x())
    """,
    "numpy_interop": """
        x = torch.tensor([[1., 2.], [3., 4.]])
        a = x.numpy()
        a[0, 0] = 9
        show(x, type(a), a.dtype, numpy.asarray(x).dtype, numpy.array(x), numpy.asarray(x, dtype='float64'), numpy.sin(x), numpy.add(x, 1) if False else None)
        show(x.__array__(), x.t().numpy().strides, x[0].numpy(), torch.tensor(5).numpy(), torch.tensor([True]).numpy(), torch.tensor([1j]).numpy())
        y = torch.ones(2, requires_grad=True)
        show(y.detach().numpy(), y.numpy(force=True), y.tolist())
        raises(lambda: y.numpy())
        raises(lambda: numpy.asarray(y))
        show(x * numpy.float32(2), x + numpy.float64(1), x.double() * numpy.float64(3), torch.arange(2) * numpy.int64(3), torch.arange(2) + numpy.float32(0.5), torch.tensor(1) + numpy.int8(1))
        show(x * numpy.array(2.0) if False else None, torch.add(x, numpy.float64(2)))
        raises(lambda: x + numpy.ones((2, 2)) if False else torch.add(x, numpy.ones((2, 2))))
        show(x[numpy.array([0])], x[numpy.int64(1)], x[numpy.array([True, False])], torch.zeros(numpy.int64(2)), x.reshape(numpy.int64(4)), torch.zeros(tuple(numpy.array([2, 1]))))
        show(numpy.ones((2, 2), 'float32') @ x.numpy(), torch.tensor(numpy.float64(3)).dtype, torch.full((1,), numpy.float32(2)))
        import numpy as np
        show(np.sum(x) if False else None, np.array([torch.tensor(1.), torch.tensor(2.)]).dtype, np.float64(torch.tensor(2.5)), np.stack([x, x]).shape)
        b = numpy.ones(2, 'float32'); b.flags.writeable = False
        warns(lambda: torch.from_numpy(b))
    """,
    "numpy_on_the_left": """
        x = torch.tensor([1., 2.])
        for run in (lambda: numpy.float32(2) * x, lambda: numpy.float64(2) + x, lambda: numpy.int64(2) - torch.tensor([1, 2]), lambda: numpy.float32(1) / x, lambda: numpy.array([1., 2.], 'float32') * x,
                    lambda: numpy.array([1, 2]) + torch.tensor([1, 2]), lambda: numpy.float64(2) < x, lambda: numpy.float64(1) == x, lambda: numpy.ones(2) @ x.double(), lambda: numpy.ones(2) == x):
            try:
                show(run())
            except Exception as error:
                show(error)
        y = torch.ones(2, requires_grad=True)
        raises(lambda: numpy.ones(2) * y)
    """,
    "dlpack": """
        x = torch.arange(6.).reshape(2, 3)
        y = torch.from_dlpack(x)
        y[0, 0] = 9
        show(x, y, x.__dlpack_device__()[1], numpy.from_dlpack(x), torch.from_dlpack(numpy.arange(3)), torch.from_dlpack(x.t()).stride())
        raises(lambda: torch.from_dlpack(torch.ones(2, requires_grad=True)))
        raises(lambda: torch.ones(2, requires_grad=True).__dlpack__())
    """,
    "copies": """
        import copy, pickle
        x = torch.arange(6.).reshape(2, 3).t()
        x.foo = 1
        for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
            show(y, y.stride(), y.requires_grad, y.data_ptr() == x.data_ptr(), hasattr(y, 'foo'))
        p = torch.nn.Parameter(torch.ones(2))
        p.grad = torch.ones(2) * 3
        for q in (copy.deepcopy(p), pickle.loads(pickle.dumps(p)), copy.copy(p)):
            show(type(q).__name__, q, q.requires_grad, q.is_leaf, q.grad)
        for dtype in (torch.bfloat16, torch.bool, torch.complex64, torch.int8):
            show(pickle.loads(pickle.dumps(torch.ones(2, dtype=dtype))))
        a, b = pickle.loads(pickle.dumps((x, x)))
        show(a is b)
        raises(lambda: pickle.dumps(p * 2) and copy.deepcopy(p * 2))
        show(pickle.loads(pickle.dumps(torch.float32)) is torch.float32, copy.deepcopy(torch.int64) is torch.int64, pickle.loads(pickle.dumps(torch.Size([1, 2]))), copy.copy(torch.device('cpu')))
        show(pickle.loads(pickle.dumps(torch.tensor(1.5, requires_grad=True))).requires_grad)
        base = torch.arange(4.)
        u, v = copy.deepcopy((base, base[1:]))
        u[1] = 100
        show(v)
    """,
    "dtypes": """
        for name in 'float16 bfloat16 float32 float64 complex64 complex128 uint8 int8 int16 int32 int64 bool half float double cfloat cdouble short int long'.split():
            d = getattr(torch, name)
            show(repr(d), str(d), d.is_floating_point, d.is_complex, d.is_signed, d.itemsize, hash(d) == hash(getattr(torch, name)))
        show(torch.float is torch.float32, torch.get_default_dtype(), isinstance(torch.float32, torch.dtype), torch.float32.to_complex(), torch.complex64.to_real())
        for name in 'float16 bfloat16 float32 float64'.split():
            f = torch.finfo(getattr(torch, name))
            show(f.eps, f.max, f.min, f.tiny, f.smallest_normal, f.resolution, f.bits, f.dtype)
        for name in 'uint8 int8 int16 int32 int64'.split():
            i = torch.iinfo(getattr(torch, name))
            show(i.max, i.min, i.bits, i.dtype)
        show(repr(torch.finfo(torch.float32)), repr(torch.iinfo(torch.int8)), torch.finfo().dtype, torch.finfo(torch.complex64).eps)
        show(torch.strided, torch.contiguous_format, torch.device('cpu'), repr(torch.device('cpu')), torch.device('cpu').type, torch.device('cpu').index, torch.device('cpu', 0), torch.device('cpu') == torch.device('cpu'), torch.device('cpu:0') == torch.device('cpu'))
        raises(lambda: torch.device('foo'))
        raises(lambda: torch.dtype())
    """,
    "random": """
        torch.manual_seed(7)
        show(torch.rand(3), torch.randn(3), torch.randint(10, (5,)), torch.randperm(6), torch.rand(20).sum(), torch.randn(20), torch.rand(2, dtype=torch.float64), torch.randn(3, dtype=torch.float64), torch.randn(17, dtype=torch.float64), torch.rand(1000).mean(), torch.randn(1000).mean())
        show(torch.empty(3).uniform_(2, 5), torch.empty(20).normal_(1, 2), torch.empty(3).exponential_(), torch.bernoulli(torch.full((5,), 0.5)), torch.empty(5).bernoulli_(0.3), torch.multinomial(torch.tensor([.1, .2, .7]), 2), torch.multinomial(torch.tensor([.1, .2, .7]), 5, replacement=True), torch.empty(4).random_(10), torch.empty(3, dtype=torch.int64).random_(), torch.normal(0., 1., (3,)), torch.normal(torch.zeros(2), torch.ones(2)), torch.randn_like(torch.ones(2)), torch.rand_like(torch.ones(2, dtype=torch.float64)), torch.randint_like(torch.ones(2), 5), torch.randint(-3, 3, (4,)), torch.randint(0, 5, (2,), dtype=torch.float32))
        state = torch.get_rng_state()
        a = torch.rand(2)
        torch.set_rng_state(state)
        show(torch.equal(a, torch.rand(2)), state.shape, state.dtype, torch.initial_seed())
        g = torch.Generator()
        g.manual_seed(3)
        show(torch.rand(2, generator=g), torch.randperm(3, generator=g), g.initial_seed(), torch.randn(2, generator=g), torch.randint(5, (2,), generator=g), torch.empty(2).normal_(generator=g), torch.bernoulli(torch.full((3,), 0.5), generator=g))
        s = g.get_state(); a = torch.rand(1, generator=g); g.set_state(s); show(torch.equal(a, torch.rand(1, generator=g)))
        show(torch.empty(3).cauchy_(), torch.empty(3).geometric_(0.3), torch.empty(3).log_normal_(), torch.rand(0), torch.randn(2, 2, requires_grad=True), torch.randn(2, dtype=torch.complex64), torch.rand(3, dtype=torch.bfloat16), torch.randn(3, dtype=torch.float16), torch.randperm(5, dtype=torch.int32), F.dropout(torch.ones(10), 0.3), F.dropout(torch.ones(1000), 0.3).sum())
        with torch.random.fork_rng():
            torch.rand(5)
        show(torch.rand(1), torch.manual_seed(5).initial_seed(), torch.seed() > 0)
    """,
    "modules_start_alike": """
        torch.manual_seed(0)
        for layer in (torch.nn.Linear(3, 4), torch.nn.Conv2d(2, 3, 3), torch.nn.Embedding(4, 2), torch.nn.BatchNorm2d(3), torch.nn.LayerNorm(4)):
            show(layer, layer.state_dict())
        w = torch.empty(3, 5)
        init = torch.nn.init
        for f in (init.uniform_, init.normal_, init.xavier_uniform_, init.xavier_normal_, init.kaiming_uniform_, init.kaiming_normal_, init.trunc_normal_, init.orthogonal_, init.zeros_, init.ones_, init.eye_, lambda t: init.constant_(t, 3), lambda t: init.sparse_(t, 0.5)):
            show(f(w))
    """,
    "printing": """
        x = torch.tensor([[1., 2.5], [-3., 1e5]])
        for t in (x, x.int(), x > 0, x.double(), x.half(), x.bfloat16(), x * 1e10, x / 1e10, x + 1j, torch.tensor(1.5), torch.tensor([]), torch.zeros(0, 3), torch.tensor([float('nan'), float('inf'), -1.]),
                  torch.arange(2000), torch.ones(50, 50), torch.rand(3, 3, 3) * 0 + 1, x.requires_grad_() , x.clone().requires_grad_() * 2, torch.tensor(1, dtype=torch.int8), torch.tensor([1e-8, 1.]), torch.tensor([100000., 0.1]), torch.tensor([1., 2.]), torch.tensor([True])):
            show(repr(t), str(t))
        torch.set_printoptions(precision=2, sci_mode=True)
        show(repr(x))
        torch.set_printoptions(profile='default')
        show(repr(x), repr(torch.nn.Parameter(torch.ones(2))), repr(x.max(1)), repr(torch.nn.Linear(2, 3)), repr(torch.Size([2])))
    """,
    "typed_storages": """
        s = torch.FloatStorage([1.0, 2.5])
        show(s.tolist(), s.dtype, len(s), s.nbytes(), s[1], isinstance(s, torch.FloatStorage), isinstance(s, torch.DoubleStorage))
        show([getattr(s, name)().tolist() for name in "double float half long int short char byte bool bfloat16 complex_float complex_double".split()])
        show([getattr(s, name)().dtype for name in "double float half long int short char byte bool bfloat16 complex_float complex_double".split()])
        show(torch.FloatTensor().set_(s, 1, (1,), (1,)), s.fill_(3).tolist(), s._untyped_storage.nbytes())
        s.resize_(4); show(len(s))
        show([getattr(torch, f"{name}Storage")(2).dtype for name in "Bool Byte Char Short Int Long Half BFloat16 Float Double ComplexFloat ComplexDouble".split()])
        show(torch.ones(1).storage_type().__name__, torch.ones(1).long().storage_type().__name__, torch.ones(1, device="meta").storage_type())
        raises(lambda: torch.FloatStorage(1, 2)); raises(lambda: torch.FloatStorage(dtype=torch.int))
        raises(lambda: torch.FloatStorage(2, wrap_storage=torch.UntypedStorage(4)))
        raises(lambda: torch.storage._LegacyStorage()); show(torch.FloatStorage(wrap_storage=torch.UntypedStorage([0, 0, 128, 63])).tolist())
    """,
    "sparse_tensors_are_close": """
        close = torch.testing.assert_close
        s = lambda *v: torch.sparse_coo_tensor([[0, 1]], list(v), (3,))
        c = torch.eye(2).to_sparse_csr()
        for one, other in ((s(1., 2.), s(1., 2.)), (s(1., 2.), s(1., 3.)), (s(1., 2.), torch.sparse_coo_tensor([[0, 2]], [1., 2.], (3,))), (s(1., 2.), torch.sparse_coo_tensor([[0]], [1.], (3,))), (s(1., 2.), s(1., 2.).to_dense()), (s(1., 2.), s(1, 2)), (c, c), (c, c * 2), (c, torch.ones(2, 2).to_sparse_csr()), (c, torch.eye(2).to_sparse_csc()), (c, torch.tensor([[0., 1.], [1., 0.]]).to_sparse_csr()), (c, torch.tensor([[1., 1.], [0., 0.]]).to_sparse_csr())):
            raises(lambda: close(one, other)); raises(lambda: close(one, other, check_layout=False)); raises(lambda: close(one, other, check_dtype=False, rtol=1, atol=0, check_stride=True))
        formats = [torch.contiguous_format, torch.channels_last]
        for t in (torch.ones(1, 1), torch.ones(2, 3).t(), torch.ones(3).expand(2, 3), torch.ones(2, 1, 3, 3), torch.ones(1, 2, 3, 3).contiguous(memory_format=torch.channels_last), torch.ones(0, 3)):
            raises(lambda: t.dim_order(ambiguity_check=True)); raises(lambda: t.dim_order(ambiguity_check=formats))
        raises(lambda: torch.ones(2).dim_order(ambiguity_check=3)); raises(lambda: torch.ones(2).dim_order(ambiguity_check=[3]))
        x = torch.arange(3.0)
        show(x.map2_(x + 1, torch.tensor(2.0), lambda a, b, c: a * b + c))
        raises(lambda: x.map2_(3, x, max)); raises(lambda: x.map2_(x, x.double(), max)); raises(lambda: torch.ones(2, requires_grad=True).map2_(x, x, max))
    """,
    "refusals_to_export": """
        x = torch.ones(2)
        raises(lambda: x.__dlpack__(stream=3)); raises(lambda: x.__dlpack__(stream="a")); raises(lambda: x.to_sparse().__dlpack__())
        raises(lambda: torch.ones(2, device="meta").__dlpack__()); raises(lambda: torch.ones(2, device="meta").__dlpack_device__())
        raises(lambda: x.__cuda_array_interface__); show(hasattr(x, "__cuda_array_interface__"))
        with torch._tensor_str.printoptions(precision=1):
            show(str(torch.ones(1) * 1.25))
        show(str(torch.ones(1) * 1.25))
    """,
    "rare_refusals": """
        x = torch.ones(2, 3)
        raises(lambda: x[["a"]]); raises(lambda: x[0, "a"]); raises(lambda: torch.broadcast_shapes((-1,))); raises(lambda: torch.broadcast_shapes((2,), (-3,)))
        raises(lambda: x.masked_fill(x.byte(), 0)); raises(lambda: x.dsplit(2)); warns(lambda: torch.where(x.byte(), x, x))
        singular = torch.stack([torch.zeros(2, 2), torch.eye(2)])
        show([torch.linalg.cond(singular, p) for p in (1, -1, "fro", "nuc", float("inf"))], type(torch.linalg.cond(torch.eye(2, requires_grad=True), 1).grad_fn).__name__)
        p = torch.nn.utils.rnn.pack_sequence([torch.ones(3)])
        show(p.is_pinned(), len(torch.nn.LSTM(2, 3, 2)._flat_weights))
        show([each.tolist() for each in torch._foreach_clone([x])], [each.tolist() for each in torch._foreach_mm([x], [x.T])])
        show([each.tolist() for each in torch._foreach_powsum([x * 2, -x], 3)], torch._foreach_powsum([x], 2, dtype=torch.float64)[0].dtype)
    """,
    "views_share": """
        x = torch.arange(12.).reshape(3, 4)
        for v in (x.view(4, 3), x.t(), x[1], x[:, ::2], x.unsqueeze(0), x.expand(2, 3, 4), x.diagonal(), x.reshape(2, 6), x.flatten(), x.narrow(0, 1, 1), x.permute(1, 0), x.detach(), x.data, x.unfold(1, 2, 1), x.view(-1)[3:], x.as_strided((2,), (5,), 1), x.contiguous(), x.squeeze(), x.movedim(0, 1), x.select(1, 2), x.ravel(), x.real, x.view(torch.int32)):
            show(v.untyped_storage().data_ptr() == x.untyped_storage().data_ptr(), v.storage_offset(), v.stride(), v._base is x, v.is_contiguous(), v._is_view())
        for c in (x.t().reshape(12), x.t().contiguous(), x.clone(), x.t().flatten(), x.repeat(1, 1), x[[0, 1]], x[x > 3], x + 0, x.t().ravel()):
            show(c.untyped_storage().data_ptr() == x.untyped_storage().data_ptr(), c.stride(), c._base)
    """,
    "methods_exist": """
        x = torch.ones(2, 2)
        show([name for name in '''abs absolute acos add addbmm addcdiv addcmul addmm addmv addr all allclose amax amin aminmax angle any apply_ arccos argmax argmin argsort argwhere as_strided
            asin atan atan2 backward baddbmm bernoulli bernoulli_ bfloat16 bincount bitwise_and bitwise_not bitwise_or bitwise_xor bmm bool broadcast_to byte cauchy_ ceil char chunk clamp clamp_max clamp_min clip clone
            conj conj_physical contiguous copy_ copysign cos cosh count_nonzero cpu cummax cummin cumprod cumsum data_ptr deg2rad det detach detach_ diag diag_embed diagflat diagonal diff digamma dim dim_order dist div divide dot double
            element_size eq equal erf erfc erfinv exp exp2 expand expand_as expm1 exponential_ fill_ fill_diagonal_ fix flatten flip fliplr flipud float float_power floor floor_divide fmax fmin fmod frac gather ge geometric_ ger get_device
            greater greater_equal gt half hardshrink heaviside hsplit hypot index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_put index_put_ index_select inner int inverse is_complex is_conj is_contiguous
            is_floating_point is_inference is_neg is_same_size is_signed isclose isfinite isinf isnan isneginf isposinf isreal item kthvalue le lerp less less_equal lgamma log log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp
            logdet logical_and logical_not logical_or logical_xor logit logsumexp long lt map_ masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select matmul matrix_power max maximum mean median min minimum mm mode moveaxis
            movedim msort mul multinomial multiply mv nan_to_num nanmean nanmedian nansum narrow narrow_copy ndimension ne neg negative negative_ nelement new new_empty new_full new_ones new_tensor new_zeros nonzero norm normal_ not_equal
            numel numpy outer permute positive pow prod put put_ quantile rad2deg random_ ravel real reciprocal register_hook relu remainder renorm repeat repeat_interleave requires_grad_ reshape reshape_as resize_ retain_grad roll rot90
            round rsqrt scatter scatter_ scatter_add scatter_add_ scatter_reduce select select_scatter sgn short sigmoid sign signbit sin sinc sinh size slogdet softmax sort split split_with_sizes sqrt square squeeze squeeze_ std stride sub
            sub_ subtract sum sum_to_size swapaxes swapdims t t_ take take_along_dim tan tanh tensor_split tile to tolist topk trace transpose transpose_ tril triu true_divide trunc type type_as unbind unflatten unfold uniform_ unique
            unique_consecutive unsafe_chunk unsafe_split unsqueeze unsqueeze_ var vdot view view_as vsplit where xlogy xlogy_ zero_ __matmul__ __rmatmul__ __iadd__ __ifloordiv__ __ipow__ __irshift__ __rlshift__ __radd__ __rfloordiv__ __rpow__ __rmod__'''.split() if not hasattr(x, name)])
        show([name for name in '''abs add allclose arange as_tensor atleast_1d autograd bernoulli block_diag broadcast_shapes broadcast_tensors bucketize cartesian_prod cat cdist chunk clamp clone column_stack combinations complex concat concatenate
            conj corrcoef cov cross cumsum det device diag diff dot dropout dsplit dstack dtype einsum empty empty_like empty_strided enable_grad equal eye finfo flatten from_numpy full full_like gather get_default_dtype get_num_threads
            get_rng_state hsplit hstack iinfo imag inference_mode inverse is_grad_enabled is_tensor isin kron linalg linspace load log_softmax logspace manual_seed masked_select matmul meshgrid multinomial nn no_grad nonzero normal numel ones ones_like
            optim outer permute poisson polar promote_types rand rand_like randint randint_like randn randn_like randperm relu reshape result_type row_stack save scalar_tensor searchsorted set_default_dtype set_default_tensor_type set_grad_enabled set_num_threads set_printoptions
            set_rng_state sigmoid Size softmax split squeeze stack std_mean strided swapaxes take tanh tensor Tensor tensordot tile topk trapezoid tril_indices unbind unique unsqueeze utils vander var_mean vsplit vstack where zeros zeros_like
            e pi inf nan newaxis is_floating_point is_complex is_nonzero are_deterministic_algorithms_enabled use_deterministic_algorithms get_num_interop_threads seed initial_seed Generator default_generator typename __version__ cuda backends random special fft version compile func vmap layer_norm batch_norm conv2d max_pool2d
            embedding bilinear cosine_similarity pairwise_distance pixel_shuffle prelu celu selu threshold native_dropout'''.split() if not hasattr(torch, name)])
    """,
    "resizing_with_memory_formats": """
        last, last_3d, same = torch.channels_last, torch.channels_last_3d, torch.preserve_format
        template = torch.ones(2, 3, 2, 2).contiguous(memory_format=last)
        for tensor in (
            torch.arange(24.).resize_((2, 3, 2, 2), memory_format=last), torch.arange(24.).resize_(2, 3, 2, 2),
            torch.arange(24.).resize_(1, 2, 3, 2, 2, memory_format=last_3d), torch.arange(24.).resize_as_(template),
            torch.arange(24.).resize_as_(template, memory_format=same), torch.arange(6.).resize_as_(torch.ones(2, 3).t(), memory_format=same),
            torch.arange(24.).view(2, 3, 2, 2).resize_((2, 3, 2, 2), memory_format=last), torch.arange(24.).resize_as_(torch.ones(2, 3, 2, 2), memory_format=last),
        ):
            show(tensor, tensor.stride(), tensor._version)
        raises(torch.ones(6).resize_, (2, 3), memory_format=last)
        for size in ([0, 4, 2 ** 61], [4, 2 ** 61], [2 ** 62, 4, 0], [0, 0, 2 ** 62, 2 ** 62]):
            raises(torch.empty(()).resize_, size)
    """,
    "refused_transposes_and_shapes": """
        for tensor in (torch.rand(2, 2, 2).to_sparse(), torch.rand(2, 2, 2).to_sparse(2), torch.rand(2, 2).to_sparse(1), torch.ones(2, 2, 2)):
            raises(tensor.t)
        for shapes in ((1.5,), ((1, 2), 2.5), ((3, 5), (2, 4, 1)), ("a",), ((1.1, 2),)):
            raises(torch.broadcast_shapes, *shapes)
    """,
}

test_program_shows_the_same = program_test(PROGRAMS)


@pytest.mark.parametrize("library", [torch, adjoint])
def test_the_hash_is_the_identity(library):
    class Mine(library.Tensor):
        pass

    x = library.ones(2)
    for each in (x, x.view(2), x.as_subclass(Mine), library.nn.Parameter(x), library.nn.Buffer(x)):
        assert hash(each) == id(each)
    with pytest.raises(TypeError, match="unhashable"):
        hash([x])
