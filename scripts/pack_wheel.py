"""Pack a wheel again when it has been built: `deflate` finds shorter forms than Python's `zlib`, in the same format.

Scripts and styles of the page lose what only their readers need: indentation and comments. They stand in the page itself. Modules
lose the comments that only tools of developers read, such as `# fmt: skip`, and the lines drawn above and behind titles.

With `ADJOINT_SMALLEST_WHEEL=1` in the environment, as for a release, `zopfli` looks for still shorter forms, for half a minute.

A build hook of hatchling; `pyproject.toml` names it.
"""

import base64
import hashlib
import os
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import deflate
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BEST = 12
"""The level of compression; it takes a second."""

# The records of a zip file, in the words of its specification (PKWARE's APPNOTE.TXT, 4.3).
LOCAL_HEADER = struct.Struct("<4s5H3L2H")
CENTRAL_HEADER = struct.Struct("<4s6H3L5H2L")
END = struct.Struct("<4s4H2LH")
VERSION, DEFLATED, UNIX = 20, 8, 3


FOR_TOOLS = re.compile(
    r"(?:[ \t]+# (?:fmt: skip|type: ignore(?:\[[^\]\n]*\])?|noqa(?:: ?[A-Z]+\d+(?:, ?[A-Z]+\d+)*)?|pragma: no cover))+$",
    re.MULTILINE,
)


RULES = re.compile(r"^# ?-{20,}\n|(?<=\w) -{10,}$", re.MULTILINE)


WHOLE_COMMENT = re.compile(r"^[ \t]*(/\*(?s:.*?)\*/|//.*)[ \t]*$", re.MULTILINE)


LAST_COMMENT = re.compile(r"""(?<=[;{},(]) // [^'"`/\n]*$""", re.MULTILINE)


def bare(text: str) -> str:
    """A script or a style without indentation, empty lines and comments; none has text of several lines."""
    lines = LAST_COMMENT.sub("", WHOLE_COMMENT.sub("", text)).splitlines()
    return "".join([f"{line.strip()}\n" for line in lines if line.strip()])


PAGE, PART = "adjoint/inspect/page/", re.compile(r"\{\{(\w+\.\w+)\}\}")


def contents(archive: zipfile.ZipFile) -> dict[str, bytes]:
    """What the wheel is to hold: its RECORD has the digests of what has been changed. The page is one file."""
    found = {name: archive.read(name) for name in archive.namelist()}
    parts = {name.removeprefix(PAGE): found.pop(name).decode("utf-8") for name in list(found) if name.startswith(PAGE)}
    whole = f"{PAGE}template.html"
    found[whole] = PART.sub(lambda place: bare(parts[place[1]]), parts["template.html"]).encode("utf-8")
    changed = {whole}
    for name in found:
        if name.endswith(".py"):
            read = found[name].decode("utf-8")
            bare_of_tools = RULES.sub("", FOR_TOOLS.sub("", read))
            if bare_of_tools != read:
                found[name] = bare_of_tools.encode("utf-8")
                changed.add(name)
    (record,) = (name for name in found if name.endswith(".dist-info/RECORD"))
    rows = []
    for row in found[record].decode("utf-8").splitlines():
        name = row.split(",")[0]
        if name in changed:
            digest = base64.urlsafe_b64encode(hashlib.sha256(found[name]).digest()).rstrip(b"=").decode("ascii")
            row = f"{name},sha256={digest},{len(found[name])}"
        if name in found:
            rows.append(f"{row}\n")
    return {**found, record: "".join(rows).encode("utf-8")}


def compressed(content: bytes) -> bytes:
    """The shortest form in the format of deflate that is to be had."""
    shortest: bytes = deflate.deflate_compress(content, BEST)
    if os.environ.get("ADJOINT_SMALLEST_WHEEL") == "1" and content:
        from zopfli.zlib import compress

        shortest = min(shortest, compress(content)[2:-4], key=len)  # without the header and the sum of zlib's format
    return shortest


def pack(path: Path) -> None:
    """Write a zip file of small files anew: the same files with the same names, times and rights."""
    written, directory, count = bytearray(), bytearray(), 0
    with zipfile.ZipFile(path) as archive:
        held = contents(archive)
        for info in archive.infolist():
            if (content := held.get(info.filename)) is None:
                continue
            packed, name = compressed(content), info.filename.encode("ascii")
            year, month, day, hour, minute, second = info.date_time
            time, date = hour << 11 | minute << 5 | second // 2, (year - 1980) << 9 | month << 5 | day
            described = DEFLATED, time, date, zlib.crc32(content), len(packed), len(content), len(name), 0
            directory += CENTRAL_HEADER.pack(
                b"PK\1\2", UNIX << 8 | VERSION, VERSION, 0, *described, 0, 0, 0, info.external_attr, len(written)
            )  # fmt: skip
            directory += name
            written += LOCAL_HEADER.pack(b"PK\3\4", VERSION, 0, *described) + name + packed
            count += 1
    end = END.pack(b"PK\5\6", 0, 0, count, count, len(directory), len(written), 0)
    path.write_bytes(written + directory + end)


class PackWheel(BuildHookInterface[Any]):
    """The hook."""

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Pack a wheel; one of an editable installation only says where the package is."""
        if version == "standard":
            pack(Path(artifact_path))
