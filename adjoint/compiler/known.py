"""Tables of functions, classes and attributes for the observer: which are called, which are read, and which end the capture."""

from __future__ import annotations

import builtins
import contextlib
import dis
import enum
import gc
import importlib.util
import inspect
import operator
import os
import sysconfig
import types
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy

import adjoint as torch
from adjoint.device import Size

from .. import dtypes
from ..dispatch.calls import passes_arguments_on
from ..dispatch.slow_path import handlers_of_thread
from ..interchange import Interchange, elements_of
from ..tape import modes
from ..tensor import Tensor
from .options import error_on_graph_break

PACKAGE = str(Path(__file__).parents[1]) + os.sep
MODULES = (
    f"{PACKAGE}nn{os.sep}modules{os.sep}",
    *(f"{PACKAGE}nn{os.sep}utils{os.sep}{name}" for name in ("parametriz", "weight_norm")),
    f"{PACKAGE}optim{os.sep}swa_utils",
)
LIBRARIES = (
    PACKAGE,
    "<adjoint",
    "<frozen",
    *(
        f"{Path(spec.origin).parent}{os.sep}"
        for name in ("numpy", "scipy", "llvmlite", "ml_dtypes")
        if (spec := importlib.util.find_spec(name)) is not None and spec.origin is not None
    ),
)
"""The locations of the code of kernels."""
STANDARD = sysconfig.get_path("stdlib") + os.sep
IMMUTABLE = (
    *(int, float, bool, complex, str, bytes, type(None), type(...), slice, range, frozenset, Size),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format, type(NotImplemented)),
)
NUMBERS = (int, float, bool, complex, str, bytes, type(None))
MUTABLE = (list, dict, set)
FOREIGN = (bytearray, memoryview)
IMMUTABLE_TYPE, HEAP_TYPE = 1 << 8, 1 << 9
"""Flags of classes."""

PURE = frozenset(
    vars(builtins)[name]
    for name in """
    len isinstance issubclass abs round divmod pow callable format repr str ord chr min max sum any all range zip enumerate
    reversed sorted tuple list dict set int float bool slice map filter type iter next
    """.split()
)
"""Built-in functions that change only the objects that they create (and, for `next`, iterators that were created inside)."""

ARITHMETIC = frozenset((abs, float, int, max, min, pow, round))
"""The pure functions that compute numbers from numbers."""

CONSUMING = frozenset((any, all, sum, max, min, sorted, dict, set, filter))
"""The pure functions that read the elements of an iterator's elements."""

GIVING = frozenset("next max min sum type get pop setdefault __getitem__".split())
"""The names of built-in functions that may return an argument, or an element of an argument."""

REARRANGING = frozenset((len, tuple, list, zip, enumerate, reversed, iter, next))
"""The pure functions that do not compare the numbers in sequences."""

LOOKING_UP = frozenset("keys values items get index count copy __contains__ __getitem__".split())
"""The methods of lists, dictionaries and sets that change nothing."""

READING = frozenset(
    inspect.unwrap(function).__code__
    for function in (*vars(Interchange).values(), elements_of, Tensor.__repr__, Tensor.__format__)
    if isinstance(function, types.FunctionType)
    and function.__name__ not in ("__len__", "__hash__", "__dlpack_device__", "__array_namespace__", "storage_type")
)
"""The code of the methods of tensors that return elements to Python."""
BOOL = inspect.unwrap(Interchange.__bool__).__code__

REFUSED_METHODS = frozenset(
    """
    requires_grad_ register_hook retain_grad data_ptr set_ share_memory_ resize_ resize_as_ register_post_accumulate_grad_hook
    untyped_storage storage pin_memory rename_ rename names equal allclose is_nonzero apply_ map_ map2_ __setstate__ __deepcopy__
    is_set_to new new_tensor is_shared unsafe_chunk storage_offset _is_view
    """.split()
)
UNSEEN = frozenset(
    """
    _grad _backward_hooks grad_fn _version _base _cdata names retains_grad output_nr __dict__ _edge _array _extra _counter
    grad_dtype name __array_interface__ __cuda_array_interface__
    """.split()
)
"""The attributes of tensors that no guard covers."""

CREATING = frozenset(
    """
    zeros ones full empty arange linspace logspace eye rand randn randint randperm tensor normal tril_indices triu_indices
    hann_window hamming_window blackman_window bartlett_window kaiser_window range scalar_tensor
    """.split()
)
"""Functions that create tensors from numbers. The program calls them again."""

