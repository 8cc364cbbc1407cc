"""Private and rare names of PyTorch that other programs import."""

import importlib

import pytest

import adjoint as torch
from adjoint import _utils
from adjoint.utils import _foreach_utils


@pytest.mark.parametrize(
    "name",
    [
        "_utils",
        "utils._foreach_utils",
        "profiler.itt",
        "autograd._functions",
        "autograd._functions.utils",
        "autograd._functions.tensor",
        "cuda.nvtx",
        "distributed.autograd",
        "nn._reduction",
        "_functorch.make_functional",
        "_functorch.apis",
        "_functorch.autograd_function",
        "_functorch.deprecated",
        "_functorch.eager_transforms",
        "_functorch.functional_call",
        "_functorch.utils",
        "_functorch.functorch.einops",
        "_functorch.functorch.experimental",
    ],
)
def test_modules_are_imported_by_their_names(name):
    module = importlib.import_module(f"adjoint.{name}")
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    assert found is module


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("_dynamo._trace_wrapped_higher_order_op", "TransformGetItemToIndex"),
        ("_dynamo.eval_frame", "OptimizedModule"),
        ("_dynamo.utils", "is_compile_supported"),
        ("_functorch.batch_norm_replacement", "replace_all_batch_norm_modules_"),
        ("_functorch.functional_call", "stack_module_state"),
        ("_functorch.vmap", "restore_vmap"),
        ("_higher_order_ops.associative_scan", "associative_scan"),
        ("_higher_order_ops.cond", "cond"),
        ("_higher_order_ops.map", "map"),
        ("_higher_order_ops.scan", "scan"),
        ("_higher_order_ops.while_loop", "while_loop"),
        ("autograd.anomaly_mode", "set_detect_anomaly"),
        *((f"backends.{name}", "set_flags") for name in ("miopen", "nnpack", "opt_einsum")),
        ("backends.cusparselt", "version"),
        ("backends.mha", "set_fastpath_enabled"),
        ("backends.openmp", "is_available"),
        ("backends.quantized", "supported_engines"),
        ("backends.xnnpack", "enabled"),
        ("distributed._composable.fsdp", "fully_shard"),
        ("distributed.elastic.multiprocessing.errors", "record"),
        ("distributions.exp_family", "ExponentialFamily"),
        ("nn.modules.distance", "PairwiseDistance"),
        ("nn.modules.flatten", "Unflatten"),
        ("nn.modules.fold", "Unfold"),
        ("nn.modules.upsampling", "UpsamplingNearest2d"),
        ("nn.parallel.parallel_apply", "parallel_apply"),
        ("nn.parallel.replicate", "replicate"),
        ("utils.data._utils.collate", "np_str_obj_array_pattern"),
        ("utils.data._utils.worker", "_generate_state"),
        ("utils.tensorboard.writer", "SummaryWriter"),
    ],
)
def test_names_in_modules_of_pytorch(module, name):
    assert hasattr(importlib.import_module(f"adjoint.{module}"), name)


def test_switches_of_libraries_that_are_not_used():
    nnpack, einsum, mha = torch.backends.nnpack, torch.backends.opt_einsum, torch.backends.mha
    with nnpack.flags(enabled=False):
        assert nnpack.enabled is False
    assert nnpack.enabled is True
    assert einsum.set_flags(True) == (False, None) and einsum.enabled is True
    einsum.set_flags(False)
    mha.set_fastpath_enabled(False)
    assert mha.get_fastpath_enabled() is False
    mha.set_fastpath_enabled(True)


def test_types_of_arguments_have_their_private_names():
    assert torch.types._dtype is torch.dtype and torch.types._layout is torch.layout
    assert torch.types._device is torch.device and torch.types._int is int


@pytest.mark.parametrize("name", ["xpu", "mps", "mtia"])
def test_missing_devices_raise_errors(name):
    module = getattr(torch, name)
    assert (module.is_available(), module.device_count()) == (False, 0)
    with pytest.raises(
        NotImplementedError, match=f"torch.{name}.set_rng_state is not in adjoint: there is only the CPU"
    ):
        module.set_rng_state(None)


def test_nothing_is_traced_or_fake():
    fake = importlib.import_module("adjoint._subclasses.fake_tensor")
    assert not fake.is_fake(torch.ones(1)) and not isinstance(torch.ones(1), fake.FakeTensor)
    assert torch._C._get_tracing_state() is None and not torch.jit.is_tracing()


