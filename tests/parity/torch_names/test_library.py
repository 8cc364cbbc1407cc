"""Operators that programs define with `torch.library`: schemas, arguments, derivatives, batching rules, and errors."""
# ruff: noqa: E501

from textwrap import dedent

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

SETUP = """
    from typing import List, Optional, Sequence, Tuple, Union
    Tensor, library = torch.Tensor, torch.library
    leaf = lambda: torch.ones(2, requires_grad=True)
    x = torch.ones(2)
    def define(name, schema, kernel, **options):
        return library.custom_op("parts::" + name, kernel, mutates_args=options.pop("mutates_args", ()), schema=schema)
"""

LIBRARY = {
    "schemas": """
        def plain(x: Tensor) -> Tensor: ...
        def many(x: Tensor, y: int, z: float = 2.0, w: bool = True, s: str = "a", *, k: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]: ...
        def lists(x: List[Tensor], y: Sequence[int], z: List[float], d: torch.dtype, e: torch.device, o: Optional[int], t: Union[int, float, bool]) -> List[Tensor]: ...
        def words(x: "int", d: torch.dtype = torch.float32, e: torch.device = torch.device("cpu")) -> "None": ...
        def untyped(x): ...
        def without_result(x: Tensor): ...
        def of_dicts(x: dict) -> Tensor: ...
        def starred(*x: Tensor) -> Tensor: ...
        def positional(x: Tensor, /, y: int) -> Tensor: ...
        def optional_result(x: int) -> Optional[str]: ...
        def bare_list(x: List) -> Tensor: ...
        def tuples(x: Tuple[int, int]) -> Tensor: ...
        def listed_default(x: List[int] = [1]) -> None: ...
        for function in (plain, many, lists, words, untyped, without_result, of_dicts, starred, positional, optional_result, bare_list, tuples, listed_default):
            try:
                show(library.infer_schema(function, mutates_args=()))
            except ValueError as error:
                show(str(error).split(". ")[0].split(" Got func")[0])
        show(library.infer_schema(many, mutates_args={"x"}), library.infer_schema(lists, mutates_args=["x"]), library.infer_schema(plain, mutates_args="unknown", op_name="my"))
        for names in ({"y"}, {"q"}):
            try:
                library.infer_schema(many, mutates_args=names)
            except ValueError as error:
                show(str(error).split(" Got func")[0])
    """,
    "arguments": """
        scaled = define("scaled", "(Tensor x, float y, *, SymInt k=1, float? o=None, bool b=False, SymInt[]? l=None, str s=\"a\", ScalarType? d=None) -> Tensor", lambda x, y, **options: x.detach() * y)
        for names in (dict(q=3), dict(k=2.5), dict(k=True), dict(k="a"), dict(o=3), dict(o=x), dict(b=1), dict(b="a"), dict(b=None), dict(l=3), dict(l=[1.5]), dict(l=[1, 2]), dict(l=(1,)), dict(s=3), dict(d=3), dict(d=torch.float32), dict(d="float32"), dict(k=None), dict(k=torch.tensor(3)), dict(k=torch.tensor([1, 2])), dict(l=torch.tensor([1, 2]))):
            raises(lambda: scaled(x, 2.0, **names))
        for args, names in (((x, 2), {}), ((x, True), {}), ((x, 1j), {}), ((x, torch.tensor(2.0)), {}), ((x, 2.0), {"x": x}), ((), {"y": 2.0, "x": x}), (([x], 2.0), {}), ((x, None), {}), ((x,), {}), ((x, 2.0, 3), {})):
            raises(lambda: show(scaled(*args, **names)))
        op = torch.ops.parts.scaled.default
        show(str(op), repr(op), op.name(), str(op._schema), op.namespace, str(torch.ops.parts.scaled), repr(torch.ops.parts.scaled), torch.ops.parts.scaled.overloads(), op.is_view, repr(scaled), scaled._name, scaled._qualname)
        raises(lambda: torch.ops.parts.scaled.other)
        raises(lambda: torch.ops.parts.nothing)
        raises(lambda: define("keyword", "(Tensor x, *, Tensor y) -> Tensor", lambda x, y: x))
        summed = define("summed", "(Tensor[] x, SymInt n=2) -> Tensor", lambda x, n=2: sum(t.detach() for t in x) * n)
        for given in (x, [x, 3], (x, x), [None]):
            raises(lambda: show(summed(given)))
    """,
    "derivatives": """
        def kernel(x, k=2):
            return torch.from_numpy(x.detach().numpy() * k)
        scaled = define("times", "(Tensor x, SymInt k=2) -> Tensor", kernel)
        raises(lambda: scaled(leaf()).sum().backward())
        def setup_context(ctx, inputs, output):
            show(len(inputs), output, ctx.needs_input_grad[0])
            ctx.k = inputs[1]
        scaled.register_autograd(lambda ctx, grad: (grad * ctx.k, None), setup_context=setup_context)
        a = leaf()
        for names in ({}, {"k": 3}):
            scaled(a, **names).sum().backward()
            show(a.grad)
        show(torch.autograd.grad(scaled(a).sum(), a, create_graph=True))
        for formula in (lambda ctx, grad: grad, lambda ctx, grad: (grad, None, None), lambda ctx, grad: (None, None), lambda ctx, grad: (grad[:1], None)):
            scaled.register_autograd(formula)
            raises(lambda: scaled(a).sum().backward())
        copied = define("copied", "(Tensor[] x, SymInt n=3) -> Tensor[]", lambda x, n=3: [t.detach().clone() * n for t in x])
        for formula in (lambda ctx, grads: ([grad * 2 for grad in grads], None), lambda ctx, grads: ([grads[0]], None), lambda ctx, grads: None, lambda ctx, grads: (grads[0], None)):
            copied.register_autograd(formula)
            a, b = leaf(), leaf()
            result = copied([a, b], 2)
            show(type(result).__name__, result)
            raises(lambda: (result[0] + result[1] * 3).sum().backward())
            show(a.grad, b.grad)
        two = define("two", "(Tensor x) -> (Tensor, Tensor)", lambda x: (x.detach().clone(), x.detach().clone()))
        two.register_autograd(lambda ctx, first, second: first + 2 * second)
        a = leaf()
        two(a)[0].sum().backward()
        show(a.grad, two(a))
        changed = define("changed", "(Tensor(a!) x) -> ()", lambda x: (x.sin_(), None)[1], mutates_args={"x"})
        raises(lambda: changed.register_autograd(lambda ctx, grad: grad))
        y = torch.ones(2)
        changed(y)
        show(y, y._version)
        keyword = define("with_keyword", "(Tensor x, *, SymInt y) -> Tensor", lambda x, *, y: x.detach().clone())
        keyword.register_autograd(lambda ctx, grad: grad, setup_context=lambda ctx, inputs, keyword_only_inputs, output: show(inputs, keyword_only_inputs))
        keyword(leaf(), y=3).sum().backward()
    """,
    "results_that_are_arguments": """
        for name, schema, kernel in (("itself", "(Tensor x) -> Tensor", lambda x: x), ("view", "(Tensor x) -> Tensor", lambda x: x.view(-1)), ("twice", "(Tensor x) -> (Tensor, Tensor)", lambda x: (x.clone(),) * 2)):
            op = define(name, schema, kernel)
            try:
                op(x)
            except RuntimeError as error:
                show(str(error).split("custom_ops.py'>): ")[1])
    """,
    "without_elements_and_batched": """
        scaled = define("many", "(Tensor x, SymInt k=2) -> Tensor", lambda x, k=2: torch.from_numpy(x.detach().numpy() * k))
        raises(lambda: scaled(torch.ones(2, device="meta")))
        scaled.register_fake(lambda x, k=2: torch.empty_like(x))
        show(scaled(torch.ones(2, device="meta")).shape, scaled(torch.ones(2, device="meta")).is_meta)
        batch = torch.arange(6.).reshape(3, 2)
        show(torch.vmap(scaled)(batch), torch.vmap(lambda x: scaled(x, 3), 1, 1)(batch))
        def rule(info, in_dims, x, k=2):
            show(info.batch_size, info.randomness, in_dims)
            return x * k, in_dims[0]
        scaled.register_vmap(rule)
        show(torch.vmap(scaled)(batch), torch.vmap(lambda x: scaled(x, 3), 1, 1)(batch))
    """,
    "libraries": """
        raises(lambda: library.Library("parts", "OTHER"))
        raises(lambda: library.Library("prim", "DEF"))
        with library._scoped_library("parts", "FRAGMENT") as lib:
            show(lib.define("scoped(Tensor x) -> Tensor"), lib.impl("scoped", lambda x: x.clone(), "CPU"), torch.ops.parts.scoped(x))
            for schema in ("scoped(Tensor x) -> Tensor", "no schema", "other::y(Tensor x) -> Tensor", "y(Unknown x) -> Tensor", "y(Tensor x)"):
                try:
                    show(lib.define(schema))
                except RuntimeError as error:
                    show(str(error).split(". ")[0].split("(Error")[0].split(".  ")[0].strip().split("\\n")[0])
            for name, kernel, key in (("scoped", lambda x: x, "NOKEY"), ("scoped", 3, "CPU"), ("other::y", lambda x: x, "CPU")):
                try:
                    lib.impl(name, kernel, key)
                except (RuntimeError, TypeError) as error:
                    show(type(error).__name__, str(error).split(".  ")[0])
            lib.impl("later", lambda x: x + 5, "CPU")
            lib.define("later(Tensor x) -> Tensor")
            lib.define("both.one(Tensor x) -> Tensor")
            lib.define("both.two(Tensor x, Tensor y) -> Tensor")
            lib.impl("both.one", lambda x: x + 1, "CPU")
            lib.impl("both.two", lambda x, y: x + y, "CPU")
            both = torch.ops.parts.both
            show(torch.ops.parts.later(x), both(x), both(x, x), both.one(x), both.overloads())
            raises(lambda: both(3))
            raises(lambda: both.default)
        raises(lambda: torch.ops.parts.scoped)
        for function in (library.register_autograd, library.register_vmap, library.register_fake):
            raises(lambda: function("parts::nothing", lambda x: x))
        raises(lambda: library.register_autograd(3, lambda ctx, grad: grad))
        library.define("parts::named.one", "(Tensor x) -> Tensor")
        library.impl("parts::named.one", "cpu", lambda x: x + 1)
        show(torch.ops.parts.named.one(x), torch.ops.parts.named(x), torch.ops.parts.named.overloads())
        define("single", "(Tensor x) -> Tensor", lambda x: x.clone())
        for function in (library.register_autograd, library.register_vmap, library.register_fake):
            raises(lambda: function("parts::single.other", lambda x: x))
            raises(lambda: function("without_namespace", lambda x: x))
        raises(lambda: library.impl("a::b::c", "cpu", lambda x: x))
        raises(lambda: library.define("without_namespace", "(Tensor x) -> Tensor"))
    """,
    "life of libraries": """
        import gc
        def defined(number, kind="FRAGMENT"):
            own = library.Library("lives", kind)
            own.define("once(Tensor x) -> Tensor")
            own.impl("once", lambda x: x + number, "CPU")
            show(torch.ops.lives.once(x))
        for number in (1, 2):
            defined(number)
            gc.collect()
            show(hasattr(torch.ops.lives, "once"))
        own = library.Library("lives", "DEF")
        for kind in ("DEF", "OTHER"):
            raises(lambda: library.Library("lives", kind))
        other = library.Library("lives", "FRAGMENT")
        @library.define(own, "older(Tensor x) -> Tensor")
        def older(x):
            return x * 3
        show(torch.ops.lives.older(x), older(x))
        other.define("oldest(Tensor x) -> Tensor")
        @library.impl(other, "oldest", "CPU")
        def oldest(x):
            return x * 4
        show(torch.ops.lives.oldest(x), oldest(x))
        library.define("lives::tied", "(Tensor x) -> Tensor", lib=other)
        library.impl("lives::tied", "cpu", lambda x: x * 5, lib=other)
        show(torch.ops.lives.tied(x))
        raises(lambda: own.impl("older", [], "CPU"))
        for key in ("Meta", "Conjugate"):
            try:
                library.Library("lives", "IMPL", "CPU").impl("older", older, key)
            except RuntimeError as error:
                show(str(error).split("(Error")[0].strip())
        del other
        gc.collect()
        show(hasattr(torch.ops.lives, "tied"), hasattr(torch.ops.lives, "oldest"), hasattr(torch.ops.lives, "older"))
        del own
        gc.collect()
        show(hasattr(torch.ops.lives, "older"))
        library.Library("lives", "DEF")
    """,
    "backward through operators without derivative": """
        import warnings
        kept = []
        def bare(schema, kernel):
            name = f"bare{len(kept)}"
            kept.append(library.Library("without", "FRAGMENT"))
            kept[-1].define(name + schema)
            kept[-1].impl(name, kernel, "CPU")
            return getattr(torch.ops.without, name).default
        def counted(function):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                raises(function)
            show(len(found))
        def changed(x, y):
            with torch.no_grad():
                x.sin_()
                y.cos_()
            return x, y
        x = torch.ones(3, requires_grad=True)
        w, v = x.clone(), x.clone()
        a, b = w[0], v[1]
        z = bare("(Tensor(a!) self, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))", changed)(a, b)
        for each in (w, v, z[0], z[1], a, b):
            counted(lambda: each.sum().backward(retain_graph=True))
        show(x.grad)
        for kernel, result in ((lambda x, y: x.detach().add_(y.detach()) is None or x, "Tensor(a!)"), (lambda x, y: x.detach().clone(), "Tensor(a!)"), (lambda x, y: x.detach().clone(), "Tensor")):
            plain = torch.ones(3)
            out = bare(f"(Tensor(a!) self, Tensor other) -> {result}", kernel)(plain, x)
            show(plain.requires_grad, out.requires_grad, plain)
            if out.requires_grad:
                counted(lambda: out.sum().backward())
    """,
    "tests of operators": """
        def checked(op, *args, **options):
            try:
                found = library.opcheck(op, args, **options)
            except Exception as error:
                show(type(error).__name__, str(error).split(" (with implementation")[0])
            else:
                show({name: result if result == "SUCCESS" else str(result).split(" (with implementation")[0] for name, result in found.items()})
        right = define("right", "(Tensor x, float k) -> Tensor", lambda x, k: x.detach().sin() * k)
        library.register_fake(right, lambda x, k: torch.empty_like(x))
        library.register_autograd(right, lambda ctx, grad: (grad * ctx.x.cos(), None), setup_context=lambda ctx, inputs, output: setattr(ctx, "x", inputs[0]))
        shapeless = define("shapeless", "(Tensor x) -> Tensor", lambda x: x.detach().clone())
        misshapen = define("misshapen", "(Tensor x) -> Tensor", lambda x: x.detach().sum(0))
        changing = define("changing", "(Tensor x) -> Tensor", lambda x: x.detach().add_(1).clone())
        marked = define("marked", "(Tensor(a!) x) -> Tensor", lambda x: x.detach().add_(1).clone(), mutates_args=["x"])
        for op in (misshapen, changing, marked):
            library.register_fake(op, lambda x: torch.empty_like(x))
        for options in ({}, {"raise_exception": False}):
            checked(right, leaf(), 2.0, **options)
            for op in (shapeless, misshapen, changing, marked):
                checked(op, x, **options)
        checked(right, x, 2.0, test_utils="test_schema")
        checked(right, x, 2.0, test_utils=["test_schema", "test_faketensor"])
        checked(right, x, 2.0, test_utils="nothing")
        checked(torch.ops.parts.right, x, 2.0)
        checked(torch.ops.parts.right.default, x, 2.0)
        checked(shapeless, leaf(), test_utils="test_aot_dispatch_static", raise_exception=False)
    """,
}

test_library = program_test({name: dedent(SETUP) + dedent(program) for name, program in LIBRARY.items()})
