"""Operators that programs define: what registrations accept and refuse."""

import pytest

import adjoint as torch


def test_autocast_converts_the_inputs_of_an_operator():
    @torch.library.custom_op("cast::same", mutates_args=())
    def same(x: torch.Tensor) -> torch.Tensor:
        assert not torch.is_autocast_enabled("cpu")
        return x.clone()

    torch.library.register_autocast("cast::same", "cpu", torch.float16)
    with torch.autocast("cpu", torch.bfloat16):
        found = [same(torch.ones(1, dtype=dtype)).dtype for dtype in (torch.float32, torch.float64, torch.int64)]
    assert found == [torch.float16, torch.float64, torch.int64]
    assert same(torch.ones(1)).dtype is torch.float32


def test_definitions_are_checked():
    with torch.library._scoped_library("checked", "FRAGMENT") as library:
        for schema in ("f(Tensor x) -> unknown", "f(unknown x) -> Tensor"):
            with pytest.raises(RuntimeError, match="unknown type specifier"):
                library.define(schema)
        with pytest.raises(RuntimeError, match="only the operator name was given"):
            library.define("f")
        with pytest.raises(RuntimeError, match="expected ident"):
            library.define("f(Tensor) -> Tensor")
        with pytest.raises(ValueError, match="expected schema to look like"):
            torch.library.define("checked::f", "f(Tensor x) -> Tensor")
        with pytest.raises(RuntimeError, match="Expected one of cpu"):
            torch.library.impl("checked::f", "nowhere")
    with torch.library._scoped_library("checked", "IMPL") as library:
        with pytest.raises(RuntimeError, match="Cannot define an operator inside of a TORCH_LIBRARY_IMPL"):
            library.define("f(Tensor x) -> Tensor")
        with pytest.raises(RuntimeError, match="either a name or an OpOverload"):
            library.impl(3, lambda x: x, "CPU")


def test_tags_and_replacements():
    with torch.library._scoped_library("tagged", "FRAGMENT") as library:
        library.define("f(Tensor x) -> Tensor", tags=("tag",))
        overload = torch.ops.tagged.f.default
        assert overload.tags == ["tag"] and overload._defined_in_python
        assert not torch.ops.aten.sin.default._defined_in_python
        library.impl("f", lambda x: x + 1, "CPU")
        with pytest.raises(RuntimeError, match="already a kernel registered"):
            library.impl("f", lambda x: x + 2, "CPU", allow_override=False)
        library.impl("f", lambda x: x + 3, "CPU")
        assert overload(torch.zeros(1)).item() == 3.0


def test_composite_operators_refuse_functions_for_shapes():
    with torch.library._scoped_library("composite", "FRAGMENT") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x.sin(), "CompositeImplicitAutograd")
        with pytest.raises(RuntimeError, match="CompositeImplicitAutograd"):
            torch.library.register_fake("composite::f", lambda x: x)
    with pytest.raises(ValueError, match="mutates_args must either be a sequence"):
        torch.library.infer_schema(lambda x: x, mutates_args="x")


def test_defined_operators_are_traced_and_overridden():
    @torch.library.custom_op("seen::twiceOf", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    seen = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return super().__torch_function__(func, types, args, kwargs)

    assert type(twice(torch.ones(1).as_subclass(Watched))) is Watched
    assert seen == ["seen.twiceOf.default"]
    packet = torch.ops.seen.twiceOf
    graph = torch.fx.symbolic_trace(lambda x: twice(x) + packet(x) + torch.ops.aten.add.Tensor(x, 1)).graph
    assert [node.name for node in graph.nodes] == "x twice_of_default twice_of add add_tensor add_1 output".split()


def test_libraries_let_programs_delete_their_handle():
    library = torch.library.Library("handled", "FRAGMENT")
    library.define("twice(Tensor x) -> Tensor")
    del library.m, library
    assert not hasattr(torch.ops.handled, "twice")


def test_operators_with_unknown_changes_take_defaults_of_tensors():
    @torch.library.custom_op("unknown_changes::total", mutates_args="unknown")
    def total(x: torch.Tensor, more: torch.Tensor | None = None) -> torch.Tensor:
        return x.sum() if more is None else x.sum() + more

    x = torch.ones(2)
    assert total(x).item() == 2.0
    assert x._version == 1