def test_a_buffer_of_tensors_gives_them_back_as_views():
    tensors = [torch.arange(6.0).reshape(2, 3), torch.tensor(7.0)]
    flat = _utils._flatten_dense_tensors(tensors)
    parts = _utils._unflatten_dense_tensors(flat, tensors)
    flat.mul_(2)
    assert [part.tolist() for part in parts] == [[[0, 2, 4], [6, 8, 10]], 14]


def test_an_exception_is_raised_again_with_its_traceback():
    def fails():
        raise KeyError("lost")

    try:
        fails()
    except KeyError:
        wrapped = _utils.ExceptionWrapper(where="in worker 0")
    with pytest.raises(KeyError, match="Caught KeyError in worker 0") as caught:
        wrapped.reraise()
    assert "in fails" in str(caught.value)


def test_tensors_are_grouped_by_dtype():
    single, double = torch.ones(2), torch.ones(2, dtype=torch.float64)
    groups = _foreach_utils._group_tensors_by_device_and_dtype([[single, double], [None, double]], with_indices=True)
    assert groups == {
        (torch.device("cpu"), torch.float32): ([[single], [None]], [0]),
        (torch.device("cpu"), torch.float64): ([[double], [double]], [1]),
    }


def test_the_current_level_of_forward_mode():
    forward_ad = torch.autograd.forward_ad
    levels = [forward_ad._current_level]
    with forward_ad.dual_level():
        levels.append(forward_ad._current_level)
    assert levels == [-1, 0]
    assert isinstance(torch.ones(1, requires_grad=True).exp().grad_fn._raw_saved_result, torch.autograd.SavedTensor)


def test_nothing_hears_ranges():
    itt = torch.profiler.itt
    assert not itt.is_available()
    with itt.range("step {}", 3):
        itt.mark("here")
    with pytest.raises(KeyError, match="step"), itt.range("{step}"):
        pass


UNSAID = "Expected cond to be True, but got False"


@pytest.mark.parametrize(
    ("check", "error", "message"),
    [
        (lambda: torch._check(False), RuntimeError, UNSAID),
        (lambda: torch._check(False, lambda: "why"), RuntimeError, "why"),
        (lambda: torch._check(1), TypeError, "cond must be a bool, but got <class 'int'>"),
        (lambda: torch._check(False, "why"), TypeError, "message must be a callable"),
        (lambda: torch._check_with(KeyError, False, lambda: "k"), KeyError, "k"),
        (lambda: torch._check_index(False), IndexError, UNSAID),
        (lambda: torch._check_value(False, lambda: "v"), ValueError, "v"),
        (lambda: torch._check_type(False), TypeError, UNSAID),
        (lambda: torch._check_not_implemented(False), NotImplementedError, UNSAID),
        (lambda: torch._check_is_size(-1), RuntimeError, UNSAID),
        (lambda: torch._check_tensor_all(torch.tensor([True, False])), RuntimeError, UNSAID),
        (lambda: torch._assert_async(torch.tensor(0), "zero"), RuntimeError, "zero"),
    ],
)
def test_conditions_are_checked(check, error, message):
    with pytest.raises(error, match=message):
        check()


def test_conditions_that_hold():
    assert torch._check(True) is torch._check_is_size(3, max=4) is torch._assert_async(torch.tensor(2)) is None
    assert torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]
    assert torch._has_compatible_shallow_copy_type(torch.ones(1), torch.ones(2, dtype=torch.float64))
    assert not torch._has_compatible_shallow_copy_type(torch.ones(1), torch.ones(2).to_sparse())


def test_classes_of_accelerators_can_be_named_and_errors_caught():
    assert torch.cuda.OutOfMemoryError is torch.OutOfMemoryError
    assert issubclass(torch.OutOfMemoryError, RuntimeError) and issubclass(torch.AcceleratorError, RuntimeError)
    assert not isinstance(torch.ones(1), torch.Stream)
    with pytest.raises(NotImplementedError, match="there is only the CPU"):
        torch.Stream()


def test_marks_for_a_profiler_decorate_and_say_what_is_missing_when_used():
    @torch.cuda.nvtx.range("marked")
    def marked():
        pass

    with pytest.raises(RuntimeError, match="NVTX functions not installed"):
        marked()


