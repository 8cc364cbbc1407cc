"""Small programs, one for each feature. After a program is dropped, all its objects must be freed.

`PROGRAMS` contains the programs by name. `WITH_CYCLES` contains programs that define functions or classes. Functions and classes
form reference cycles with the program's globals, so only the garbage collector frees these objects. Reference counting frees the
objects of the other programs. `PERMANENT` lists, for each program, the objects that registrations keep forever, as in PyTorch.
"""

from __future__ import annotations

SIMPLE = {
    "recorded": "x = torch.ones(3, requires_grad=True)\n(x * 2).sum().backward()",
    "not recorded": "x = torch.ones(3) * 2",
    "graph kept": "x = torch.ones(3, requires_grad=True)\ny = (x * 2).exp()",
    "second derivative": """
        x = torch.ones(3, requires_grad=True)
        g, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
        g.sum().backward()
        """,
    "retained graph": "x = torch.ones(3, requires_grad=True)\ny = x.exp().sum()\ny.backward(retain_graph=True)\ny.backward()",
    "views and in-place": """
        x = torch.ones(3, 3, requires_grad=True)
        y = x * 1
        v = y[0]
        v.mul_(2)
        y[1] = 5
        y.diagonal().add_(1)
        y.sum().backward()
        """,
    "indexing": """
        x = torch.ones(4, 4, requires_grad=True)
        x[torch.tensor([0, 1]), 1:].sum().backward()
        x[x > 0].sum().backward()
        """,
    "no_grad": "x = torch.ones(3, requires_grad=True)\nwith torch.no_grad():\n    y = x * 2",
    "inference mode": "with torch.inference_mode():\n    x = torch.ones(3) * 2",
    "autocast": """
        x, w = torch.ones(3, 3), torch.ones(3, 3, requires_grad=True)
        with torch.autocast("cpu"):
            (x @ w).sum().backward()
        """,
    "autocast left open": """
        w = torch.ones(3, 3, requires_grad=True)
        context = torch.autocast("cpu")
        context.__enter__()
        y = w @ w
        context.__exit__(None, None, None)
        """,
    "module": "m = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())\nm(torch.ones(2, 3)).sum().backward()",
    "rnn": "m = torch.nn.LSTM(3, 3)\nm(torch.ones(2, 1, 3))[0].sum().backward()",
    "attention": "m = torch.nn.MultiheadAttention(4, 2)\nx = torch.ones(2, 1, 4)\nm(x, x, x)[0].sum().backward()",
    "convolution": "m = torch.nn.Conv2d(2, 2, 3)\nm(torch.ones(1, 2, 5, 5)).sum().backward()",
    "embedding": "m = torch.nn.Embedding(5, 3, sparse=True)\nm(torch.tensor([1, 2])).sum().backward()",
    "optimizers": """
        m = torch.nn.Linear(3, 3)
        for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad):
            o = kind(m.parameters(), lr=0.1)
            m(torch.ones(2, 3)).sum().backward()
            o.step()
        """,
    "gradient clipping": """
        m = torch.nn.Linear(3, 3)
        m(torch.ones(2, 3)).sum().backward()
        torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        """,
    "scaler": """
        m = torch.nn.Linear(3, 3)
        o = torch.optim.SGD(m.parameters(), lr=0.1)
        s = torch.amp.GradScaler("cpu")
        s.scale(m(torch.ones(2, 3)).sum()).backward()
        s.step(o)
        s.update()
        """,
    "parametrization": """
        m = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 3))
        with torch.nn.utils.parametrize.cached():
            m(torch.ones(2, 3)).sum().backward()
        n = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(3, 3))
        n(torch.ones(2, 3)).sum().backward()
        """,
    "spectral norm and pruning": """
        m = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 3))
        m(torch.ones(2, 3)).sum().backward()
        n = torch.nn.utils.prune.l1_unstructured(torch.nn.Linear(3, 3), "weight", 2)
        n(torch.ones(2, 3)).sum().backward()
        """,
    "state dict": """
        import io
        m = torch.nn.Linear(3, 3)
        file = io.BytesIO()
        torch.save(m.state_dict(), file)
        file.seek(0)
        m.load_state_dict(torch.load(file))
        """,
    "copies": """
        import copy, io, pickle
        m = torch.nn.Linear(3, 3)
        n = copy.deepcopy(m)
        x = pickle.loads(pickle.dumps(torch.ones(3)))
        """,
    "numpy": "import numpy\na = numpy.ones(3)\nx = torch.from_numpy(a)\ny = (x * 2).numpy()\nz = numpy.add(x, x)",
    "printing": "x = torch.ones(3, requires_grad=True)\ntext = repr(x * 2) + str(torch.nn.Linear(2, 2))",
    "distributions": """
        p = torch.distributions.Normal(torch.zeros(3, requires_grad=True), 1.0)
        q = torch.distributions.Normal(torch.ones(3), 2.0)
        (p.rsample().sum() + torch.distributions.kl_divergence(p, q).sum()).backward()
        """,
    "loader": """
        from adjoint.utils.data import DataLoader, TensorDataset
        data = DataLoader(TensorDataset(torch.arange(8.0)), batch_size=2, shuffle=True)
        seen = [batch for batch in data]
        """,
    "profiler": """
        x = torch.ones(3, requires_grad=True)
        with torch.profiler.profile(with_stack=True, record_shapes=True) as p:
            (x * 2).sum().backward()
        table = p.key_averages().table()
        """,
    "old profiler": "with torch.autograd.profiler.profile() as p:\n    y = torch.ones(3).exp()",
    "anomaly": """
        x = torch.ones(3, requires_grad=True)
        with torch.autograd.detect_anomaly(check_nan=True):
            (x * 2).sum().backward()
        """,
    "anomaly with nan": """
        x = torch.zeros(1, requires_grad=True)
        try:
            with torch.autograd.detect_anomaly():
                (x.sqrt() * 0).sum().backward()
        except RuntimeError as error:
            text = str(error)
        """,
    "exception of changed tensor": """
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        z = y * 2
        y.add_(1)
        try:
            z.sum().backward()
        except RuntimeError as error:
            text = str(error)
        """,
    "exception of arguments": "try:\n    torch.add(torch.ones(3), 'a')\nexcept TypeError as error:\n    text = str(error)",
    "warning": """
        import warnings
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y.grad
            torch.ones(3).var(0)
        """,
    "inspect": """
        x = torch.ones(3, requires_grad=True)
        y = (x * 2).sum()
        picture = torch.inspect.graph(y)
        text = picture.text() if hasattr(picture, "text") else str(picture)
        """,
    "graph nodes": "x = torch.ones(3, requires_grad=True)\nnode = (x * 2).sum().grad_fn\nedges = node.next_functions",
    "saved tensors": "x = torch.ones(3, requires_grad=True)\ny = x.exp()\nsaved = y.grad_fn._saved_result",
    "save on cpu": """
        x = torch.ones(3, requires_grad=True)
        with torch.autograd.graph.save_on_cpu():
            y = x.exp().exp()
        y.sum().backward()
        """,
    "forward mode": """
        from adjoint.autograd import forward_ad
        with forward_ad.dual_level():
            x = forward_ad.make_dual(torch.ones(3), torch.ones(3))
            y = forward_ad.unpack_dual(x * 2)
        """,
    "default device": "with torch.device('meta'):\n    x = torch.ones(3)",
    "sparse": """
        x = torch.ones(3, 3).to_sparse()
        torch.sparse.mm(x, torch.ones(3, 3, requires_grad=True)).sum().backward()
        """,
    "complex": "x = torch.ones(3, dtype=torch.complex64, requires_grad=True)\n(x.conj() * x).real.sum().backward()",
    "linalg": "x = torch.eye(3, requires_grad=True)\ntorch.linalg.det(x).backward()\ntorch.linalg.svd(x)[1].sum().backward()",
    "fft": "x = torch.ones(8, requires_grad=True)\ntorch.fft.fft(x).abs().sum().backward()",
    "large": "x = torch.ones(300, 300, requires_grad=True)\ntorch.nn.functional.gelu(x).softmax(-1).sum().backward()",
    "einsum": "x = torch.ones(3, 3, requires_grad=True)\ntorch.einsum('ij,jk->ik', x, x).sum().backward()",
    "dlpack": "x = torch.ones(3)\ny = torch.from_dlpack(x)",
    "shared memory": "x = torch.ones(3).share_memory_()",
    "storage": "x = torch.ones(3)\ns = x.untyped_storage()\ny = torch.empty(0).set_(s, 0, (3,))",
    "generator": "g = torch.Generator().manual_seed(1)\nx = torch.randn(3, generator=g)",
    "flop counter": """
        from adjoint.utils.flop_counter import FlopCounterMode
        with FlopCounterMode(display=False) as counter:
            y = torch.ones(3, 3) @ torch.ones(3, 3)
        """,
    "averaged model": "m = torch.nn.Linear(2, 2)\na = torch.optim.swa_utils.AveragedModel(m)\na.update_parameters(m)",
    "pytree": """
        from adjoint.utils import _pytree
        leaves, spec = _pytree.tree_flatten({"a": [torch.ones(3)], "b": torch.ones(2)})
        """,
    "functional call": "m = torch.nn.Linear(2, 2)\ny = torch.func.functional_call(m, dict(m.named_parameters()), torch.ones(2))",
    "stateless jacobian": "x = torch.ones(3, requires_grad=True)\nj = torch.autograd.functional.jacobian(torch.exp, x)",
    "gradcheck": "torch.autograd.gradcheck(torch.sin, torch.ones(2, dtype=torch.float64, requires_grad=True))",
    "lazy module": "m = torch.nn.LazyLinear(3)\ny = m(torch.ones(2, 4))",
    "packed sequences": "p = torch.nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])",
    "nested autocast and checkpoint": """
        from adjoint.utils.checkpoint import checkpoint
        m, x = torch.nn.Linear(3, 3), torch.ones(2, 3, requires_grad=True)
        with torch.autocast("cpu"):
            for reentrant in (False, True):
                checkpoint(m, x, use_reentrant=reentrant).sum().backward()
        """,
    "checkpoint without backward": """
        from adjoint.utils.checkpoint import checkpoint
        m, x = torch.nn.Linear(3, 3), torch.ones(2, 3, requires_grad=True)
        y = checkpoint(m, x, use_reentrant=False)
        z = checkpoint(m, x, use_reentrant=True)
        """,
    "transforms of public functions": """
        x = torch.ones(3)
        a = torch.func.grad(torch.sum)(x)
        b = torch.func.vmap(torch.sin)(x)
        c = torch.func.jvp(torch.sin, (x,), (x,))
        d, pullback = torch.func.vjp(torch.sin, x)
        e = torch.func.hessian(torch.sum)(x)
        f = torch.func.linearize(torch.sin, x)
        """,
}

