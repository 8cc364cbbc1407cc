"""Printed tensors. The expected texts are PyTorch's."""

from types import SimpleNamespace

import pytest
from ml_dtypes import bfloat16
from numpy import arange, array, asarray, bool_, broadcast_to, complex64, float32, float64, inf, nan, ones, zeros

from adjoint import dtypes, printing


class Printed:
    """A tensor with the attributes that printing needs."""

    def __init__(self, array, requires_grad=False, grad_fn=None):
        self._array = asarray(array)
        self.dtype = dtypes.from_numpy(self._array.dtype)
        self.requires_grad = requires_grad
        self.grad_fn = grad_fn


def text_of(array, **attributes):
    return printing.format_tensor(Printed(array, **attributes))


@pytest.fixture(autouse=True)
def _default_options():
    yield
    printing.set_printoptions(profile="default")
    dtypes.set_default_dtype(dtypes.float32)


CASES = [
    (float32(0), "tensor(0.)"),
    (float32(3.5), "tensor(3.5000)"),
    (float32(nan), "tensor(nan)"),
    (float64(-inf), "tensor(-inf, dtype=torch.float64)"),
    (array([], "f4"), "tensor([])"),
    (zeros((0, 3), "f4"), "tensor([], size=(0, 3))"),
    (zeros((2, 0), "i8"), "tensor([], size=(2, 0), dtype=torch.int64)"),
    (zeros(0, "c8"), "tensor([], dtype=torch.complex64)"),
    (array([1, 2], "f4"), "tensor([1., 2.])"),
    (array([1.5, nan, -inf], "f4"), "tensor([1.5000,    nan,   -inf])"),
    (array([nan, inf], "f4"), "tensor([nan, inf])"),
    (array([0, -0.0, nan], "f4"), "tensor([0., -0., nan])"),
    (array([0, 10, -1], "f4"), "tensor([ 0., 10., -1.])"),
    (array([1e8, 1], "f4"), "tensor([1.0000e+08, 1.0000e+00])"),
    (array([1e8], "f4"), "tensor([100000000.])"),
    (array([1e-4], "f4"), "tensor([1.0000e-04])"),
    (array([1e-4], "f8"), "tensor([0.0001], dtype=torch.float64)"),
    (array([1, 1001], "f4"), "tensor([1.0000e+00, 1.0010e+03])"),
    (array([2, 1001], "f4"), "tensor([   2., 1001.])"),
    (array([1.5, 1001], "f8"), "tensor([   1.5000, 1001.0000], dtype=torch.float64)"),
    (array([1e300, 5e-324]), "tensor([1.0000e+300, 4.9407e-324], dtype=torch.float64)"),
    (array([0.1, 65504], "f2"), "tensor([9.9976e-02, 6.5504e+04], dtype=torch.float16)"),
    (array([1.1, -300], bfloat16), "tensor([   1.1016, -300.0000], dtype=torch.bfloat16)"),
    (array([2**24, inf], "f4"), "tensor([16777216.,       inf])"),
    (array([1 + 2j, 3.5 - 1e6j], "c8"), "tensor([1.0000+2.0000e+00j, 3.5000-1.0000e+06j])"),
    (
        array([complex(nan, inf), complex(-0.0, -0.0), 10], "c16"),
        "tensor([nan+infj, -0.-0.j, 10.+0.j], dtype=torch.complex128)",
    ),
    (complex64(1j), "tensor(0.+1.j)"),
    (array([True, False]), "tensor([ True, False])"),
    (array([True]), "tensor([True])"),
    (bool_(True), "tensor(True)"),
    (array([2**64 - 1, 0], "u8"), "tensor([18446744073709551615,                    0], dtype=torch.uint64)"),
    (array([-(2**63), 7]), "tensor([-9223372036854775808,                    7])"),
    (array([-128, 5], "i1"), "tensor([-128,    5], dtype=torch.int8)"),
    (array([200], "u1"), "tensor([200], dtype=torch.uint8)"),
    (
        array([[1, -20], [300, 4]], "i2"),
        """\
tensor([[  1, -20],
        [300,   4]], dtype=torch.int16)""",
    ),
    (
        arange(40),
        """\
tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,
        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,
        36, 37, 38, 39])""",
    ),
    (
        zeros(50, "f4"),
        """\
tensor([0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0.,
        0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0.,
        0., 0.])""",
    ),
    (
        arange(24, dtype="f4").reshape(2, 3, 4),
        """\
tensor([[[ 0.,  1.,  2.,  3.],
         [ 4.,  5.,  6.,  7.],
         [ 8.,  9., 10., 11.]],

        [[12., 13., 14., 15.],
         [16., 17., 18., 19.],
         [20., 21., 22., 23.]]])""",
    ),
    (
        arange(30) / 8 - 1,
        """\
tensor([-1.0000, -0.8750, -0.7500, -0.6250, -0.5000, -0.3750, -0.2500, -0.1250,
         0.0000,  0.1250,  0.2500,  0.3750,  0.5000,  0.6250,  0.7500,  0.8750,
         1.0000,  1.1250,  1.2500,  1.3750,  1.5000,  1.6250,  1.7500,  1.8750,
         2.0000,  2.1250,  2.2500,  2.3750,  2.5000,  2.6250],
       dtype=torch.float64)""",
    ),
    (
        arange(2000, dtype="f4"),
        """\
tensor([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9970e+03, 1.9980e+03,
        1.9990e+03])""",
    ),
    (
        arange(6000).reshape(3, 2, 1000),
        """\
tensor([[[   0,    1,    2,  ...,  997,  998,  999],
         [1000, 1001, 1002,  ..., 1997, 1998, 1999]],

        [[2000, 2001, 2002,  ..., 2997, 2998, 2999],
         [3000, 3001, 3002,  ..., 3997, 3998, 3999]],

        [[4000, 4001, 4002,  ..., 4997, 4998, 4999],
         [5000, 5001, 5002,  ..., 5997, 5998, 5999]]])""",
    ),
    (
        arange(1100).reshape(2, 1, 550) % 7 == 0,
        """\
tensor([[[ True, False, False,  ..., False, False, False]],

        [[False, False, False,  ..., False, False,  True]]])""",
    ),
    (
        arange(24) * (1.5 - 1e3j),
        """\
tensor([ 0.0000+0.j,  1.5000-1000.j,  3.0000-2000.j,  4.5000-3000.j,
         6.0000-4000.j,  7.5000-5000.j,  9.0000-6000.j, 10.5000-7000.j,
        12.0000-8000.j, 13.5000-9000.j, 15.0000-10000.j, 16.5000-11000.j,
        18.0000-12000.j, 19.5000-13000.j, 21.0000-14000.j, 22.5000-15000.j,
        24.0000-16000.j, 25.5000-17000.j, 27.0000-18000.j, 28.5000-19000.j,
        30.0000-20000.j, 31.5000-21000.j, 33.0000-22000.j, 34.5000-23000.j],
       dtype=torch.complex128)""",
    ),
    (
        arange(1001, dtype="i4").reshape(1001, 1),
        """\
tensor([[   0],
        [   1],
        [   2],
        ...,
        [ 998],
        [ 999],
        [1000]], dtype=torch.int32)""",
    ),
    (
        broadcast_to(float32(2), (1001, 2)),
        """\
tensor([[2., 2.],
        [2., 2.],
        [2., 2.],
        ...,
        [2., 2.],
        [2., 2.],
        [2., 2.]])""",
    ),
    (
        arange(12, dtype="i4").reshape(3, 4).T,
        """\
tensor([[ 0,  4,  8],
        [ 1,  5,  9],
        [ 2,  6, 10],
        [ 3,  7, 11]], dtype=torch.int32)""",
    ),
]