def test_numbers_of_reductions():
    reduction = importlib.import_module("adjoint.nn._reduction")
    assert [reduction.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert reduction.legacy_get_enum(False, True) == 2


def test_members_are_exchanged_by_name():
    swap = importlib.import_module("adjoint.nn.utils._named_member_accessor").swap_tensor
    module = torch.nn.BatchNorm1d(2)
    weight = module.weight
    assert swap(module, "weight", torch.zeros(2)) is weight and module.weight.tolist() == [0, 0]
    absent = swap(module, "new", torch.ones(1), allow_missing=True)
    assert swap(module, "new", absent).tolist() == [1] and not hasattr(module, "new")
    for name, error, message in (
        ("a.b", KeyError, "contain"),
        ("", KeyError, "empty"),
        ("no", AttributeError, "`no`"),
    ):
        with pytest.raises(error, match=message):
            swap(module, name, None)
    with pytest.raises(TypeError, match="attribute `eps`"):
        swap(module, "eps", None)


def test_contexts_that_decorate():
    base = importlib.import_module("adjoint.utils._contextlib")
    seen = []

    class Noting(base._DecoratorContextManager):
        def __enter__(self):
            seen.append("in")

        def __exit__(self, *error):
            seen.append("out")

    @Noting()
    def numbers():
        seen.append("first")
        yield 1
        seen.append("second")

    assert Noting()(lambda: seen.append("called"))() is None
    assert list(numbers()) == [1]
    assert seen == ["in", "called", "out", "in", "first", "out", "in", "second", "out"]

    class Bare(base._NoParamDecoratorContextManager, Noting):
        pass

    seen.clear()
    Bare(lambda: seen.append("called"))()
    assert seen == ["in", "called", "out"]


def test_a_library_may_batch_containers_of_its_own(monkeypatch):
    vmap = importlib.import_module("adjoint._functorch.vmap")
    calls = []
    create = vmap._create_batched_inputs

    def created(dims, leaves, level, structure):
        calls.append(dims)
        return create(dims, leaves, level, structure)

    monkeypatch.setattr(vmap, "_create_batched_inputs", created)
    assert torch.vmap(torch.sum, in_dims=1)(torch.ones(2, 3)).tolist() == [2, 2, 2]
    assert calls == [[1]]
    assert not torch._C._are_functorch_transforms_active()
    assert torch.vmap(lambda x: x * torch._C._are_functorch_transforms_active())(torch.ones(2)).tolist() == [1, 1]


def test_weak_references_to_tensors():
    tensor = torch.ones(1)
    reference = torch._C._WeakTensorRef(tensor)
    assert not reference.expired()
    del tensor
    assert reference.expired()


@pytest.mark.filterwarnings("ignore:We've integrated functorch:FutureWarning")
def test_modules_as_functions_by_the_former_interface():
    former = importlib.import_module("adjoint._functorch.functorch")
    model = torch.nn.Linear(2, 1)
    function, parameters = former.make_functional(model)
    x = torch.ones(3, 2)
    assert torch.equal(function(parameters, x), model(x)) and parameters[0] is not model.weight
    with pytest.raises(RuntimeError, match="use make_functional_with_buffers"):
        former.make_functional(torch.nn.BatchNorm1d(2))
    models = [torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)).eval() for _ in range(3)]
    function, parameters, buffers = former.combine_state_for_ensemble(models)
    together = former.vmap(function, in_dims=(0, 0, None))(parameters, buffers, x)
    assert torch.allclose(together, torch.stack([each(x) for each in models]))
    for wrong, message in (
        ([], "at least one"),
        ([model, models[0].train()], "same class"),
        ([model, models[1]], "mode"),
    ):
        with pytest.raises(RuntimeError, match=message):
            former.combine_state_for_ensemble(wrong)


@pytest.mark.parametrize("shape", [(), (4,)])
def test_ensembles_of_new_modules_by_the_former_interface(shape):
    former = importlib.import_module("adjoint._functorch.make_functional")
    x = torch.ones((*shape, 5, 2))

    def batched(function):
        return torch.vmap(function) if shape else function

    parameters, function, names = former.functional_init(torch.nn.Linear, shape)(2, 3)
    assert names == ("weight", "bias") and parameters[0].shape == (*shape, 3, 2)
    assert torch.allclose(batched(function)(parameters, (x,)), x @ parameters[0].mT + parameters[1].unsqueeze(-2))
    made = former.functional_init_with_buffers(torch.nn.BatchNorm1d, shape)(2, track_running_stats=True)
    parameters, buffers, function, names, buffer_names = made
    assert names == ("weight", "bias") and buffer_names == ("running_mean", "running_var", "num_batches_tracked")
    assert batched(function)(parameters, buffers, (x,)).shape == x.shape
    with pytest.raises(ValueError, match="more than 1 element"):
        former.functional_init(torch.nn.Linear, (2, 2))