WITH_CYCLES = {
    "exception kept": """
        x = torch.ones(3, requires_grad=True)
        try:
            (x @ torch.ones(4))
        except Exception as error:
            kept_error = error
        try:
            x.exp().backward()
        except Exception as error:
            other_error = error
        """,
    "function": "def f(x):\n    return (x * 2).sum()\nx = torch.ones(3, requires_grad=True)\nf(x).backward()",
    "hooks": """
        x = torch.ones(3, requires_grad=True)
        def hook(grad):
            return grad * 2
        h = x.register_hook(hook)
        y = x * 2
        y.register_hook(hook)
        y.grad_fn.register_hook(lambda a, b: None)
        y.grad_fn.register_prehook(lambda a: None)
        x.register_post_accumulate_grad_hook(lambda p: None)
        y.retain_grad()
        y.sum().backward()
        """,
    "hook of several": """
        x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        torch.autograd.graph.register_multi_grad_hook((x, y), lambda grads: None)
        (x * y).sum().backward()
        """,
    "error in a hook": """
        x = torch.ones(3, requires_grad=True)
        def hook(grad):
            raise ValueError
        x.register_hook(hook)
        try:
            (x * 2).sum().backward()
        except ValueError as error:
            text = str(error)
        """,
    "module hooks": """
        m = torch.nn.Sequential(torch.nn.Linear(3, 3))
        m.register_forward_hook(lambda *a: None)
        m.register_forward_pre_hook(lambda *a: None)
        m.register_full_backward_hook(lambda *a: None)
        m.register_state_dict_post_hook(lambda *a: None)
        m(torch.ones(2, 3)).sum().backward()
        m.state_dict()
        """,
    "global module hook": """
        m = torch.nn.Linear(3, 3)
        h = torch.nn.modules.module.register_module_forward_hook(lambda *a: None)
        m(torch.ones(3))
        h.remove()
        """,
    "own module": """
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.a = torch.nn.Linear(3, 3)
            def forward(self, x):
                return self.a(x).relu()
        m = Net()
        m(torch.ones(2, 3)).sum().backward()
        text = repr(m)
        """,
    "own module in inspection": """
        class Net(torch.nn.Module):
            def forward(self, x):
                return x.exp().exp()
        x = torch.ones(3, requires_grad=True)
        m = Net()
        picture = torch.inspect.graph(m(x))
        text = str(picture)
        explained = torch.inspect
        """,
    "own function": """
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2
            @staticmethod
            def backward(ctx, grad):
                return grad * 2
        x = torch.ones(3, requires_grad=True)
        Twice.apply(x).sum().backward()
        y = Twice.apply(x)
        """,
    "own function in transforms": """
        class Twice(torch.autograd.Function):
            generate_vmap_rule = True
            @staticmethod
            def forward(x):
                return x * 2
            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*inputs)
                ctx.save_for_forward(*inputs)
            @staticmethod
            def backward(ctx, grad):
                return grad * 2
            @staticmethod
            def jvp(ctx, tangent):
                return tangent * 2
        x = torch.ones(3)
        a = torch.func.vmap(Twice.apply)(x)
        b = torch.func.grad(lambda x: Twice.apply(x).sum())(x)
        c = torch.func.vmap(torch.func.grad(lambda x: Twice.apply(x).sum()))(torch.ones(2, 3))
        d = torch.func.jvp(Twice.apply, (x,), (x,))
        """,
    "own function with vmap": """
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(x):
                return x * 2
            @staticmethod
            def setup_context(ctx, inputs, output):
                pass
            @staticmethod
            def backward(ctx, grad):
                return grad * 2
            @staticmethod
            def vmap(info, in_dims, x):
                return Twice.apply(x), in_dims[0]
        a = torch.func.vmap(Twice.apply)(torch.ones(3))
        """,
    "own function once differentiable": """
        from adjoint.autograd.function import once_differentiable
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)
            @staticmethod
            @once_differentiable
            def backward(ctx, grad):
                return grad * 2
        x = torch.ones(3, requires_grad=True)
        Twice.apply(x * 1).sum().backward()
        """,
    "transforms": """
        def f(x):
            return (x.sin() * x).sum()
        x = torch.ones(3)
        results = [t(f)(x) for t in (torch.func.grad, torch.func.hessian, torch.func.jacrev, torch.func.jacfwd)]
        a = torch.func.vmap(torch.func.grad(f))(torch.ones(2, 3))
        b, pullback = torch.func.vjp(f, x)
        c = pullback(torch.tensor(1.0))
        d, pushforward = torch.func.linearize(f, x)
        """,
    "error in a transform": """
        def f(x):
            raise ValueError("no")
        for t in (torch.func.grad, torch.func.vmap, torch.func.jacfwd, torch.func.hessian):
            try:
                t(f)(torch.ones(3))
            except ValueError as error:
                last = error
        """,
    "functionalize": "a = torch.func.functionalize(lambda x: x.clone().add_(1))(torch.ones(3))",
    "jacobians": """
        def f(x):
            return (x ** 3).sum()
        x = torch.ones(3)
        a = torch.autograd.functional.hessian(f, x)
        b = torch.autograd.functional.vhp(f, x, x)
        c = torch.autograd.functional.jvp(f, x, x)
        """,
    "saved tensor hooks": """
        x = torch.ones(3, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
            y = x.exp().exp()
        y.sum().backward()
        """,
    "checkpoint": """
        from adjoint.utils.checkpoint import checkpoint
        def f(x):
            return x.exp().sin()
        x = torch.ones(3, requires_grad=True)
        checkpoint(f, x, use_reentrant=False).sum().backward()
        checkpoint(f, x, use_reentrant=True).sum().backward()
        y = checkpoint(f, x, use_reentrant=False)
        """,
    "selective checkpoint": """
        from adjoint.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
        def policy(context, op, *args, **kwargs):
            return op == torch.ops.aten.exp.default
        x = torch.ones(3, requires_grad=True)
        def contexts():
            return create_selective_checkpoint_contexts(policy)
        checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False, context_fn=contexts).sum().backward()
        """,
    "checkpoint that fails": """
        from adjoint.utils.checkpoint import checkpoint
        runs = []
        def f(x):
            runs.append(1)
            return x.exp().sin() if len(runs) == 1 else x.sin()
        x = torch.ones(3, requires_grad=True)
        try:
            checkpoint(f, x, use_reentrant=False, debug=True).sum().backward()
        except RuntimeError as error:
            text = str(error)
        """,
    "own dataset": """
        from adjoint.utils.data import DataLoader, Dataset
        class Numbers(Dataset):
            def __len__(self):
                return 8
            def __getitem__(self, index):
                return torch.tensor(float(index))
        loader = DataLoader(Numbers(), batch_size=2, collate_fn=lambda items: torch.stack(items))
        seen = list(loader)
        """,
    "own sampler": """
        from adjoint.utils.data import DataLoader, IterableDataset, Sampler
        class Stream(IterableDataset):
            def __iter__(self):
                return iter([torch.ones(2), torch.zeros(2)])
        class Backwards(Sampler):
            def __iter__(self):
                return iter([3, 2, 1, 0])
            def __len__(self):
                return 4
        seen = [*DataLoader(Stream()), *DataLoader([1, 2, 3, 4], sampler=Backwards())]
        """,
    "number of a class of its own": """
        class Level(int):
            pass
        x = torch.ones(3, requires_grad=True)
        with torch.inference_mode():
            a = (torch.ones(3) * Level(2), torch.ones(3, dtype=torch.bfloat16) / Level(3))
        b = x * Level(2) + Level(1)
    """,
    "subclass": """
        class Mine(torch.Tensor):
            pass
        x = torch.ones(3).as_subclass(Mine)
        y = (x * 2).requires_grad_()
        (y * y).sum().backward()
        """,
    "subclass that takes over": """
        class Mine(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return super().__torch_function__(func, types, args, kwargs or {})
        x = torch.ones(3).as_subclass(Mine)
        y = torch.stack([x * 2, x])
        """,
    "subclass below autograd": """
        from adjoint.utils._pytree import tree_map
        class Mine(torch.Tensor):
            @staticmethod
            def __new__(cls, inner):
                made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
                made.inner = inner
                return made
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                bare = tree_map(lambda x: x.inner if isinstance(x, Mine) else x, args)
                return tree_map(lambda x: Mine(x) if isinstance(x, torch.Tensor) else x, func(*bare))
        y = Mine(torch.ones(3)) + 1
        """,
    "duck": """
        class Duck:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return cls()
        d = torch.add(Duck(), torch.ones(3))
        torch.nn.functional.relu(d)
        """,
    "function mode": """
        class Log(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))
        with Log() as mode:
            y = torch.ones(3) * 2
        """,
    "dispatch mode": """
        from adjoint.utils._python_dispatch import TorchDispatchMode
        class Log(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))
        with Log() as mode:
            y = torch.ones(3) * 2
        """,
    "own overridable function": """
        def area(x):
            if torch.overrides.has_torch_function_unary(x):
                return torch.overrides.handle_torch_function(area, (x,), x)
            return x.sum()
        class Duck:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return 3
        y = area(Duck())
        """,
    "own optimizer": """
        class Descent(torch.optim.Optimizer):
            def __init__(self, params, lr):
                super().__init__(params, {"lr": lr})
            def step(self, closure=None):
                with torch.no_grad():
                    for group in self.param_groups:
                        for p in group["params"]:
                            p -= group["lr"] * p.grad
        m = torch.nn.Linear(3, 3)
        o = Descent(m.parameters(), 0.1)
        o.register_step_post_hook(lambda *a: None)
        m(torch.ones(3)).sum().backward()
        o.step()
        """,
    "schedulers": """
        m = torch.nn.Linear(3, 3)
        o = torch.optim.SGD(m.parameters(), lr=0.1)
        made = [
            torch.optim.lr_scheduler.LambdaLR(o, lambda epoch: 0.9),
            torch.optim.lr_scheduler.StepLR(o, 2),
            torch.optim.lr_scheduler.OneCycleLR(o, 0.1, 10),
            torch.optim.lr_scheduler.ReduceLROnPlateau(o),
        ]
        o.step()
        for s in made[:3]:
            s.step()
        """,
    "closure": """
        w = torch.ones(3, requires_grad=True)
        o = torch.optim.LBFGS([w])
        def closure():
            o.zero_grad()
            loss = (w ** 2).sum()
            loss.backward()
            return loss
        o.step(closure)
        """,
    "own parametrization": """
        class Symmetric(torch.nn.Module):
            def forward(self, x):
                return x.triu() + x.triu(1).mT
        m = torch.nn.Linear(3, 3)
        torch.nn.utils.parametrize.register_parametrization(m, "weight", Symmetric())
        m(torch.ones(3)).sum().backward()
        """,
    "tracing": """
        from adjoint import fx
        def f(x):
            return torch.relu(x) + 1
        class Net(torch.nn.Module):
            def forward(self, x):
                return x.exp() * 2
        g = fx.symbolic_trace(f)
        m = fx.symbolic_trace(Net())
        y = g(torch.ones(3)) + m(torch.ones(3))
        """,
    "compile": "f = torch.compile(lambda x: x * 2 + 1)\ny = f(torch.ones(3, requires_grad=True))\ny.sum().backward()",
    "compile a module and its step": """
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.a = torch.nn.Linear(3, 3)
                self.large = large
            def forward(self, x):
                return self.a(x).relu().sum()
        m = Net()
        o = torch.optim.Adam(m.parameters(), lr=0.1)
        compiled = torch.compile(m)
        @torch.compile
        def step(x):
            o.zero_grad()
            loss = m(x)
            loss.backward()
            o.step()
            return loss
        for _ in range(3):
            compiled(torch.ones(2, 3)).backward()
            step(torch.ones(2, 3))
        """,
    "compile with guards": """
        class Settings:
            scale, kept = 2.0, [1, 2]
        settings, table = Settings(), {"a": torch.ones(3), "b": large}
        def outer(bias):
            @torch.compile
            def f(x, flag=None, *, more=()):
                y = x * settings.scale + bias + table["a"]
                for each in settings.kept:
                    y = y + each
                return y if flag is None else y * flag.scale
            return f
        f = outer(torch.ones(3))
        for _ in range(2):
            f(torch.ones(3))
            f(torch.ones(3, requires_grad=True), settings)
            f(torch.ones(4, 3))
            f(torch.ones(3, dtype=torch.float64), more=(large,))
            settings.scale += 1
            table["a"] = torch.zeros(3)
        """,
    "compile of many sizes": """
        f = torch.compile(lambda x: (x.exp() * large.__class__.__name__.__len__()).sum(0), dynamic=True)
        results = [f(torch.ones(n, 300)) for n in range(2, 6)]
        """,
    "compile what is refused": """
        import warnings
        seen = []
        def f(x):
            seen.append(large)
            if x.sum().item() > 0:
                print(end="")
            return x.numpy()
        results = []
        for full in (False, True):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                g = torch.compile(f, fullgraph=full)
                try:
                    results += [g(torch.ones(3)), g(torch.ones(3))]
                except Exception as error:
                    last = error
        """,
    "compile what raises": """
        class Mine(Exception):
            pass
        @torch.compile
        def f(x):
            if x.shape[0] > 2:
                raise Mine(x, large)
            return x * 2
        f(torch.ones(2))
        for _ in range(2):
            try:
                f(torch.ones(3))
            except Mine as error:
                last = error
            try:
                f(torch.ones(2) @ torch.ones(5))
            except RuntimeError as error:
                other = error
        """,
    "compile in other features": """
        from adjoint.utils.checkpoint import checkpoint
        @torch.compile
        def f(x):
            return (x.sin() * x).sum()
        x = torch.ones(3, requires_grad=True)
        checkpoint(f, x, use_reentrant=False).backward()
        a, b = torch.func.grad(f)(x.detach()), torch.func.vmap(f)(torch.ones(2, 3))
        g = torch.compile(torch.func.grad(lambda x: (x * x).sum()))
        c = g(torch.ones(3))
        x.register_hook(lambda grad: grad * 2)
        f(x).backward()
        with torch.autocast("cpu"):
            d = torch.compile(lambda x, w: x @ w)(torch.ones(3, 3), torch.ones(3, 3))
        with torch.no_grad():
            e = f(x)
        with torch.compiler.set_stance("force_eager"):
            f(x)
        torch.compiler.reset()
        f(x)
        """,
    "compile with own classes": """
        import collections
        Pair = collections.namedtuple("Pair", "a b")
        class Mine(torch.Tensor):
            pass
        class Level(int):
            pass
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, grad):
                return grad * 2
        @torch.compile
        def f(p, level):
            return Pair(Twice.apply(p.a) * level, p.b + 1)
        for _ in range(2):
            y = f(Pair(torch.ones(2, requires_grad=True), torch.ones(2)), Level(3))
            y.a.sum().backward()
            z = f(Pair(torch.ones(2).as_subclass(Mine), torch.ones(2)), 3)
        """,
    "compile large arrays": """
        @torch.compile
        def f(x):
            return torch.nn.functional.gelu(x @ x).softmax(-1).sum()
        x = torch.ones(300, 300, requires_grad=True)
        for _ in range(3):
            f(x).backward()
        """,
    "compile in threads": """
        from concurrent.futures import ThreadPoolExecutor
        f = torch.compile(lambda x: (x * 2).exp().sum())
        def work(n):
            x = torch.ones(n, requires_grad=True)
            f(x).backward()
            return x
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(work, [3, 3, 4, 5]))
        """,
    "compile in place": """
        class Method:
            def __init__(self):
                self.state = torch.zeros(3)
            @torch.compile
            def update(self, x):
                self.state += x
                return self.state * 2
        o = Method()
        for _ in range(3):
            y = o.update(torch.ones(3))
        m = torch.nn.Linear(3, 3)
        m.compile()
        m(torch.ones(3)).sum().backward()
        """,
    "export, save and load": """
        import io
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.a = torch.nn.Linear(3, 3)
            def forward(self, x):
                return self.a(x).relu()
        m = Net()
        program = torch.compiler.export(m, (torch.ones(2, 3),))
        text = str(program)
        f = torch.compile(lambda x: m(x) * 2)
        with torch.no_grad():
            y = program(torch.ones(2, 3)), f(torch.ones(2, 3)), f(torch.ones(4, 3))
        for each in (program, f):
            file = io.BytesIO()
            torch.compiler.save(each, file)
            file.seek(0)
            again = torch.compiler.load(file)
            z = again(torch.ones(2, 3))
        """,
    "own distribution": """
        class Mine(torch.distributions.Normal):
            pass
        d = torch.distributions.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 2.0))
        s = Mine(0.0, 1.0).sample()
        """,
    "own named tuple": """
        import collections, typing
        Pair = collections.namedtuple("Pair", "a b")
        class Other(typing.NamedTuple):
            a: torch.Tensor
        from adjoint.utils import _pytree
        leaves, spec = _pytree.tree_flatten(Pair(torch.ones(2), Other(torch.ones(2))))
        v = torch.func.vmap(lambda p: Pair(p.a * 2, p.b))(Pair(torch.ones(2), torch.ones(2)))
        from adjoint.utils.data import default_collate
        c = default_collate([Pair(1.0, 2.0), Pair(1.0, 3.0)])
        """,
    "own dataclass": """
        import dataclasses, io
        @dataclasses.dataclass
        class Box:
            x: torch.Tensor
        m = torch.nn.Identity()
        m(Box(torch.ones(3, requires_grad=True))).x.sum().backward()
        """,
    "serialized class": """
        import io
        class Own(dict):
            pass
        file = io.BytesIO()
        torch.save({"a": torch.ones(3)}, file)
        file.seek(0)
        with torch.serialization.safe_globals([Own]):
            torch.load(file)
        """,
    "thread": """
        import threading
        x = torch.ones(3, requires_grad=True)
        def work():
            with torch.no_grad():
                x * 2
            torch.func.grad(lambda x: x.sum())(x.detach())
            (x * 2).sum().backward()
        t = threading.Thread(target=work)
        t.start()
        t.join()
        """,
    "signal handler": """
        import signal
        def interrupted(number, frame):
            raise KeyboardInterrupt
        before = signal.signal(signal.SIGUSR1, interrupted)
        x = torch.ones(3, requires_grad=True)
        try:
            signal.raise_signal(signal.SIGUSR1)
        except KeyboardInterrupt:
            pass
        (x * 2).sum().backward()
        signal.signal(signal.SIGUSR1, before)
        """,
    "interrupted transform": """
        def f(x):
            raise KeyboardInterrupt
        try:
            torch.func.grad(f)(torch.ones(3))
        except KeyboardInterrupt:
            pass
        """,
    "generator": """
        @torch.no_grad()
        def batches():
            for i in range(3):
                yield torch.ones(3) * i
        it = batches()
        y = next(it)
        """,
    "decorators": """
        @torch.autocast("cpu")
        def f(x):
            return x @ x
        @torch.inference_mode()
        def g(x):
            return x * 2
        y = f(torch.ones(3, 3)), g(torch.ones(3))
        """,
    "map of arrays": "x = torch.ones(3)\nx.map_(x, lambda a, b: a)\nx.apply_(lambda a: a + 1)",
    "control flow": "y = torch.cond(torch.tensor(True), lambda x: x * 2, lambda x: x, (torch.ones(3),))",
    "hooks of the engine": """
        x = torch.ones(3, requires_grad=True)
        class Late(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, grad):
                torch.autograd.Variable._execution_engine.queue_callback(lambda: None)
                return grad
        Late.apply(x).sum().backward()
        """,
    "named saved hooks on disk": """
        x = torch.ones(3, requires_grad=True)
        kept = []
        def pack(t):
            kept.append(t)
            return len(kept) - 1
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda i: kept[i]):
            y = x.exp()
        y.sum().backward()
        """,
    "cross entropy and more": """
        def loss(m, x, y):
            return torch.nn.functional.cross_entropy(m(x), y)
        m = torch.nn.Linear(3, 3)
        loss(m, torch.ones(2, 3), torch.tensor([0, 1])).backward()
        """,
    "flex attention": """
        from adjoint.nn.attention.flex_attention import flex_attention
        q = torch.ones(1, 1, 4, 4)
        y = flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s * 2)
        """,
    "onnx": """
        import io
        class Net(torch.nn.Module):
            def forward(self, x):
                return x * 2
        program = torch.onnx.export(Net(), (torch.ones(2),), dynamo=True)
        """,
    "module tracker": """
        from adjoint.utils.module_tracker import ModuleTracker
        m = torch.nn.Sequential(torch.nn.Linear(2, 2))
        with ModuleTracker():
            m(torch.ones(2)).sum().backward()
        """,
    "custom operator freed": """
        library = torch.library.Library("dropped", "DEF")
        library.define("twice(Tensor x) -> Tensor")
        def twice(x):
            return x * 2
        library.impl("twice", twice, "CPU")
        y = torch.ops.dropped.twice(torch.ones(3))
        library._destroy()
        """,
    "loader with workers": """
        from adjoint.utils.data import DataLoader, Dataset
        class Numbers(Dataset):
            def __len__(self):
                return 4
            def __getitem__(self, index):
                return torch.tensor(float(index))
        loader = DataLoader(Numbers(), batch_size=2, num_workers=1, worker_init_fn=lambda number: None)
        seen = list(loader)
        """,
    "model with everything": """
        class Block(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = torch.nn.LayerNorm(4)
                self.scale = torch.nn.Parameter(torch.ones(4))
                self.register_buffer("seen", torch.zeros(()))
            def forward(self, x):
                self.seen += 1
                return torch.nn.functional.gelu(self.norm(x)) * self.scale
        model = torch.nn.Sequential(Block(), torch.nn.Dropout(0.1), Block())
        optimizer = torch.optim.AdamW(model.parameters())
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            scheduler.step()
        """,
    "own parameter class": """
        class Mine(torch.nn.Parameter):
            pass
        m = torch.nn.Linear(2, 2)
        m.weight = Mine(torch.ones(2, 2))
        m(torch.ones(2)).sum().backward()
        o = torch.optim.Adam(m.parameters())
        o.step()
        y = m.weight * 2 + m.weight[0]
        """,
    "own constraint": """
        class Even(torch.distributions.constraints.Constraint):
            def check(self, value):
                return value % 2 == 0
        class Mine(torch.distributions.Distribution):
            arg_constraints = {"scale": Even()}
            support = Even()
            def __init__(self, scale):
                self.scale = scale
                super().__init__(scale.shape)
        d = Mine(torch.tensor([2.0]))
        """,
    "own error": """
        class Mine(Exception):
            pass
        def f(x):
            raise Mine(x)
        x = torch.ones(3, requires_grad=True)
        for call in (lambda: torch.func.vmap(f)(x.detach()), lambda: torch.autograd.functional.jacobian(f, x)):
            try:
                call()
            except Mine as error:
                last = error
        """,
    "own generator of samples": """
        def samples():
            yield from (torch.ones(2) * i for i in range(3))
        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                return samples()
        it = iter(torch.utils.data.DataLoader(Stream(), batch_size=None))
        first = next(it)
        """,
    "profiler callback": """
        def ready(p):
            return p.key_averages().table()
        schedule = torch.profiler.schedule(wait=0, warmup=0, active=1)
        with torch.profiler.profile(on_trace_ready=ready, schedule=schedule) as p:
            with torch.profiler.record_function("mine"):
                torch.ones(3).exp()
            p.step()
        """,
    "shared state dict hooks": """
        m = torch.nn.Linear(2, 2)
        m._register_load_state_dict_pre_hook(lambda *a: None)
        m.register_load_state_dict_post_hook(lambda *a: None)
        m.load_state_dict(m.state_dict())
        """,
    "optimizer hooks of all": """
        from adjoint.optim.optimizer import register_optimizer_step_post_hook
        h = register_optimizer_step_post_hook(lambda *a: None)
        w = torch.ones(2, requires_grad=True)
        w.sum().backward()
        torch.optim.SGD([w], lr=0.1).step()
        h.remove()
        """,
    "optimizer in backward": """
        w = torch.nn.Parameter(torch.ones(2))
        o = torch.optim.SGD([w], lr=0.1)
        def step(p):
            o.step()
            o.zero_grad()
        w.register_post_accumulate_grad_hook(step)
        (w * 2).sum().backward()
        """,
    "flattened own keys": """
        class Key:
            pass
        from adjoint.utils import _pytree
        tree = _pytree.tree_map(lambda x: x * 2, {Key(): torch.ones(2), "b": [torch.ones(1)]})
        """,
    "deep copies of own": """
        import copy
        class Mine(torch.Tensor):
            def new_empty(self, *args, **kwargs):
                return super().new_empty(*args, **kwargs).as_subclass(Mine)
        class Net(torch.nn.Module):
            def forward(self, x):
                return x
        x = copy.deepcopy(torch.ones(2).as_subclass(Mine))
        m = copy.deepcopy(Net())
        """,
    "once differentiable": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, f):
                ctx.f = f
                ctx.set_materialize_grads(False)
                ctx.save_for_backward(x)
                return x.clone()
            @staticmethod
            def backward(ctx, grad):
                return ctx.f(grad), None
        x = torch.ones(2, requires_grad=True)
        F.apply(x, lambda grad: grad).sum().backward()
        g, = torch.autograd.grad(F.apply(x, lambda grad: grad).sum(), x, create_graph=True)
        """,
    "saved hooks that raise": """
        def pack(t):
            raise ValueError("no")
        x = torch.ones(2, requires_grad=True)
        try:
            with torch.autograd.graph.saved_tensors_hooks(pack, pack):
                x.exp()
        except ValueError as error:
            text = str(error)
        """,
    "backward in a thread": """
        from concurrent.futures import ThreadPoolExecutor
        x = torch.ones(2, requires_grad=True)
        def f(i):
            y = torch.utils.checkpoint.checkpoint(lambda x: x.exp().sin(), x * i, use_reentrant=False)
            y.sum().backward()
            return torch.func.vmap(torch.func.grad(lambda x: x.sin()))(torch.ones(2))
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(f, range(4)))
        """,
    "multiprocessing": """
        import adjoint.multiprocessing as mp
        x = torch.ones(3).share_memory_()
        context = mp.get_context("fork")
        queue = context.SimpleQueue()
        def work(queue, x):
            x.add_(1)
            queue.put(1)
        p = context.Process(target=work, args=(queue, x))
        p.start()
        queue.get()
        p.join()
        p.close()
        """,
}

PERMANENT = {
    "custom operator": """
        @torch.library.custom_op("dropped::thrice", mutates_args=())
        def thrice(x: torch.Tensor) -> torch.Tensor:
            return x * 3
        y = thrice(torch.ones(3))
        """,
    "pytree node": """
        from adjoint.utils import _pytree
        class Node:
            pass
        _pytree.register_pytree_node(Node, lambda node: ([], None), lambda items, context: Node())
        leaves = _pytree.tree_leaves(Node())
        """,
    "divergence": """
        class Mine(torch.distributions.Normal):
            pass
        @torch.distributions.register_kl(Mine, Mine)
        def divergence(p, q):
            return torch.ones(())
        d = torch.distributions.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0))
        """,
}
