"""`torch._C.DispatchKey`: the keys of PyTorch's dispatcher, which programs use to register kernels of operators."""

from enum import IntEnum

_BACKENDS = "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta".split()
_BEFORE_BACKENDS = """
    Undefined Dense Quantized Sparse SparseCsr NestedTensor BackendSelect Python FuncTorchDynamicLayerBackMode Functionalize
    Named Conjugate Negative ZeroTensor ADInplaceOrView AutogradOther AutogradFunctionality AutogradNestedTensor Tracer
    AutocastCPU AutocastXPU AutocastIPU AutocastHPU AutocastXLA AutocastMPS AutocastMTIA AutocastMAIA AutocastCUDA
    AutocastPrivateUse1 FuncTorchBatched BatchedNestedTensor FuncTorchVmapMode Batched VmapMode FuncTorchGradWrapper
    DeferredInit PythonTLSSnapshot FuncTorchDynamicLayerFrontMode TESTING_ONLY_GenericWrapper TESTING_ONLY_GenericMode
    PreDispatch PythonDispatcher
""".split()
_AFTER_BACKENDS = """
    Autograd CompositeImplicitAutograd FuncTorchBatchedDecomposition CompositeImplicitAutogradNestedTensor
    CompositeExplicitAutograd CompositeExplicitAutogradNonFunctional
""".split()
_PER_BACKEND = (
    ("", "Dense"),
    ("Quantized", "Quantized"),
    ("Sparse", "Sparse"),
    ("SparseCsr", "SparseCsr"),
    ("NestedTensor", "NestedTensor"),
    ("Autograd", "AutogradFunctionality"),
)

DispatchKey = IntEnum(  # type: ignore[misc]
    "DispatchKey",
    [
        *_BEFORE_BACKENDS,
        *(
            name
            for prefix, kind in _PER_BACKEND
            for name in (
                f"StartOf{kind}Backends",
                *(prefix + backend for backend in _BACKENDS),
                f"EndOf{kind}Backends",
            )
        ),
        *_AFTER_BACKENDS,
    ],
    start=0,
    module="torch._C",
)
DispatchKey.__doc__ = (
    "A key of PyTorch's dispatcher. There is only the CPU: keys of other devices name no kernel that is called."
)
DispatchKey.__str__ = lambda self: f"DispatchKey.{self.name}"  # type: ignore[method-assign, assignment]