WITH_NUMBERS = frozenset(
    """
    add sub subtract rsub mul multiply div divide true_divide pow float_power floor_divide fmod remainder add_ sub_ subtract_
    mul_ multiply_ div_ divide_ true_divide_ pow_ addcmul addcdiv addcmul_ addcdiv_ lerp lerp_ clamp clamp_ clamp_min clamp_max
    clip fill_ masked_fill masked_fill_ leaky_relu elu eq ne lt le gt ge __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__
    __truediv__ __rtruediv__ __pow__ __rpow__ batch_norm
    """.split()
)
"""Operators that read each number from the same place in every call, as the program does."""

WITHOUT_ERRORS = frozenset(
    """
    add sub mul div neg addmm addmv baddbmm mm bmm mv dot convolution native_batch_norm move sum_all sum_dim mean_all mean_dim
    mse_loss cat stack clone copy drawn_mask max_pool2d_with_indices spread unsafe_view select_where convert round lay_out
    number constant size zeros ones full arange eye randn rand randn_like rand_like zeros_like ones_like recurrent_layer
    eq ne lt le gt ge logical_and logical_or logical_not bitwise_and bitwise_or bitwise_not isnan isfinite isinf abs
    clamp_to_numbers max_all min_all std_correction var_correction linalg_vector_norm
    sum_to_shape var_mean std_dim var_dim norm argmax argmin max_dim min_dim amax amin cumsum topk sort triu tril
    """.split()
)
"""Instructions that raise no errors if the shapes and dtypes of their operands have not changed."""

SIZES = frozenset("size numel nelement".split())
"""The methods of tensors that return sizes."""

ALONG_ONE = {"chunk": (2, 0), "unsafe_chunk": (2, 0), "tensor_split": (2, 0), "glu": (1, -1)}
"""Functions that internally compute parts of one size: the position of the dimension among their arguments, and its default."""

OF_ONE_SIZE = frozenset(
    """
    hsplit vsplit dsplit interpolate upsample upsample_bilinear upsample_nearest fractional_max_pool2d fractional_max_pool3d
    fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices adaptive_log_softmax_with_loss
    stft istft rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft hfft2 ihfft2 hfftn ihfftn fftshift ifftshift
    pca_lowrank svd_lowrank lobpcg cdist pdist diff diagonal diag diag_embed diagonal_scatter combinations cartesian_prod
    lu lu_unpack lu_factor lu_factor_ex lu_solve
    qr svd pinv pinverse lstsq matrix_rank matrix_exp matrix_power slogdet det householder_product
    quantile nanquantile median nanmedian histc histogram histogramdd trace
    """.split()
)
"""Functions that internally compute numbers from sizes, such as halves and minima, or choose an algorithm by sizes.

Programs that call them serve one size.
"""

OF_NO_SIZE = frozenset("ndim itemsize dim ndimension element_size get_device output_nr is_complex".split())
"""The attributes and functions of tensors that return numbers which do not depend on sizes."""

NAMESPACES = frozenset(
    """
    adjoint adjoint.nn.functional adjoint.linalg adjoint.fft adjoint.special adjoint.nn.modules.utils adjoint._C._nn adjoint._C
    adjoint.functional adjoint._tensor
    """.split()
)
REFUSED = frozenset(
    """
    manual_seed seed initial_seed get_rng_state set_rng_state save load compile from_numpy frombuffer from_dlpack from_file
    as_tensor asarray equal allclose is_nonzero set_default_dtype set_default_device use_deterministic_algorithms
    set_num_threads set_grad_enabled
    set_printoptions _fused_update_ _count_steps_ vmap
    """.split()
)
ANSWERING = frozenset(
    "is_available is_initialized device_count is_in_onnx_export never is_scripting is_tracing is_exporting".split()
)
"""Functions without arguments that tell what exists. Their answers are guarded."""


def may_be_called(name: str, module: str) -> bool:
    """Return whether a function of this package only computes, or answers."""
    computes = module in NAMESPACES or module.startswith(("adjoint.nn.functional", "adjoint.operators."))
    computes = computes or (name, module) == ("pad_sequence", "adjoint.nn.utils.rnn")
    return (computes or name in ANSWERING) and name not in REFUSED


