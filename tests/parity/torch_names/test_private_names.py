"""Private and rare names that other programs use behave as PyTorch's."""
# ruff: noqa: E501

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

ATTEMPT = """
        from importlib import import_module
        def attempt(function, *args, **kwargs):
            try:
                return function(*args, **kwargs)
            except Exception as error:
                return error
        load = lambda name: import_module(torch.__name__ + name)
"""

PROGRAMS = {
    "tensors_in_one_buffer": """
        U = load("._utils")
        a, b, c = torch.arange(6.).reshape(2, 3), torch.tensor(3.), torch.ones(2, requires_grad=True)
        flat = U._flatten_dense_tensors([a, b, c])
        show(flat, attempt(U._flatten_dense_tensors, []), U._flatten_dense_tensors([a, torch.ones(2, dtype=torch.double)]), U._flatten_dense_tensors([a.t()]), attempt(U._flatten_dense_tensors, a))
        one = U._flatten_dense_tensors([a])
        show(one.data_ptr() == a.data_ptr(), one._is_view())
        parts = U._unflatten_dense_tensors(flat, [a, b, c])
        show(type(parts).__name__, parts, [part._base is flat for part in parts], U._unflatten_dense_tensors(flat, [torch.ones(0), a]), U._unflatten_dense_tensors(flat, []))
        show(attempt(U._unflatten_dense_tensors, torch.ones(2), [a]), attempt(U._unflatten_dense_tensors, a, [b]))
        tensors = [torch.ones(2), torch.ones(3, dtype=torch.double), torch.ones(5), torch.ones(1, dtype=torch.double), torch.ones(100)]
        for limit in (0, 1, 8, 20, 24, 1000):
            show([[tensor.shape for tensor in chunk] for chunk in U._take_tensors(tensors, limit)])
        show(U._reorder_tensors_as([torch.ones(1), torch.ones(2), torch.ones(3, dtype=torch.double)], [torch.zeros(3, dtype=torch.double), torch.zeros(1), torch.zeros(2)]))
        show(U._handle_complex(torch.ones(2)), U._handle_complex(torch.ones(2) * 1j), attempt(U._handle_complex, 3))
        show([U._element_size(dtype) for dtype in (torch.float64, torch.bool, torch.complex64, torch.int16, torch.bfloat16)])
    """,
    "tensors_rebuilt": """
        U = load("._utils")
        show(U._rebuild_tensor(torch.arange(6.).storage(), 1, (2,), (2,)))
        t = U._rebuild_tensor_v2(torch.arange(6.).storage(), 1, (2,), (2,), True, {})
        show(t, t.stride(), t.storage_offset())
        show(U._rebuild_tensor_v2(torch.arange(6.).to(torch.complex64).storage(), 1, (2, 2), (2, 1), False, {}, {"conj": True}))
        p = U._rebuild_parameter(torch.ones(2), False, {})
        show(type(p).__name__, p)
        p = U._rebuild_parameter_with_state(torch.ones(2), True, {}, {"tag": 5})
        show(type(p).__name__, p, p.tag)
        m = U._rebuild_meta_tensor_no_storage(torch.float64, (2, 3), (3, 1), True)
        show(m.shape, m.stride(), m.requires_grad, m.dtype, m.device.type)
    """,
    "comparisons": """
        C = load(".testing._comparison")
        def compared(pair, *args, **kwargs):
            try:
                made = pair(*args, **kwargs)
                show(str(made))
                return made.compare()
            except C.ErrorMeta as meta:
                return meta.type.__name__, meta.msg, meta.id
            except C.UnsupportedInputs:
                return "unsupported"
        a, b = torch.ones(2), torch.tensor([1., 2.])
        show(compared(C.TensorLikePair, a, a, id=("x", 1)), compared(C.TensorLikePair, a, b, id=("x", 1)), compared(C.TensorLikePair, a, b, rtol=0.5, atol=0.5))
        show(compared(C.TensorLikePair, a, a.double()), compared(C.TensorLikePair, a, a.double(), check_dtype=False), compared(C.TensorLikePair, a, [1., 1.]))
        show(compared(C.NumberPair, 1, 2), compared(C.NumberPair, 1., 1.05, rtol=0.1, atol=0.), compared(C.NumberPair, 1, "x"), compared(C.NumberPair, 1., 2., rtol=0.1))
        show(compared(C.BooleanPair, True, False, id=()), compared(C.BooleanPair, True, 1, id=()), compared(C.NonePair, None, 3), compared(C.NonePair, 2, 3), compared(C.ObjectPair, "a", "b"))
        pairs = (C.NonePair, C.BooleanPair, C.NumberPair, C.TensorLikePair)
        for first, second in (([1, {"k": a}], [2, {"k": b}]), ([1], [1, 2]), ({"a": 1}, {"b": 1}), ("a", "a"), ((1, True), [1, True])):
            found = attempt(C.not_close_error_metas, first, second, pair_types=pairs)
            show([attempt(meta.to_error) for meta in found] if isinstance(found, list) else found)
        show(attempt(C.not_close_error_metas, [1], [2])[0].to_error(lambda text: text.upper()))
        show(C.default_tolerances(a, torch.float64), C.get_tolerances(a, rtol=None, atol=None), C.get_tolerances(a, rtol=1, atol=2))
    """,
    "modules_of_operators": """
        o = torch.ops.aten.add
        show(o.__module__, o.Tensor.__module__, o.Tensor.__name__, torch._C._get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512"))
    """,
    "objects_and_calls": """
        U = load("._utils")
        show(U.render_call(torch.add, (1, 2), {"a": torch.ones(3)}), U.render_call(len, ([torch.ones(2), (1.5, "x")],), {}), U.render_call(torch.ones, (torch.ones(2, 3, dtype=torch.int64), (1,)), {"a": torch.ones(1, requires_grad=True), "b": {"c": torch.ones(2, dtype=torch.double)}}))
        show(U._get_async_or_non_blocking("f", True, {}), U._get_async_or_non_blocking("f", False, {"async": True}), attempt(U._get_async_or_non_blocking, "f", False, {"b": True}), attempt(U._get_async_or_non_blocking, "f", False, {"b": True, "c": 1}))
        show(U._import_dotted_name("math.pi"), attempt(U._import_dotted_name, "os.zz"), attempt(U._import_dotted_name, "zzqq.a"), U.is_compiling(), U.try_import("math") is not None, U.try_import("no_such_module_zz"))
        class A:
            @U.classproperty
            def name(cls):
                return cls.__name__
        class B(A):
            pass
        show(A.name, B.name, A().name)
        for device in ("cpu", 0, None, "cuda:1", torch.device("cpu"), "meta", -1, 1.5):
            for optional in (False, True):
                for allow_cpu in (False, True):
                    show(attempt(U._get_device_index, device, optional, allow_cpu))
        class Slotted:
            __slots__ = ("a", "__dict__")
        o = Slotted()
        o.a, o.b = 1, 2
        state = U._get_obj_state(o)
        q = U._set_obj_state(Slotted(), state)
        show(state, q.a, q.b, attempt(U._set_obj_state, q, (1, 2, 3)), U._set_obj_state(q, {"c": 4}).c, U._set_obj_state(q, None) is q)
        class Own:
            def __getstate__(self):
                return "own"
        show(U._get_obj_state(Own()))
    """,
    "exceptions_of_workers": """
        U = load("._utils")
        class Odd(Exception):
            def __init__(self, a, b):
                super().__init__(a, b)
        class Message(Exception):
            def __init__(self, message="d"):
                super().__init__(message)
        def wrapped(error):
            try:
                raise error
            except Exception:
                return U.ExceptionWrapper(where="in worker 3")
        for error in (ValueError("x"), KeyError("k"), Odd(1, 2), StopIteration(3), Message("hm"), OSError(2, "No")):
            w = wrapped(error)
            again = attempt(w.reraise)
            show(w.exc_type.__name__, w.where, w.exc_msg.split("\\n")[-2], type(again).__name__, str(again).split("\\n")[:2])
        show(repr(U.KeyErrorMessage("a b")) == "a b", isinstance(U.KeyErrorMessage("a"), str), U.ExceptionWrapper((ValueError, ValueError("q"), None)).where)
    """,
    "groups_of_tensors": """
        G = load(".utils._foreach_utils")
        show("cpu" in G._get_fused_kernels_supported_devices(), "cpu" in G._get_foreach_kernels_supported_devices(), G._device_has_foreach_support(torch.device("cpu")), G._device_has_foreach_support(torch.device("meta")), G._has_foreach_support([torch.ones(2), None], torch.device("cpu")), G._has_foreach_support([torch.nn.Parameter(torch.ones(2))], torch.device("meta")))
        a, b, c = torch.ones(2), torch.ones(3, dtype=torch.double), torch.zeros(4)
        def grouped(*args, **kwargs):
            groups = G._group_tensors_by_device_and_dtype(*args, **kwargs)
            return sorted(((str(device), str(dtype)), value) for (device, dtype), value in groups.items())
        for lists in ([[a, b, c]], [[a, b, c], [c, b, a]], [[a, b, c], [None, b, None]], [[a, b, c], [b, b, b]], [[a, b], []], [[a, b, c], [torch.tensor(1.)] * 3]):
            show(grouped(lists), grouped(lists, with_indices=True))
        for lists in ([[None, a]], [[a, b], [c.long(), c.long()]]):
            show(attempt(grouped, lists))
        show([type(attempt(grouped, lists)).__name__ for lists in ([], [[]], [[a], [b, c]])])
    """,
    "functions_for_older_code": """
        A, tensor, utils = load(".autograd._functions"), load(".autograd._functions.tensor"), load(".autograd._functions.utils")
        show(A.Resize is tensor.Resize, A.Type is tensor.Type)
        x = torch.arange(6., requires_grad=True)
        for size in ((2, 3), (6,), (1, 6)):
            r = A.Resize.apply(x * 1, size)
            show(r, r._is_view(), r.stride(), torch.autograd.grad((r * r).sum(), x))
        r = A.Resize.apply((x * 1).reshape(2, 3).t(), (2, 3))
        show(r, torch.autograd.grad((r * r).sum(), x))
        raises(lambda: A.Resize.apply(x, (3,)))
        raises(lambda: A.Resize.apply(x, (2, -1)))
        for kind in ("torch.DoubleTensor", torch.float64):
            r = A.Type.apply(x, kind)
            show(r, torch.autograd.grad((r * r).sum(), x))
        show(A.Type.apply(x, "torch.LongTensor"))
        show(utils.maybe_view(x, (2, 3)), utils.maybe_view(x, (6,)) is x, utils.maybe_view(x, (6,), False) is x, attempt(utils.maybe_view, x, (4,)))
        y = torch.arange(24.).reshape(2, 3, 4)
        show([utils.maybe_unexpand(y, size) for size in ((3, 4), (1, 3, 4), (1,), (), (2, 1, 4), (2, 1, 1))], utils.maybe_unexpand(y, y.shape) is y)
    """,
    "functions_of_torch_that_are_not_those_of_layers": """
        x = torch.arange(12.).reshape(4, 3).sin().requires_grad_()
        w, b = torch.tensor([1., 2., 3.], requires_grad=True), torch.tensor([.1, .2, .3], requires_grad=True)
        m, v = torch.zeros(3), torch.ones(3)
        for training in (True, False):
            y = torch.batch_norm(x, w, b, m, v, training, .1, 1e-5, False)
            show(y, m, v, torch.autograd.grad((y * y * torch.arange(12.).reshape(4, 3)).sum(), [x, w, b]))
        raises(lambda: torch.batch_norm(x, None, None, None, None, False, .1, 1e-5, False))
        show(torch.nn.functional.batch_norm(x, m, v, w, b, True), torch.nn.functional.instance_norm(x.reshape(2, 2, 3)), m, v)
        t = (x.detach() > 0).float()
        for reduction in (0, 1, 2):
            show(torch.binary_cross_entropy_with_logits(x, t, w.detach(), b.detach(), reduction))
        show(torch.binary_cross_entropy_with_logits(x, t), torch.nn.functional.binary_cross_entropy_with_logits(x, t))
        raises(lambda: torch.binary_cross_entropy_with_logits(x, t, None, None, "mean"))
    """,
    "levels_and_modes": """
        fwAD = torch.autograd.forward_ad
        show(fwAD._current_level)
        with fwAD.dual_level():
            show(fwAD._current_level)
            raises(fwAD.enter_dual_level)
        show(fwAD._current_level, fwAD._is_fwd_grad_enabled())
        with fwAD._set_fwd_grad_enabled(False):
            show(fwAD._is_fwd_grad_enabled(), torch._C._is_fwd_grad_enabled())
        show(torch._C._enter_dual_level(), torch._C._exit_dual_level(0))
        raises(lambda: torch._C._exit_dual_level(0))
        show(torch._C.is_grad_enabled(), torch._C.is_inference_mode_enabled())
        saved = torch.ones(2, requires_grad=True).exp().grad_fn._raw_saved_result
        show(isinstance(saved, torch.autograd.SavedTensor), torch.autograd.SavedTensor is torch._C._autograd.SavedTensor)
        itt = load(".profiler.itt")
        show(itt.range_push("a"), itt.mark("m"), itt.range_pop())
        with itt.range("step {}", 3) as value:
            show(value)
        show(itt.range("call")(lambda x: x + 1)(2))
    """,
    "views_on_other_bases": """
        x = torch.arange(6.)
        pairs = torch.ones(2, dtype=torch.cfloat)
        for view in (x.view(2, 3), x[1:3], x[2], x.view(2, 3).t()[1:], x.unbind()[1], x.split(2)[1], x.expand(2, 6), x.as_strided((2,), (2,)), x.detach(), x, x.view(torch.int32), x.view(2, 3)._view_func(x * 2)):
            for base in (torch.arange(6.) + 10, torch.ones(7), torch.ones(6, dtype=torch.double), torch.ones(12)[::2]):
                show(view._view_func(base))
        show(torch.view_as_real(pairs)[..., 0]._view_func(pairs * 3), pairs.conj()._view_func(pairs * 1j), pairs.imag._view_func(pairs * 2j))
        new = torch.ones(6, requires_grad=True) * 1
        made = x.view(2, 3)[0]._view_func(new)
        show(made, made._base is new, torch.autograd.grad(made.sum(), new))
        raises(lambda: x.view(6)._view_func(3))
        raises(lambda: x.view(6)._view_func())
        show(x.view(2, 3)._view_func_unsafe(torch.ones(6), symint_visitor_fn=lambda number: number))
    """,
    "order_of_execution": """
        def order(t, run):
            t.register_hook(lambda grad: show([node.name() for node in torch._C._current_graph_task_execution_order()]))
            with torch.autograd.set_multithreading_enabled(False):
                run(t)
        a, b = torch.tensor(1., requires_grad=True), torch.tensor(2., requires_grad=True)
        c = a * 2
        both = lambda: c * b + c.sin() * a
        for run in (lambda t: t.backward(retain_graph=True), lambda t: torch.autograd.grad(t, (a, b), retain_graph=True), lambda t: torch.autograd.grad(t, c, retain_graph=True), lambda t: t.backward(inputs=(c, b), retain_graph=True)):
            order(both(), run)
        u = torch.ones(3, requires_grad=True).unbind()
        order(u[0] * u[2] + u[1], lambda t: t.backward())
        raises(lambda: torch._C._current_graph_task_execution_order())
        a.register_hook(lambda grad: raises(lambda: torch._C._current_graph_task_execution_order()))
        (a * 3).backward()
    """,
    "levels_by_hand": """
        C = torch._C._functorch
        level = C._vmap_increment_nesting(3, "error")
        batched = C._add_batch_dim(torch.ones(3, 2), 0, level)
        show(level, C.current_level(), batched.shape, (batched + 1).shape)
        show(C._remove_batch_dim(batched + 1, level, 3, 1), C._unwrap_batched(batched, level)[1], C._unwrap_batched(torch.ones(2), level)[1], C._remove_batch_dim(torch.ones(2), level, 3, 0))
        show(C._vmap_decrement_nesting())
        show(C._grad_increment_nesting(), C.current_level(), C._grad_decrement_nesting(), C.maybe_current_level())
        raises(lambda: C._vmap_increment_nesting(3, "other"))
        restore = load("._functorch.vmap").restore_vmap
        x, y = torch.arange(12.).reshape(3, 4), torch.arange(5.)
        show(restore(lambda x, y: (x, y, x.sum() + y, {"a": x * 2}), (1, None), 4, "error")(x, y), restore(lambda x: x.t(), (-1,), 4, "error")(torch.ones(2, 3, 4)), restore(lambda x: (x, 3), (None,), 3, "error")(x))
        raises(lambda: restore(lambda x: x, (0, 0), 3, "error")(x))
        z = torch.arange(30.).reshape(2, 3, 5)
        for source, target in ((0, 0), (0, 1), (1, 0), (2, 0), (0, 2), (2, 1), (-1, 0), (0, -1)):
            raises(lambda: show(C.reshape_dim_into(source, target, z)))
        show(C.reshape_dim_outof(1, 3, z), C.reshape_dim_outof(-1, 5, z), C.reshape_dim_outof(0, 1, z))
        older = load("._vmap_internals")
        warns(lambda: older.vmap(torch.sin)(x))
        for f in (lambda x: (x, None), lambda x: (None, x, x), lambda x: 3, lambda x: {"a": x}, lambda x: [x], lambda x: x):
            raises(lambda: show(older._vmap(f, 0, 0)(x)))
        show(older._vmap(lambda x: (None, x, x), 0, 0, True)(x), older._vmap(torch.sin, 0, 0, True)(x))
        with load(".utils._mode_utils").no_dispatch():
            show(x.sum())
        show(load("._ops").OpOverload is type(torch.ops.aten.mm.default))
    """,
    "functorch": """
        apis, deprecated, eager = load("._functorch.apis"), load("._functorch.deprecated"), load("._functorch.eager_transforms")
        x = torch.arange(5.)
        for name in ("vmap", "grad", "grad_and_value", "vjp", "jacrev", "hessian", "functionalize"):
            warns(lambda: getattr(deprecated, name).__name__ == getattr(deprecated, name)(torch.sin, *((x,) if name == "vjp" else ())))
        warns(lambda: [p.shape for p in deprecated.make_functional(torch.nn.Linear(2, 3))[1]])
        for chunks in (1, 2, 3, 4, 7):
            sizes = []
            show(apis.chunk_vmap(lambda x: (sizes.append(torch._C._functorch.get_unwrapped(x).shape[0]), x + 1)[1], chunks=chunks)(x), sizes)
        for chunks in (0, -1, "a"):
            raises(lambda: apis.chunk_vmap(torch.sin, chunks=chunks)(x))
        for argnums in (0.0, 2, -3, (), (0, 0), (0, -2), ("a",), (5,), 1, -1, (0, 1), (1, 0)):
            raises(lambda: show(eager._slice_argnums(("a", [2]), argnums), eager._slice_argnums(("a", [2]), argnums, False)))
        show(load("._functorch.batch_norm_replacement").replace_all_batch_norm_modules_(torch.nn.BatchNorm1d(2)).running_mean)
    """,
    "names_of_the_core": """
        C = torch._C
        x = torch.ones(2, requires_grad=True)
        show(isinstance(x, C.TensorBase), issubclass(torch.autograd.Function, C._FunctionBase), C._is_alias_of(x, x[:1]), C._is_alias_of(x, x.clone()))
        show(C.Size is torch.Size, C.Generator is torch.Generator, C.dtype is torch.dtype, C.layout is torch.layout, C.memory_format is torch.memory_format, C._VariableFunctions.add(x, x))
        A = C._autograd
        show(A._get_creation_meta(x.view(2)).name, A._get_creation_meta(x.unbind()[0]).name)
        with torch.no_grad():
            view = x.view(2)
        show(A._get_creation_meta(view).name, A._top_saved_tensors_default_hooks(False))
        number = torch.autograd._get_sequence_nr()
        show((x * 2).grad_fn._sequence_nr() == number, A._get_sequence_nr() == number + 1, A._profiler_enabled())
        y = x * 1
        y.register_hook(lambda grad: show(A._get_current_graph_task_keep_graph()))
        y.sum().backward(retain_graph=True)
        y.sum().backward()
        show(A._get_current_graph_task_keep_graph())
        show(torch.autograd.functional._construct_standard_basis_for((torch.zeros(2, dtype=torch.double), torch.zeros(3, 1)), (2, 3)))
        show(torch.jit._wait(torch.jit._fork(lambda x: x + 1, 2)))
        saved = (x * x).grad_fn._raw_saved_self
        show(saved.unpack() is x)
        saved.register_hooks(lambda t: 3, lambda packed: torch.ones(2) * packed)
        show(saved.data, saved.unpack())
        with torch.inference_mode():
            inside = torch.ones(2)
        raises(lambda: A._unsafe_set_version_counter((inside,), (1,)))
    """,
    "profiles_put_together": """
        util, profiler = load(".autograd.profiler_util"), load(".autograd.profiler")
        events = util.EventList()
        for thread, spans in enumerate([[(0, 10), (1, 3), (1, 2), (2, 5)], [(0, 20), (3, 18), (4, 8), (10, 12)]]):
            for start, end in spans:
                events.append(util.FunctionEvent(id=len(events), node_id=0, name="n", thread=thread, start_us=start, end_us=end))
        events._populate_cpu_children()
        show([[child.id for child in event.cpu_children] for event in events], [event.self_cpu_time_total for event in events])
        show([util._format_time(t) for t in (0.5, 1, 1500, 2.5e6)], [util._format_memory(n) for n in (10, 2048, -5 * 2**30)])
    """,
    "operators_without_a_derivative": """
        import warnings
        space = "without_" + torch.__name__
        lib = torch.library.Library(space, "FRAGMENT")
        ops = getattr(torch.ops, space)
        def caught(f):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                result = attempt(f)
            show([str(each.message).replace(space, "").split(" This may")[0] for each in said if "kernel" in str(each.message)], result)
        for schema, kernel in {
            "product(Tensor a, Tensor b, int c) -> Tensor": lambda a, b, c: a * c,
            "copied(Tensor a) -> Tensor": lambda a: torch.tensor(a.detach().numpy() * 2),
            "view(Tensor(a) a) -> Tensor(a)": lambda a: a.view(-1),
            "same(Tensor(a) a) -> Tensor(a)": lambda a: a,
            "two(Tensor a) -> (Tensor, Tensor)": lambda a: (torch.tensor(a.detach().numpy()), a.detach().long()),
            "several(Tensor[] a) -> Tensor[]": lambda a: [torch.tensor(x.detach().numpy()) for x in a],
        }.items():
            lib.define(schema)
            lib.impl(schema.split("(")[0], kernel, "CPU")
        for mode in ("nothing", "warn"):
            torch._C._set_autograd_fallback_mode(mode)
            a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
            caught(lambda: ops.product(a, b, 2).sum().backward())
            caught(lambda: ops.product(torch.ones(2), b, 2))
            show(a.grad, b.grad)
            for op in (ops.copied, ops.view, ops.two, lambda a: ops.several([a, torch.ones(2)])):
                caught(lambda: op(a))
                caught(lambda: torch.utils._pytree.tree_leaves(op(a))[0].sum().backward())
            caught(lambda: torch.autograd.grad(ops.copied(a).sum(), a))
            caught(lambda: torch.autograd.grad(ops.copied(a).sum(), a, allow_unused=True))
            caught(lambda: torch.autograd.grad(ops.same(b * 1).sum(), b, create_graph=True))
            with torch.no_grad():
                caught(lambda: ops.copied(a))
        raises(lambda: torch._C._set_autograd_fallback_mode("error"))
        show(torch._C._get_autograd_fallback_mode())
    """,
    "functions_of_lists": """
        a, b = torch.ones(2), torch.ones(3)
        for name in ("add", "add_", "mul", "div_", "pow", "maximum", "sub"):
            f = getattr(torch, "_foreach_" + name)
            for args in (([], []), ([], 1), ([], [1]), ([a], []), ([a.clone()], [a, a]), ([a.clone()], [1, 2]), ([a.clone(), b.clone()], [1]), ([a.clone()], [b]), ([1], 1), ([a.clone(), 1], 1)):
                raises(f, *args)
        for name in ("abs", "neg_", "norm", "zero_", "clone", "max"):
            f = getattr(torch, "_foreach_" + name)
            for args in (([],), (a,), ([1],), (None,), ([a.clone()],)):
                show(attempt(f, *args))
        for name in ("addcmul", "addcdiv_"):
            f = getattr(torch, "_foreach_" + name)
            for last in (2.0, [2.0], [2.0, 3.0], torch.tensor([2.0]), torch.tensor([2.0, 3.0]), torch.tensor(2.0)):
                show(attempt(f, [a.clone()], [a], [a], last))
            show(attempt(f, [a.clone()], [a, a], [a]), attempt(f, [a.clone()], [a], [a], value=3), attempt(f, [a.clone()], [a], [a], scalars=[3]))
        tensors = [a.clone()]
        show(torch._foreach_add_(tensors, 1) is tensors, attempt(torch._foreach_add, tensors, torch.ones(2)), attempt(torch._foreach_minimum_, [a.int()], 1.5))
        show(torch._foreach_norm([a], 1, torch.float64), torch._foreach_lerp([a], [a * 3], [0.5]), attempt(torch._foreach_lerp, [a], [a, a], 0.5))
    """,
    "private_functions": """
        def g(*s): return torch.from_numpy(numpy.random.RandomState(sum(s)).randn(*s))
        ones = lambda *s: torch.ones(*s)
        show(attempt(torch._int_mm, ones(17, 8).char(), ones(8, 8).char()), attempt(torch._int_mm, ones(17, 8), ones(8, 8).char()), attempt(torch._int_mm, ones(17, 8).char(), ones(7, 8).char()))
        x = g(2, 3, 4, 4)
        for kind, mask in ((0, ones(4, 4).triu(1).bool()), (1, torch.tensor([[False, True, False, False], [False, False, True, True]])), (2, x > 0.5), (None, x > 0)):
            show(torch._masked_softmax(x, mask, None, kind), torch._masked_softmax(x, mask, 3, kind))
        show(attempt(torch._masked_softmax, x, ones(4, 4), None, 0), attempt(torch._masked_softmax, x, ones(3, 4).bool(), None, 0), attempt(torch._masked_softmax, x, x > 0, None, 5))
        show([torch._debug_has_internal_overlap(each) for each in (ones(3), ones(1).expand(3), ones(3, 3).t(), ones(4, 4)[::2], ones(4).as_strided((2, 2), (1, 1)), torch.tensor(1.0), ones(0), ones(2, 3, 4).permute(2, 0, 1))])
        show(attempt(torch._assert_tensor_metadata, ones(2), (3,)), attempt(torch._assert_tensor_metadata, ones(2), None, (2,)), attempt(torch._assert_tensor_metadata, ones(2), (2,), (1,), torch.float32))
        for found in (0.0, 1.0):
            scale, tracker = torch.tensor([4.0]), torch.tensor([1]).int()
            show(torch._amp_update_scale_(scale, tracker, torch.tensor([found]), 2.0, 0.5, 2), scale, tracker)
        grad, found = torch.tensor([float("inf"), 1.0]), torch.zeros(1)
        torch._amp_foreach_non_finite_check_and_unscale_([grad], found, torch.tensor([0.5]))
        show(grad, found, attempt(torch._amp_foreach_non_finite_check_and_unscale_, [grad], torch.zeros(2), torch.tensor([0.5])))
        z = torch.complex(g(2, 3), g(3, 3)[:2])
        for norm in (0, 1, 2):
            for flag in (True, False):
                show(torch._fft_c2c(z, [1], norm, flag), torch._fft_r2c(g(2, 3), [0, 1], norm, flag))
            show(torch._fft_c2r(z, [1], norm, 4))
        show(torch._convert_indices_from_coo_to_csr(torch.tensor([0, 0, 2]), 4, out_int32=True), torch._convert_indices_from_csr_to_coo(torch.tensor([0, 2, 2, 3]), torch.tensor([0, 1, 0]), transpose=True))
        show(attempt(torch._validate_sparse_coo_tensor_args, torch.tensor([[5]]), ones(1), (2,)), [each.tolist() for each in torch._sparse_csr_prod(torch.eye(2).to_sparse_csr(), [0], True).to_dense()])
        for flags in ((), (True, True), (True, False, True)):
            show(torch._unique2(torch.tensor([3, 1, 1]), *flags))
        show(torch._weight_norm_interface(g(2, 3), g(1, 3), 1), torch._compute_linear_combination(g(3, 2), g(4, 3)), torch._euclidean_dist(g(2, 3), g(4, 3)), torch._addmm_activation(ones(2), ones(2, 2), ones(2, 2), use_gelu=True))
        q, k = g(1, 4, 3, 4), g(1, 2, 3, 4)
        show(torch._scaled_dot_product_attention_math(k, k, k, is_causal=True), torch._scaled_dot_product_attention_math(k, k, k, attn_mask=ones(3, 3).bool().tril(-1)), torch._scaled_dot_product_attention_math(q, k, k, enable_gqa=True, scale=0.3))
        show(torch._is_all_true(torch.tensor([True, False])), torch._is_any_true(torch.tensor([True, False])), torch._dim_arange(g(2, 3), 1), torch._pack_padded_sequence(ones(2, 2, 1), torch.tensor([2, 1]), False), torch._cast_Long(ones(2) * 2.5))
    """,
    "names_of_tests_and_tools": """
        state = torch._C._get_torch_function_state
        show(state().name, list(torch._C._TorchFunctionState.__members__))
        with torch._C.DisableTorchFunction():
            show(state().name)
        with torch._C.DisableTorchFunctionSubclass():
            show(state().name)
        M, I = load(".utils._mode_utils"), load(".utils._import_utils")
        show(M.all_same_mode([]), M.all_same_mode([1, 1]), M.all_same_mode([1, 2]), I._check_module_exists("numpy"), I._check_module_exists("no_such_module"), I._check_module_exists("no_such.module"))
        with M.no_dispatch():
            show(torch.ones(2) + 1)
        abbrs = load(".utils._dtype_abbrs").dtype_abbrs
        show([abbrs[dtype] for dtype in (torch.float32, torch.bfloat16, torch.complex64, torch.int8, torch.bool)])
        show(torch._C._get_privateuse1_backend_name(), bool(load("._utils")._is_privateuse1_backend_available()), torch._disable_dynamo(lambda x: len(x))([1]))
        G = load(".autograd.gradcheck")
        x = torch.ones(2, dtype=torch.double, requires_grad=True)
        show(G._get_numerical_jacobian(lambda a: a * 2, (x,)), list(G._iter_tensors((x, [torch.ones(1)]))), list(G._iter_tensors((x, torch.ones(1)), True)))
        warns(lambda: str(torch.nn.Container(a=torch.nn.ReLU()))); warns(lambda: str(torch.nn.NLLLoss2d()))
    """,
}

test_private_names = program_test({name: ATTEMPT + source for name, source in PROGRAMS.items()})
