"""Settings that are stored and have no effect."""

import pytest

import adjoint as torch


def test_deterministic_algorithms():
    try:
        assert not torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(True)
        assert torch.are_deterministic_algorithms_enabled() and torch.get_deterministic_debug_mode() == 2
        torch.use_deterministic_algorithms(True, warn_only=True)
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        torch.set_deterministic_debug_mode("error")
        assert torch.get_deterministic_debug_mode() == 2
        with pytest.raises(RuntimeError, match="expected one of `default`, `warn`, `error`, but got never"):
            torch.set_deterministic_debug_mode("never")
        with pytest.raises(TypeError, match="argument 'mode' \\(position 1\\) must be bool, not int"):
            torch.use_deterministic_algorithms(1)
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.get_deterministic_debug_mode() == 0


def test_matmul_precision():
    try:
        torch.set_float32_matmul_precision("high")
        with pytest.warns(UserWarning, match="x is not one of 'highest', 'high', or 'medium'"):
            torch.set_float32_matmul_precision("x")
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_interop_threads():
    torch.set_num_interop_threads(torch.get_num_interop_threads())
    with pytest.raises(RuntimeError, match="set_num_interop_threads expects a positive integer"):
        torch.set_num_interop_threads(0)


def test_warn_always():
    torch.set_warn_always(True)
    assert torch.is_warn_always_enabled()
    torch.set_warn_always(False)
    assert not torch.is_warn_always_enabled()


def test_denormal_numbers_stay():
    assert torch.set_flush_denormal(False) and not torch.set_flush_denormal(True)


def test_names_of_types():
    assert torch.typename(torch.ones(1).long()) == "torch.LongTensor"
    assert torch.typename(torch.float32) == "torch.dtype"
    assert torch.typename(3) == "int"


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = True


@pytest.mark.usefixtures("deterministic")
def test_new_memory_is_filled_under_deterministic_algorithms():
    assert torch.empty(2).isnan().all() and torch.empty_strided((2, 2), (1, 3), dtype=torch.bfloat16).isnan().all()
    assert torch.empty_like(torch.ones(2, dtype=torch.int8)).tolist() == [127, 127]
    assert torch.empty(1, dtype=torch.bool).item() is True
    assert torch.zeros(2).resize_(3).isnan().tolist() == [False, False, True]
    torch.utils.deterministic.fill_uninitialized_memory = False
    assert not torch._C._get_deterministic_fill_uninitialized_memory()
    with pytest.raises(RuntimeError, match="expected a bool, but got int"):
        torch.utils.deterministic.fill_uninitialized_memory = 1


@pytest.mark.usefixtures("deterministic")
def test_results_that_depend_on_the_order_of_writes_are_refused_under_deterministic_algorithms():
    image, places = torch.ones(1, 1, 3, 3), torch.zeros(1, 1, 3, 3, dtype=torch.int64)
    unpool = torch.nn.MaxUnpool2d(2)
    with pytest.raises(RuntimeError, match="max_unpooling2d_forward_out does not have a deterministic implementation"):
        unpool(image, places)
    with pytest.raises(RuntimeError, match="put_ does not have"):
        torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
    assert torch.zeros(3).put_(torch.tensor([0, 0]), torch.ones(2), accumulate=True).tolist() == [2.0, 0.0, 0.0]
    torch.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match="max_unpooling2d_forward_out"):
        unpool(image, places)
    with pytest.raises(TypeError, match="'warn_only' must be bool, not int"):
        torch.use_deterministic_algorithms(True, warn_only=1)
