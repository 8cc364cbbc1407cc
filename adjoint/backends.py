"""`adjoint.backends`: the libraries that PyTorch may be told to use, none of which is used here.

Programs switch them (`backends.cudnn.deterministic = True`) and ask for them; switches are kept and change nothing.
"""


class _Backend:
    """A library that is not there, with its switches."""

    def __init__(self, **switches: bool) -> None:
        for name, value in switches.items():
            setattr(self, name, value)

    def is_available(self) -> bool:
        """Whether the library is used; never."""
        return False

    is_built = is_available


class _Cuda(_Backend):
    matmul = _Backend(allow_tf32=False, allow_fp16_reduced_precision_reduction=True)


cudnn = _Backend(enabled=True, benchmark=False, deterministic=False, allow_tf32=True)
cuda = _Cuda()
mps, mkl, mkldnn, openmp = _Backend(), _Backend(), _Backend(enabled=True), _Backend()
