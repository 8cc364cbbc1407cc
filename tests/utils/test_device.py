"""`torch.utils._device`: devices as contexts and decorators."""

import adjoint as torch
from adjoint.utils._device import DeviceContext, set_device


def test_functions_and_generators_run_on_a_device():
    @set_device("meta")
    def made():
        return torch.empty(2)

    @set_device("meta")
    def several():
        yield torch.empty(2)
        yield torch.empty(3)

    assert [each.device.type for each in (made(), *several(), torch.empty(1))] == ["meta", "meta", "meta", "cpu"]
    with DeviceContext("meta") as place:
        assert torch.empty(1).device == place