def test_a_loader_of_another_library_is_read():
    from adjoint.utils.data import dataloader

    class Loader:
        _IterableDataset_len_called, _auto_collation, drop_last, _index_sampler = None, False, False, [None] * 3
        _dataset_kind, dataset, generator, pin_memory, timeout = (
            dataloader._DatasetKind.Iterable,
            [4, 5],
            None,
            False,
            0,
        )

        @staticmethod
        def collate_fn(sample):
            return -sample

    assert list(dataloader._SingleProcessDataLoaderIter(Loader())) == [-4, -5]


def test_operators_of_refused_libraries_may_be_described(monkeypatch):
    monkeypatch.setattr(torch.library, "refused_libraries", refused := set())  # `library` reads the set of `ops`
    monkeypatch.setattr(torch.ops, "refused_libraries", refused)
    with pytest.raises(RuntimeError, match="operator vision::nms does not exist"):
        torch.library.register_fake("vision::nms")(lambda boxes: boxes)
    with pytest.raises(OSError, match="cannot load compiled operators"):
        torch.ops.load_library("/somewhere/_C.so")

    @torch.library.register_fake("vision::nms")
    def boxes_kept(boxes):
        return boxes

    assert boxes_kept(3) == 3
    with pytest.raises(AttributeError):
        torch.ops.vision.nms


def test_settings_of_graph_capture_can_be_patched_for_a_while():
    settings = torch._dynamo.config
    with settings.patch("verbose", True):
        assert settings.verbose is True
    with settings.patch({"verbose": 3}, of_a_program=4):
        assert (settings.verbose, settings.of_a_program) == (3, 4)
    assert settings.verbose is False and not hasattr(settings, "of_a_program")
    assert settings.patch(verbose=9)(lambda: settings.verbose)() == 9
    assert settings.verbose is False


def test_a_wrapper_subclass_is_made_with_positional_arguments_too():
    class Wrapper(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), keywords=None):
            raise NotImplementedError

    source = torch.ones(2, 3, dtype=torch.float64)
    made = torch.Tensor._make_wrapper_subclass(
        Wrapper, source.size(), source.stride(), source.storage_offset(), torch.contiguous_format,
        source.dtype, source.layout, source.device, False, True, "sizes",
    )  # fmt: skip
    assert type(made) is Wrapper and made.shape == (2, 3) and made.dtype is torch.float64 and made.requires_grad


@pytest.mark.parametrize(
    "value", [torch.ones(2), torch.ones(2, dtype=torch.complex64), torch.ones(2, requires_grad=True)]
)
@pytest.mark.filterwarnings("ignore:The use of `x.T`|The .grad attribute")
def test_names_that_dir_lists_exist(value):
    for name in dir(value):
        try:
            assert hasattr(value, name), name
        except RuntimeError:  # `H` and `mT` of one dimension, `imag` of a real tensor
            assert name in ("H", "mH", "mT", "imag")


def test_warnings_of_changed_sources_can_be_filtered():
    assert issubclass(torch.serialization.SourceChangeWarning, Warning)


def test_former_vmap_is_found_without_an_import():
    assert torch._vmap_internals is importlib.import_module("adjoint._vmap_internals")


def test_no_tf32():
    assert torch.cuda.is_tf32_supported() is False


def test_a_lazy_clone_is_marked_until_it_is_changed():
    source = torch.ones(2, requires_grad=True)
    copy = torch._lazy_clone(source)
    assert torch._C._is_cow_tensor(source)
    assert torch._C._is_cow_tensor(copy)
    copy.add_(1)
    assert source.tolist() == [1, 1]
    assert torch._C._is_cow_tensor(source)
    assert not torch._C._is_cow_tensor(copy)
    assert not torch._C._is_cow_tensor(torch.ones(2))


def test_losses_of_the_c_library_take_reductions_as_numbers():
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0])
    assert torch._C._nn.mse_loss(x, y, 2).item() == 5.0
    assert torch._C._nn.mse_loss(x, y, reduction=0).tolist() == [1.0, 4.0]
    assert torch._C._nn.silu(y).tolist() == [0.0, 0.0]
    assert not hasattr(torch._C._nn, "no_operator")