TRUSTED = ("einops.einops", "einops.packing")
"""Modules whose functions read only their arguments and have no effects."""
CALL = torch.nn.Module.__call__
"""The original `Module.__call__`, which a program can replace."""
OF_OTHERS = (torch.nn.ParameterList, torch.nn.ParameterDict)
"""Modules that may contain objects other than parameters."""
CONTEXTS = (
    torch.no_grad,
    torch.enable_grad,
    torch.set_grad_enabled,
    torch.inference_mode,
    torch.autocast,
    error_on_graph_break,
)
IN_MODE = tuple(mode(lambda: None).__code__ for mode in (torch.no_grad(), torch.autocast("cpu")))
"""The code of all functions that the context managers of this package decorate."""
CONSTANT = frozenset((contextlib.nullcontext.__enter__.__code__, contextlib.nullcontext.__exit__.__code__))
"""The code of methods of the standard library that read no mutable object."""
FROM_OUTSIDE = (Size, torch.device, torch.finfo, torch.iinfo, contextlib.nullcontext)
"""Other classes of which a function may create instances."""


class Made:
    """A function that creates tensors, with fixed options. Each call returns a new array."""

    def __init__(self, function: Any, kwargs: dict[str, Any]) -> None:
        self.function, self.kwargs = function, kwargs

    def __call__(self, *args: Any) -> Any:
        """Return the array of the tensor that the function creates, if any."""
        result = self.function(*args, **self.kwargs)
        return None if result is None else result._array


class Changing(Made):
    """A function that changes outside objects."""

    of_host = True