@pytest.mark.parametrize(("array", "text"), CASES, ids=range(len(CASES)))
def test_text_is_pytorchs(array, text):
    assert text_of(array) == text


OPTIONS = [
    ({"precision": 2}, arange(3) / 8, "tensor([0.00, 0.12, 0.25], dtype=torch.float64)"),
    ({"precision": 0}, array([0.5, 1.5, 100.25]), "tensor([  0,   2, 100], dtype=torch.float64)"),
    ({"precision": 8}, array([1 / 3], "f4"), "tensor([0.33333334])"),
    ({"sci_mode": True}, array([0, 1, 20.5, nan], "f4"), "tensor([0.0000e+00, 1.0000e+00, 2.0500e+01,        nan])"),
    ({"sci_mode": True}, zeros(2, "f4"), "tensor([0., 0.])"),
    (
        {"sci_mode": False},
        array([0, 1.5, 1e10]),
        """\
tensor([          0.0000,           1.5000, 10000000000.0000],
       dtype=torch.float64)""",
    ),
    ({"threshold": 5}, arange(9), "tensor([0, 1, 2,  ..., 6, 7, 8])"),
    (
        {"threshold": 5, "edgeitems": 1},
        arange(9).reshape(3, 3) / 2,
        """\
tensor([[0.,  ..., 1.],
        ...,
        [3.,  ..., 4.]], dtype=torch.float64)""",
    ),
    ({"edgeitems": 0}, ones(2, "f4"), "tensor([1., 1.], size=(2,))"),
    ({"edgeitems": 0, "threshold": 1}, ones((2, 2), "f4"), "tensor([...], size=(2, 2))"),
    (
        {"linewidth": 20},
        arange(9),
        """\
tensor([0, 1, 2, 3,
        4, 5, 6, 7,
        8])""",
    ),
    (
        {"linewidth": 0},
        arange(2),
        """\
tensor([0,
        1])""",
    ),
    ({"profile": "short"}, arange(1200, dtype="f4") / 7, "tensor([0.00e+00, 1.43e-01,  ..., 1.71e+02, 1.71e+02])"),
    (
        {"profile": "full", "linewidth": 40},
        arange(11) * 1j,
        """\
tensor([0.+0.j, 0.+1.j, 0.+2.j, 0.+3.j,
        0.+4.j, 0.+5.j, 0.+6.j, 0.+7.j,
        0.+8.j, 0.+9.j, 0.+10.j],
       dtype=torch.complex128)""",
    ),
    ({"profile": "short", "precision": 3}, array([0.5, 2]), "tensor([0.500, 2.000], dtype=torch.float64)"),
    (
        {"threshold": 50, "edgeitems": 20},
        arange(60.0),
        """\
tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,
        14., 15., 16., 17., 18., 19.,  ..., 40., 41., 42., 43., 44., 45., 46.,
        47., 48., 49., 50., 51., 52., 53., 54., 55., 56., 57., 58., 59.],
       dtype=torch.float64)""",
    ),
]


