"""The settings of `save` and `load` in `torch.utils.serialization.config`."""

import io
import zipfile

import pytest

import adjoint as torch
from adjoint import serialization
from adjoint.utils.serialization import config


def test_settings_are_those_that_the_functions_of_serialization_change():
    assert config.save.compute_crc32 is True
    serialization.set_crc32_options(False)
    assert config.save.compute_crc32 is False
    config.save.compute_crc32 = True
    assert serialization.get_crc32_options() is True
    serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
    assert config.load.endianness is serialization.LoadEndianness.BIG
    serialization.set_default_load_endianness(None)


def test_a_patch_ends_with_its_block_also_after_an_error():
    with config.patch({"load.mmap": True, "save.storage_alignment": 1}):
        assert (config.load.mmap, config.save.storage_alignment) == (True, 1)
    with pytest.raises(KeyError), config.patch("load.mmap", True):
        {}["missing"]
    assert (config.load.mmap, config.save.storage_alignment) == (False, 64)


def test_unknown_settings_are_refused():
    with pytest.raises(AttributeError, match=r"config\.save\.other does not exist"):
        config.save.other = 1
    with pytest.raises(AttributeError, match=r"config\.load\.other does not exist"):
        config.load.other
    with pytest.raises(AttributeError, match=r"config\.other does not exist"), config.patch("other", 1):
        pass


@pytest.mark.parametrize("alignment", [1, 64, 4096])
def test_records_lie_at_multiples_of_the_alignment(alignment):
    file = io.BytesIO()
    with config.patch("save.storage_alignment", alignment):
        torch.save([torch.ones(3), torch.zeros(5)], file)
    content = file.getvalue()
    for record in zipfile.ZipFile(file).infolist():
        start = record.header_offset
        lengths = (int.from_bytes(content[start + at : start + at + 2], "little") for at in (26, 28))
        assert (start + 30 + sum(lengths)) % alignment == 0
    assert torch.load(io.BytesIO(content))[0].tolist() == [1, 1, 1]


def test_load_maps_files_by_default_if_the_setting_says_so(tmp_path):
    torch.save(torch.ones(3), tmp_path / "ones.pt")
    with config.patch("load.mmap", True):
        assert torch.load(tmp_path / "ones.pt").tolist() == [1, 1, 1]
        with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
            torch.load(io.BytesIO((tmp_path / "ones.pt").read_bytes()))
