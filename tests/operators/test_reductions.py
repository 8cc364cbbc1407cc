"""The overloads of all reductions, and the errors that list the overloads."""

import pytest

import adjoint as torch
from adjoint.dispatch.decorators import operator

X = torch.tensor([[1.0, 5.0, 3.0], [4.0, 4.0, 0.0]])

LISTED = {
    "sum": (
        "Tensor input, *, torch.dtype dtype = None",
        "Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None",
    ),
    "mean": (
        "Tensor input, *, torch.dtype dtype = None, Tensor out = None",
        "Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None",
    ),
    "prod": (
        "Tensor input, *, torch.dtype dtype = None",
        "Tensor input, int dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None",
    ),
    "max": (
        "Tensor input, *, Tensor out = None",
        "Tensor input, Tensor other, *, Tensor out = None",
        "Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None",
    ),
    "median": (
        "Tensor input",
        "Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None",
    ),
    "all": (
        "Tensor input, *, Tensor out = None",
        "Tensor input, tuple of ints dim = None, bool keepdim = False, *, Tensor out = None",
        "Tensor input, int dim, bool keepdim = False, *, Tensor out = None",
    ),
    "var": (
        "Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False, *, Tensor out = None",
        "Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False, Tensor out = None",
        "Tensor input, bool unbiased = True",
    ),
    "std_mean": (
        "Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False",
        "Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False",
        "Tensor input, bool unbiased = True",
    ),
}


@pytest.mark.parametrize("name", LISTED)
def test_errors_list_the_overloads_of_the_declaration(name):
    with pytest.raises(TypeError) as raised:
        getattr(torch, name)()
    assert str(raised.value) == (
        f"{name}() received an invalid combination of arguments - got (), but expected one of:\n"
        + "".join(f" * ({form})\n" for form in LISTED[name])
    )


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "median", "nanmedian"])
def test_keepdim_needs_a_dim(name):
    with pytest.raises(TypeError, match=rf"{name}\(\) received an invalid combination .* got \(Tensor, keepdim=bool\)"):
        getattr(torch, name)(X, keepdim=True)


@pytest.mark.parametrize("name", ["median", "nanmedian", "sort"])
def test_errors_name_the_function_that_was_called(name):
    with pytest.raises(TypeError, match=rf"^{name}\(\): argument 'dim' \(position 2\) must be int, not str"):
        getattr(torch, name)(X, "a")


@pytest.mark.parametrize("dim", [True, (0, 1), None, "a"])
def test_one_dimension_is_one(dim):
    with pytest.raises(TypeError, match=r"prod\(\) received an invalid combination of arguments - got \(Tensor, "):
        torch.prod(X, dim)


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
def test_results_along_a_dimension_have_names(name):
    found = getattr(torch, name)(X, 1)
    assert type(found).__name__ == name
    assert torch.equal(found.values, X.gather(1, found.indices.unsqueeze(1)).squeeze(1))


def test_the_kernel_is_given_a_dtype_of_numpy():
    assert torch.tensor([1, 2]).cumsum(0, dtype=torch.float64).dtype is torch.float64
    assert torch.ones(2, dtype=torch.float64).norm(dtype=torch.float64).dtype is torch.float64
    assert torch.tensor([1, 2]).sum(dtype=torch.float64).dtype is torch.float64
    assert torch.nansum(X, out=torch.empty(0, dtype=torch.float64)).dtype is torch.float64
    with pytest.raises(TypeError, match=r"sum\(\): argument 'dtype' must be torch.dtype, not str"):
        torch.sum(X, dtype="float32")


def test_a_declaration_with_an_option_that_there_is_not_is_refused():
    with pytest.raises(TypeError, match="a declaration has no option 'called'"):

        @operator(namespace=None, method=False, called="half")
        class half:
            def forward(self: "Array"): ...  # noqa: F821


@pytest.mark.parametrize("name", ["sum", "prod"])
def test_totals_take_no_out(name):
    function, out = getattr(torch, name), torch.empty(())
    with pytest.raises(TypeError, match=rf"{name}\(\) received an invalid combination .* got \(Tensor, out=Tensor\)"):
        function(X, out=out)
    with pytest.raises(TypeError, match='missing 1 required positional arguments: "dim"'):
        function(X, dtype=torch.float32, out=out)
    assert function(X, 0, out=torch.empty(3)).equal(function(X, 0))


@pytest.mark.parametrize("name", ["std", "var"])
def test_moments_of_all_elements_take_no_out_with_unbiased(name):
    for keywords in ({"out": torch.empty(())}, {"keepdim": True}):
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            getattr(torch, name)(X, unbiased=False, **keywords)
    out = torch.empty(())
    assert getattr(torch, name)(X, out=out) is out
    with pytest.raises(TypeError, match=rf"{name}_mean\(\) received an invalid .* got \(Tensor, int, out=tuple\)"):
        getattr(torch, f"{name}_mean")(X, 0, out=(out, out))


@pytest.mark.parametrize("function", [lambda out: torch.dist(X, X, out=out), lambda out: torch.relu(X, out=out)])
def test_functions_without_out(function):
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'out'"):
        function(torch.empty(()))
