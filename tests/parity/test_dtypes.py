"""Dtypes, promotion, devices and sizes against PyTorch."""

import itertools

import pytest

torch = pytest.importorskip("torch")

import adjoint
from adjoint import dtypes

from .behaviour import assert_same

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")

NAMES = (
    "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool", "complex32",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip
PAIRS = list(itertools.product(NAMES, NAMES))
ALIASES = ("half", "float", "double", "chalf", "cfloat", "cdouble", "short", "int", "long")
SCALARS = (True, 3, 2.5, 1j)
# Tensors have these dtypes only through views. PyTorch does not define whether quantized numbers and bits are signed.
BARE = ("int1", "int7", "uint1", "uint7", "float4_e2m1fn_x2")
OF_NO_SIGN = ("qint8", "qint32", "quint8", "quint4x2", "quint2x4", "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2")


@pytest.fixture(autouse=True)
def _default_dtypes():
    yield
    torch.set_default_dtype(torch.float32)
    dtypes.set_default_dtype(dtypes.float32)


def outcome(function, *arguments):
    """Return the text of a call's result, or the type and message of its error."""
    try:
        return repr(function(*arguments))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def test_every_dtype_numpy_or_ml_dtypes_has_is_there():
    numbers = {kind for kind in vars(torch).values() if isinstance(kind, torch.dtype)}
    assert {repr(getattr(dtypes, name)) for name in NAMES} <= set(map(repr, numbers))
    for alias in ALIASES:
        assert repr(getattr(dtypes, alias)) == repr(getattr(torch, alias))


@pytest.mark.parametrize("name", NAMES)
def test_attributes(name):
    ours, theirs = getattr(dtypes, name), getattr(torch, name)
    for attribute in ("itemsize", "is_floating_point", "is_complex", "is_signed", "abbr"):
        assert getattr(ours, attribute) == getattr(theirs, attribute), attribute
    assert repr(ours.to_real()) == repr(theirs.to_real())
    assert f"torch.{ours.scalar_type}Tensor" == torch.empty(0, dtype=theirs).type()
    assert outcome(ours.to_complex) == outcome(theirs.to_complex)


@pytest.mark.parametrize("name", [*BARE, *OF_NO_SIGN])
def test_types_without_elements(name):
    ours, theirs = getattr(adjoint, name), getattr(torch, name)
    for attribute in ("itemsize", "is_floating_point", "is_complex", "abbr", *(("is_signed",) if name in BARE else ())):
        assert getattr(ours, attribute) == getattr(theirs, attribute), attribute
    assert repr(ours) == repr(theirs)
    assert outcome(ours.to_real) == outcome(theirs.to_real)
    assert outcome(ours.to_complex) == outcome(theirs.to_complex)
    if not name.startswith(("int", "float4")):  # PyTorch fails with an internal assertion
        for other in NAMES:
            actual = outcome(adjoint.promote_types, ours, getattr(adjoint, other))
            assert actual == outcome(torch.promote_types, theirs, getattr(torch, other)), other


@pytest.mark.parametrize("function", ["promote_types", "can_cast"])
def test_functions_of_two_dtypes(function):
    for first, second in PAIRS:
        ours = outcome(getattr(dtypes, function), getattr(dtypes, first), getattr(dtypes, second))
        theirs = outcome(getattr(torch, function), getattr(torch, first), getattr(torch, second))
        assert ours == theirs, (first, second)
    for wrong in [(3, torch.int8), ("x", 4)]:
        assert outcome(getattr(dtypes, function), *wrong) == outcome(getattr(torch, function), *wrong)


def operands():
    """Return operands of every dtype, with and without dimensions, and Python numbers, for PyTorch and for `promote`."""
    for name in NAMES:
        for rank, shape in ((dtypes.Rank.ZERO_DIM, ()), (dtypes.Rank.DIMENSIONED, (1,))):
            yield torch.zeros(shape, dtype=getattr(torch, name)), (getattr(dtypes, name), rank)
    for value in SCALARS:
        yield value, (dtypes.scalar_dtype(value), dtypes.Rank.SCALAR)


@pytest.mark.parametrize("default", ["float32", "float64"])
def test_promotion_of_operands(default):
    torch.set_default_dtype(getattr(torch, default))
    dtypes.set_default_dtype(getattr(dtypes, default))
    for (first, left), (second, right) in itertools.product(list(operands()), repeat=2):
        theirs = outcome(torch.result_type, first, second)
        assert outcome(dtypes.promote, (left, right)) == theirs, (left, right)


@pytest.mark.parametrize("info", ["finfo", "iinfo"])
@pytest.mark.parametrize("name", NAMES)
def test_limits(info, name):
    make, made = getattr(dtypes, info), getattr(torch, info)
    ours, theirs = outcome(make, getattr(dtypes, name)), outcome(made, getattr(torch, name))
    assert ours == theirs
    if "Error" not in theirs:
        ours, theirs = make(getattr(dtypes, name)), made(getattr(torch, name))
        for attribute in ("bits", "dtype", "max", "min", "eps", "resolution", "smallest_normal", "tiny"):
            assert outcome(getattr, ours, attribute, None) == outcome(getattr, theirs, attribute, None), attribute


@pytest.mark.parametrize("arguments", [(), (3,), ("float32",)])
def test_limits_of_no_dtype(arguments):
    assert outcome(dtypes.finfo, *arguments) == outcome(torch.finfo, *arguments)
    if arguments:
        assert outcome(dtypes.iinfo, *arguments) == outcome(torch.iinfo, *arguments)


@pytest.mark.parametrize("name", [*NAMES, None, 3])
def test_default_dtype(name):
    for module, library in ((dtypes, dtypes), (torch, torch)):
        kind = getattr(library, name) if isinstance(name, str) else name
        result = outcome(module.set_default_dtype, kind), repr(module.get_default_dtype())
        module.set_default_dtype(library.float32)
        if library is dtypes:
            ours = result
    assert ours == result


DEVICES = [
    ("cpu",), ("cpu:0",), ("cuda",), ("cuda:1",), ("meta",), ("mps:0",), ("privateuseone",), ("foo",), ("cpu:",),
    ("cpu:-1",), ("cpu:01",), ("",), (":0",), ("cuda:x",), ("cuda:00",), ("cuda:99999999999",), (" cpu",),
    ("CPU",), ("cpu:1:2",), ("cuda", 1), ("cuda", -1), ("cpu", None), ("cpu:0", 1), ("cpu", "a"), ("cpu", True), (0,),
    (-1,), (1.5,), (None,), (True,),
]  # fmt: skip


@pytest.mark.parametrize("arguments", DEVICES, ids=repr)
def test_devices(arguments):
    if arguments == (0,) and torch.accelerator.is_available():
        pytest.skip("names an accelerator here")
    assert outcome(adjoint.device, *arguments) == outcome(torch.device, *arguments)


@pytest.mark.parametrize(
    "use",
    [
        lambda torch: torch.Size(),
        lambda torch: torch.Size([2, 3])[1:],
        lambda torch: torch.Size([2, 3])[-1],
        lambda torch: torch.Size([2, 3])[::-1] * 2,
        lambda torch: (1,) + torch.Size(range(3)) + (4, 5),
        lambda torch: 3 * torch.Size([2]),
        lambda torch: torch.Size([2, 3, 0]).numel(),
        lambda torch: torch.Size([True]),
        lambda torch: torch.Size([2]) == (2,),
        lambda torch: torch.Size([1.0]),
        lambda torch: torch.Size("ab"),
        lambda torch: torch.Size([1, None]),
        lambda torch: torch.Size([1]) + [2],
        lambda torch: torch.Size([1]) + None,
        lambda torch: torch.Size(3),
        lambda torch: torch.Size([1], [2]),
        lambda torch: torch.Size([1])[5],
        lambda torch: torch.Size([1]) * 2.0,
        lambda torch: f"{torch.Size([1])}",
        lambda torch: (torch.strided, torch.contiguous_format, torch.channels_last_3d, torch.preserve_format),
        lambda torch: torch.layout(),
        lambda torch: torch.memory_format(),
        lambda torch: torch.device("cuda:1").__reduce__()[1],
        lambda torch: torch.device("cpu") == "cpu",
    ],
)
def test_sizes_layouts_and_formats(use):
    assert outcome(use, adjoint) == outcome(use, torch)


F = "torch.nn.functional."
# Computations with a tensor x of 2 x 2 x 3 ones, for which some dtypes have no kernel.
KERNELS = [
    f"{F}layer_norm(x, (3,))",
    f"{F}batch_norm(x, None, None, training=True)",
    f"{F}batch_norm(x, x[0, :, 0].clone(), x[0, :, 0].clone())",
    f"{F}group_norm(x, 1)",
    f"{F}instance_norm(x)",
    f"{F}mse_loss(x, x)",
    f"{F}binary_cross_entropy(x, x)",
    f"{F}glu(x, 1)",
    f"{F}rrelu(x * 2, training=True)",
    f"{F}avg_pool3d(x[None], 1)",
    *(f"{F}conv{dims}d({x}, {x}, dilation={gap})" for dims, x in ((1, "x"), (2, "x[None]")) for gap in (1, 2)),
    *(f"{F}conv_transpose{dims}d({x}, {x})" for dims, x in ((1, "x"), (2, "x[None]"), (3, "x[None, None]"))),
    *(f"{F}interpolate(x, size=2, mode={mode!r})" for mode in ("nearest", "nearest-exact", "linear")),
    *(f"{F}interpolate(x[None], size=2, mode={mode!r})" for mode in ("nearest", "bilinear", "bicubic")),
    *(f"{F}interpolate(x[None, None], size=2, mode={mode!r})" for mode in ("nearest", "trilinear")),
    "x[0, :, :2].trace()",
    "torch.polar(x, x)",
    "torch.logaddexp2(x, x)",
    "x[0, 0].index_reduce(0, torch.tensor([0]), x[0, 0, :1], 'amax')",
    "torch.special.zeta(x, x)",
    *(f"torch.special.{name}(x / 2)" for name in ("ndtri", "log_ndtr", "erfcx", "spherical_bessel_j0")),
]


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize(
    "name", [name for name in NAMES if not name.startswith(("uint1", "uint3", "uint6", "float8", "complex32"))]
)
@pytest.mark.parametrize("line", KERNELS)
def test_kernels_refuse_the_same_dtypes(line, name):
    def outcome(library):
        try:
            return str(eval(line, {"torch": library, "x": library.ones(2, 2, 3, dtype=getattr(library, name))}).dtype)
        except NotImplementedError as error:
            return str(error)
        except (RuntimeError, TypeError) as error:  # the call fails before it reaches a kernel
            return type(error).__name__

    assert outcome(adjoint) == outcome(torch)


@pytest.mark.parametrize(
    "line",
    """
torch.mvlgamma(ones(2, dtype=torch.bool), 1)
torch.mvlgamma(torch.full((2,), 3), 1)
F.bilinear(ones(2, 2) > 0, ones(2, 2) > 0, ones(2, 2, 2) > 0)
F.bilinear(ones(2, 2), ones(2, 2).double(), ones(2, 2, 2))
F.bilinear(ones(2, 2), ones(2, 2), ones(2, 2, 2), ones(2).double())
F.bilinear(ones(2, 2).int(), ones(2, 2).int(), ones(2, 2, 2).int())
torch._softmax_backward_data(ones(2, 2), ones(2, 2), 1, torch.float16)
torch._softmax_backward_data(ones(2, 2), ones(2, 2), 1, torch.float64)
torch._softmax_backward_data(ones(2, 2).half(), ones(2, 2).half(), 1, torch.float32)
torch._log_softmax_backward_data(ones(2, 2).double(), ones(2, 2), 1, torch.float64)
F.huber_loss(ones(2), 3 * ones(2).double())
F.huber_loss(ones(2), 3 * ones(2).double(), reduction="none")
F.huber_loss(ones(2).double(), ones(2))
F.huber_loss(ones(2).int(), ones(2))
F.multi_margin_loss(ones(2, 3), torch.tensor([0, 1]), weight=ones(3).double())
F.multi_margin_loss(ones(2, 3).double(), torch.tensor([0, 1]), weight=ones(3))
""".strip().splitlines(),
)
def test_dtypes_that_are_refused_and_dtypes_of_results(line):
    assert_same(f"F, ones = torch.nn.functional, torch.ones\n{line}")