@pytest.mark.parametrize(("options", "array", "text"), OPTIONS, ids=range(len(OPTIONS)))
def test_options_shape_the_text(options, array, text):
    printing.set_printoptions(**options)
    assert text_of(array) == text


def node(name):
    return SimpleNamespace(name=lambda: name)


def test_gradient_attributes_follow_the_elements():
    assert text_of(ones(2, "f4"), requires_grad=True) == "tensor([1., 1.], requires_grad=True)"
    assert text_of(float32(2), requires_grad=True, grad_fn=node("MulBackward0")) == "tensor(2., grad_fn=<MulBackward0>)"
    assert (
        text_of(zeros((0, 3)), requires_grad=True) == "tensor([], size=(0, 3), dtype=torch.float64, requires_grad=True)"
    )


def test_attributes_go_to_a_new_line_where_the_last_is_full():
    text = text_of(ones((2, 9), "f4") * 1.5, grad_fn=node("MulBackward0"))
    row = "[" + ", ".join(["1.5000"] * 9) + "]"
    assert text == f"tensor([{row},\n        {row}],\n       grad_fn=<MulBackward0>)"


def test_namespace_of_a_node_is_left_out():
    assert text_of(float32(1), grad_fn=node("torch::autograd::CopySlices")) == "tensor(1., grad_fn=<CopySlices>)"