def test_operators_of_neural_networks_have_private_names():
    x = torch.tensor([-3.0, 2.0])
    assert torch._VF._add_relu(x, 1).tolist() == [0, 3] and torch._add_relu_(x, 1, alpha=2).tolist() == x.tolist() == [
        0,
        4,
    ]
    assert torch.equal(torch._C._nn.gelu(x), torch.nn.functional.gelu(x))
    image, kernel = torch.randn(1, 2, 4, 4), torch.randn(3, 2, 2, 2)
    assert torch.equal(torch._C._nn.thnn_conv2d(image, kernel, (2, 2)), torch.conv2d(image, kernel))
    with pytest.raises(RuntimeError, match="2D stride expected"):
        torch._C._nn.thnn_conv2d(image, kernel, (2, 2), stride=[])
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        torch._C._nn.nothing
    assert [torch.nn.InstanceNorm1d(3)._get_no_batch_dim(), torch.nn.InstanceNorm3d(3)._get_no_batch_dim()] == [2, 4]


def test_switches_of_unused_libraries_are_read_and_set_by_private_names():
    assert torch._C._get_mkldnn_enabled() is torch.backends.mkldnn.enabled is True
    torch._C._set_mkldnn_enabled(False)
    try:
        assert torch._C._get_mkldnn_enabled() is torch.backends.mkldnn.enabled is False
    finally:
        torch._C._set_mkldnn_enabled(True)
    assert torch._C._get_cudnn_benchmark() is torch.backends.cudnn.benchmark


def test_native_attention_equals_the_module():
    torch.manual_seed(0)
    module = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    x, mask = torch.randn(2, 3, 4), torch.tensor([[False, False, True], [False, False, False]])
    parts = module.in_proj_weight, module.in_proj_bias, module.out_proj.weight, module.out_proj.bias
    found = torch._native_multi_head_attention(x, x, x, 4, 2, *parts, mask, mask_type=1)
    for one, other in zip(found, module(x, x, x, key_padding_mask=mask), strict=True):
        torch.testing.assert_close(one, other)
    assert torch._native_multi_head_attention(x, x, x, 4, 2, *parts, need_weights=False)[1] is None
    heads = x.unflatten(-1, (2, 2)).transpose(1, 2)
    assert torch._fused_sdp_choice(heads, heads, heads) == 1 and torch._fused_sdp_choice(x, x, x) == 0


def test_products_with_int8_weights_scale_each_row():
    x, weights = torch.tensor([[1.0, -2.0]]), torch.tensor([[3, 1], [-4, 2]], dtype=torch.int8)
    assert torch._weight_int8pack_mm(x, weights, torch.tensor([0.5, 2.0])).tolist() == [[0.5, -16.0]]
    with pytest.raises(RuntimeError, match="expect B to be int8"):
        torch._weight_int8pack_mm(x, weights.int(), torch.ones(2))


def test_functions_of_lists_refuse_wrong_numbers_of_arguments():
    lists = [torch.ones(2), torch.ones(3)]
    for call in (
        lambda: torch._foreach_abs(lists, lists),
        lambda: torch._foreach_add(lists),
        lambda: torch._foreach_lerp(lists, lists),
        lambda: torch._foreach_addcmul(lists, lists),
        lambda: torch._foreach_copy_(lists, 2),
        lambda: torch._foreach_sqrt([], 2),
    ):
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            call()
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type long int"):
        torch._foreach_clamp_max_([torch.tensor([1, 2])], torch.tensor(1.5))
    assert torch._foreach_lerp(lists, lists, weight=0.5)[1].tolist() == [1.0, 1.0, 1.0]


def test_nodes_show_saved_values_under_the_names_of_pytorch():
    matrix = torch.eye(3).requires_grad_()
    assert torch.linalg.lu_factor_ex(matrix).LU.grad_fn._saved_pivot is True
    node = torch.native_dropout(matrix, 0.5, True)[0].grad_fn
    assert node._saved_result1.dtype == torch.bool
    assert [name for name in dir(node) if name.startswith("_saved_")] == ["_saved_p", "_saved_result1"]
    for method in (torch.Tensor.index_add, torch.Tensor.index_copy):
        for constant in (torch.ones(3, 1), torch.ones(3, 1, requires_grad=True)):
            assert method(matrix, 1, torch.tensor([0]), constant).grad_fn._saved_source_dim == 2


def test_bits_of_conjugation_and_negation_are_set():
    tensor = torch.tensor([1 + 2j])
    torch._C._set_conj(tensor, True)
    torch._C._set_conj(tensor, True)
    assert tensor.is_conj() and tensor.tolist() == [1 - 2j]
    torch._C._set_neg(tensor, True)
    torch._C._set_conj(tensor, False)
    assert tensor.is_neg() and tensor.tolist() == [-1 - 2j]
