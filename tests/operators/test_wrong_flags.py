"""Every operator refuses a string in place of a flag or a fraction, even if the kernel does not use the value."""

import pytest

from adjoint.operators import OPERATORS

from .samples import SAMPLES

PLACES = [
    pytest.param(name, place, id=f"{name}-{parameter}")
    for name in SAMPLES
    for place, parameter in OPERATORS[name].typed
    if OPERATORS[name].types[parameter] in ("Bool", "Float")
]


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_a_string_is_no_flag_and_no_fraction(name, place):
    op = OPERATORS[name]
    call = SAMPLES[name][0]
    args, kwargs, _ = call.build(call.complex_numbers == "only")
    parameter = op.names[place]
    for _ in range(2):  # the first call compiles the function
        if place < len(args):
            with pytest.raises(TypeError):
                op.function(*args[:place], "a", *args[place + 1 :], **kwargs)
        with pytest.raises(TypeError):
            op.function(*args[:place], **{**kwargs, parameter: "a"})