def test_subclass_gives_its_own_name_and_indents_by_it():
    text = printing.format_tensor(Printed(ones(12, "f4") * 1.5), name="Mine")
    assert text == "Mine([" + ", ".join(["1.5000"] * 9) + ",\n      " + ", ".join(["1.5000"] * 3) + "])"


def test_contents_can_be_given():
    assert printing.format_tensor(Printed(ones(3)), contents="hidden") == "tensor(hidden, dtype=torch.float64)"


def test_default_dtype_goes_without_saying():
    dtypes.set_default_dtype(dtypes.float64)
    assert text_of(zeros(1)) == "tensor([0.])"
    assert text_of(zeros(1, "f4")) == "tensor([0.], dtype=torch.float32)"
    assert text_of(zeros(1, "c16")) == "tensor([0.+0.j])"
    assert text_of(zeros(1, "c8")) == "tensor([0.+0.j], dtype=torch.complex64)"
    dtypes.set_default_dtype(dtypes.bfloat16)
    assert text_of(zeros(1, bfloat16)) == "tensor([0.])"
    assert text_of(zeros(1, "c8")) == "tensor([0.+0.j])"


def test_options_are_remembered_and_profiles_restore_them():
    default = printing.get_printoptions()
    assert default == {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
    printing.set_printoptions(precision=7, sci_mode=True)
    assert printing.get_printoptions() == {**default, "precision": 7, "sci_mode": True}
    printing.set_printoptions(linewidth=100)
    assert printing.get_printoptions() == {**default, "precision": 7, "linewidth": 100}
    printing.set_printoptions(profile="Full")
    assert printing.get_printoptions() == {**default, "threshold": inf}
    printing.set_printoptions(profile="short")
    assert printing.get_printoptions() == {**default, "precision": 2, "edgeitems": 2}
    printing.set_printoptions(profile="unheard of", edgeitems=5)
    assert printing.get_printoptions() == {**default, "precision": 2, "edgeitems": 5}


def test_options_of_a_block_end_with_it_even_by_an_error():
    printing.set_printoptions(sci_mode=True)
    before = printing.get_printoptions()
    with printing.printoptions(precision=1):
        assert text_of(float32(0.26)) == "tensor(0.3)"
    assert printing.get_printoptions() == before
    with pytest.raises(ZeroDivisionError), printing.printoptions(precision=1):
        raise ZeroDivisionError
    assert printing.get_printoptions() == before
    with pytest.raises(TypeError), printing.printoptions(width=3):
        pass
    assert printing.get_printoptions() == before


def test_precision_that_is_no_precision_is_an_error():
    printing.set_printoptions(precision=-1)
    with pytest.raises(ValueError, match="Format specifier missing precision"):
        text_of(float32(0.5))


def test_format_of_zero_dim_is_that_of_its_number():
    assert printing.format_with(Printed(float32(2.5)), ".2f") == "2.50"
    assert printing.format_with(Printed(asarray(1.1, bfloat16)), "") == "1.1015625"
    assert printing.format_with(Printed(asarray(7)), "x") == "7"
    assert printing.format_with(Printed(asarray(1 + 2j)), ">10") == "    (1+2j)"
    with pytest.raises(ValueError, match="Unknown format code 'd' for object of type 'float'"):
        printing.format_with(Printed(float32(2.5)), "d")


def test_format_with_dimensions_takes_no_specification():
    with pytest.raises(TypeError, match=r"unsupported format string passed to Printed.__format__"):
        printing.format_with(Printed(ones(2)), ".2f")


def test_only_items_shown_are_formatted(monkeypatch):
    seen = []
    monkeypatch.setattr(printing, "_python_values", lambda array: seen.append(array.size) or array.ravel().tolist())
    text_of(broadcast_to(float32(1), (10**6, 10**6)))
    assert seen == [36]
