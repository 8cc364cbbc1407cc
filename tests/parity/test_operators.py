"""Every operator against PyTorch's own sample inputs, aspect by aspect."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's table of operators imports it")

from . import samples
from .aspects import aspects
from .exceptions import unexcused


def cases() -> list[tuple[str, str]]:
    return [(name, aspect) for name, op in samples.operators().items() for aspect in aspects(op)]


@pytest.mark.parametrize(("name", "aspect"), cases(), ids=lambda part: part)
def test_operator_agrees_with_pytorch(name: str, aspect: str) -> None:
    outcome = aspects(samples.operators()[name])[aspect]()
    failures = unexcused(f"{name} {aspect}", outcome.failures)
    assert not failures, f"{len(failures)} of {outcome.total} samples differ:\n" + "\n".join(failures[:5])


def test_every_operator_is_covered() -> None:
    listed = {op.name for op in samples.operators().values()}
    assert not [name for name in samples.NAMES if name not in listed]