class Method:
    """A call of a method of the object that is present when the program runs."""

    of_host = True

    def __init__(self, owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.owner, self.name, self.args, self.kwargs = owner, name, args, kwargs

    def __call__(self) -> None:
        """Call the method."""
        getattr(self.owner, self.name)(*self.args, **self.kwargs)


BUILT_IN = (
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.MethodType,
)


def is_standard(frame: types.FrameType) -> bool:
    """Return whether a frame runs code of the standard library, or methods that it creates (of named tuples and data classes)."""
    file = frame.f_code.co_filename
    if file.startswith(STANDARD):
        return "site-packages" not in file
    named = str(frame.f_globals.get("__name__")).startswith("namedtuple_")
    caller = frame.f_back
    return file == "<string>" and (
        named
        or frame.f_code.co_qualname.startswith("__create_fn__")
        or (caller is not None and caller.f_code.co_filename.startswith(STANDARD))
    )


def is_asked(frame: types.FrameType) -> bool:
    """Return whether this package, except for the compiler, calls the function in a frame."""
    caller = frame.f_back
    while caller is not None and passes_arguments_on(caller):
        caller = caller.f_back
    file = "" if caller is None else caller.f_code.co_filename
    return file.startswith(PACKAGE) and not file.startswith(f"{PACKAGE}compiler{os.sep}")


def is_ours(kind: type) -> bool:
    """Return whether a class belongs to this package."""
    return own_name(kind.__module__).partition(".")[0] == "adjoint"


def is_changeable(kind: type) -> bool:
    """Return whether a class was defined by a user, so that its attributes may change."""
    return bool(kind.__flags__ & HEAP_TYPE) and not kind.__flags__ & IMMUTABLE_TYPE and not is_ours(kind)


def own_name(module: str | None) -> str:
    """Return the name of a module in this package. A name that begins with `torch` begins with `adjoint` here."""
    first, dot, rest = str(module).partition(".")
    return f"adjoint{dot}{rest}" if first == "torch" else str(module)


def digest(array: Any) -> int:
    """Return a checksum of an array, which changes if its elements change."""
    return zlib.crc32(array if array.flags.c_contiguous else array.copy("C"))


def has_numbers(result: Any) -> bool:
    """Return whether a function has returned Python numbers."""
    if isinstance(result, (list, tuple)):
        return any(map(has_numbers, result))
    return type(result) in (int, float, complex)


def has_elements(value: Any) -> bool:
    """Return whether a value may have elements that can change. Tensors are excluded, because they have their own guards."""
    names = {"__getitem__", "__iter__", "__len__", "__contains__"}
    return not isinstance(value, (Tensor, enum.EnumMeta, numpy.generic)) and any(
        not names.isdisjoint(vars(each)) for each in type(value).__mro__
    )


def is_constant(value: Any) -> bool:
    """Return whether a value is a number, a tuple of numbers, or a similar constant."""
    return (
        type(value) in IMMUTABLE
        or (type(value) is tuple and all(map(is_constant, value)))
        or isinstance(value, torch.Generator)
    )


def is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor has only properties that programs support."""
    return (
        type(tensor) in (Tensor, torch.nn.Parameter)
        and type(tensor._array).__name__ == "ndarray"
        and is_usual(tensor, None)
    )


def is_usual(tensor: Tensor, inference: bool | None = False) -> bool:
    """Return whether a tensor has no hooks or other rare attributes that programs do not support.

    `inference`: whether it must be an inference tensor. With None, both kinds are accepted.
    """
    extra = tensor._extra
    if extra is None:
        return not inference
    return (inference is None or bool(extra.inference) is inference) and not (
        extra.hooks or extra.post_hooks or extra.tangents or extra.transform or extra.number
    )


settings = operator.itemgetter(
    *"grad_enabled inference autocast task function_modes saved_tensor_hooks grad_layout uncompiled".split()
)
"""Return the modes of a thread on which programs depend (see `tape.modes`)."""


def may_run(here: dict[str, Any]) -> bool:
    """Return whether the modes of a thread allow programs to run."""
    return bool(settings(here)[3:] == (None, (), (), True, False))


def is_undisturbed() -> bool:
    """Return whether no device context and no handler, except a profile of a program, affects the operators of this thread."""
    here = modes.STATE.__dict__
    state = here["transforms"], here["default_place"], here["places"]
    handlers = handlers_of_thread()
    profiled = handlers == (here["recorder"],) and handlers[0].in_program
    return bool((handlers == () or profiled) and state == ((), None, ()))


def modes_in_force() -> tuple[Any, ...]:
    """Return the modes of this thread that operators depend on, the default dtype, and the dtype of autocast."""
    here = modes.STATE.__dict__
    precision = here["precision"].cpu_dtype if here["autocast"] is not None else None
    return here["grad_enabled"], here["inference"], dtypes.get_default_dtype(), precision


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """A context without garbage collection. Otherwise callbacks of the collector would seem to be called by the function."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


LOAD_GLOBAL, LOAD_NAME = dis.opmap["LOAD_GLOBAL"], dis.opmap["LOAD_NAME"]


def names_in(code: types.CodeType) -> frozenset[str]:
    """Return the names of global variables in code, and in the functions that the code defines."""
    names, high = set[str](), 0
    for operation, low in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        argument = high | low
        high = argument << 8 if operation == dis.EXTENDED_ARG else 0
        if operation == LOAD_GLOBAL:
            names.add(code.co_names[argument >> 1])  # the last bit says whether it is called
        elif operation == LOAD_NAME:
            names.add(code.co_names[argument])
    return frozenset(names).union(*[names_in(each) for each in code.co_consts if isinstance(each, types.CodeType)])


def add_code(codes: set[types.CodeType], code: types.CodeType) -> None:
    """Add code, and the code of the functions that this code defines."""
    codes.add(code)
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            add_code(codes, each)


def same_items(found: Any, expected: tuple[Any, ...]) -> bool:
    """Return whether the elements of a list are the same objects, or equal numbers."""
    if len(found) != len(expected):
        return False
    for one, other in zip(found, expected):  # noqa: B905  (as long)
        if one is not other and not (type(one) is type(other) and type(one) in NUMBERS and one == other):
            return False
        if one is not other and is_signed(one) and repr(one) != repr(other):
            return False
    return True


def is_signed(value: Any) -> bool:
    """Return whether an equal number can differ from `value` in the sign of a zero."""
    return type(value) is complex or (type(value) is float and value == 0)


def never_raises(instruction: Any) -> bool:
    """Return whether an instruction raises no errors if the shapes and dtypes of its operands have not changed."""
    op = instruction.kernel
    simple = op is not None and (op.view or op.kernel.expression is not None or op.kernel.rows is not None)
    return bool(simple or instruction.name.removesuffix("_") in WITHOUT_ERRORS)


def is_of_host(instruction: Any) -> bool:
    """Return whether an instruction changes outside objects, which a run on copies must not change."""
    return instruction.name in ("set_grad", "zero_grad") or hasattr(instruction.function, "of_host")


def is_data(value: Any) -> bool:
    """Return whether a value is a number, a string or a container, and not an object with attributes."""
    return type(value) in (*IMMUTABLE, *MUTABLE, tuple) or isinstance(value, (*NUMBERS, Tensor))


def shown(value: Any) -> str:
    """Return a short text for an object that a condition names."""
    kind = type(value)
    if isinstance(value, Tensor):
        return f"{kind.__name__}{list(value.shape)}"
    if kind is dict and "__name__" in value:
        return f"globals of {value['__name__']}"
    if kind in (list, tuple, dict, set):
        return f"{kind.__name__} of {len(value)}"
    if kind in IMMUTABLE:
        return repr(value)
    return getattr(value, "__qualname__", None) or kind.__name__
