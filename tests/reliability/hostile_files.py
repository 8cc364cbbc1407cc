"""Hostile and damaged checkpoints: for any content, `load` returns data or raises a clear error, and runs no code."""

from __future__ import annotations

import importlib
import io
import pickle
import random
import resource
import signal
import struct
import sys
import warnings
import zipfile
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy

from . import Outcome, experiment
from ._children import in_child
from ._library import NAME
from ._library import library as torch

CLEAR = (pickle.UnpicklingError, RuntimeError, EOFError)
SECONDS = 10
"""The time that one small file may take."""

MEMORY = 1 << 30
"""The bytes of address space that a process may take to read files of at most some hundred kilobytes."""

# ---------------------------------------------------------------------------------------------------------------------
# Pickles, written instruction by instruction

CALLABLES = """
    os.system posix.system nt.system subprocess.Popen subprocess.check_output builtins.eval builtins.exec builtins.compile
    builtins.__import__ builtins.getattr builtins.setattr builtins.open builtins.input builtins.breakpoint builtins.vars
    builtins.map builtins.type builtins.object builtins.memoryview builtins.print functools.partial functools.reduce
    operator.attrgetter operator.methodcaller operator.call types.FunctionType types.CodeType importlib.import_module
    importlib.machinery.SourceFileLoader runpy.run_path runpy.run_module pickle.loads pickle.load marshal.loads
    shutil.rmtree pathlib.Path tempfile.mkdtemp ctypes.CDLL code.interact pty.spawn timeit.timeit pdb.run cProfile.run
    socket.socket webbrowser.open copyreg._reconstructor copyreg.add_extension collections.namedtuple sys.exit os._exit
    numpy.load numpy.fromfile numpy.memmap numpy.frompyfunc numpy.testing._private.utils.runstring numpy.core.multiarray.fromfile
    torch.load torch.save torch.hub.load torch.jit.load torch.nn.Linear torch.nn.modules.linear.Linear torch.from_file
    torch.storage._load_from_bytes torch.tensor torch.full torch.zeros torch.serialization.load torch.optim.adam.Adam
    torch._utils._rebuild_wrapper_subclass torch.utils.data._utils.collate.default_collate adjoint.load adjoint.zeros
    adjoint.serialization.add_safe_globals torch.serialization.add_safe_globals torch.Tensor.__init__ numpy.ndarray.tofile
""".split()

START = b"\x80\x02"


def data(value: object) -> bytes:
    """Return the instructions for a plain value."""
    return pickle.dumps(value, 2)[2:-1]


def named(name: str, way: str = "line") -> bytes:
    """Return the instructions that look up a name."""
    module, _, attribute = name.rpartition(".")
    if way == "stack":
        return data(module) + data(attribute) + b"\x93"
    return f"c{module}\n{attribute}\n".encode()


def calls(name: str) -> Iterator[bytes]:
    """Yield pickles that call or instantiate the object of this name, or pass it to another callable that does."""
    module, _, attribute = name.rpartition(".")
    argument = data("echo hostile > /tmp/hostile")
    yield START + named(name) + b"(" + argument + b"tR."
    yield b"\x80\x04" + named(name, "stack") + argument + b"\x85R."
    yield START + named(name) + argument + b"\x85\x81."
    yield b"\x80\x04" + named(name) + b")}" + data("a") + argument + b"s\x92."
    yield START + b"(" + argument + f"i{module}\n{attribute}\n.".encode()
    yield START + b"(" + named(name) + argument + b"o."
    yield START + named(name) + data({"__class__": 1}) + b"b."
    yield START + named("collections.OrderedDict") + b")R" + data("__reduce__") + named(name) + b"s" + argument + b"b."
    yield START + named("collections.defaultdict") + named(name) + b"\x85R" + data(1) + b"h\x00s."
    yield (
        START
        + named("torch._tensor._rebuild_from_type_v2")
        + b"("
        + named(name)
        + named("torch.Tensor")
        + argument
        + b"NtR."
    )
    yield START + named("torch._utils._rebuild_parameter") + b"(" + named(name) + data(True) + b"NtR."
    yield START + b"(" + data("storage") + named(name) + data("0") + data("cpu") + data(4) + b"tQ."
    yield START + named("torch.Size") + b"(" + named(name) + b"ltR."


def tensor_pickle(
    storage: str = "torch.FloatStorage", key: Any = "0", location: Any = "cpu", count: Any = 4, offset: Any = 0,
    size: Any = (2, 2), stride: Any = (2, 1), function: str = "torch._utils._rebuild_tensor_v2", tag: Any = "storage",
    requires_grad: Any = False, more: bytes = b"", view: bytes = b"",
) -> bytes:  # fmt: skip
    """Return the pickle of a tensor with arbitrary properties."""
    stored = b"(" + data(tag) + named(storage) + data(key) + data(location) + data(count) + view + b"tQ"
    rest = data(offset) + data(size) + data(stride) + data(requires_grad) + named("collections.OrderedDict") + b")R"
    return START + named(function) + b"(" + stored + rest + more + b"tR."


HUGE = [-1, -(2**63), 2**31, 2**32 - 1, 2**61, 2**62, 2**63 - 1, 2**63, 2**64, 2**70, 10**30, 256**3000]
WRONG = [None, True, 1.5, float("nan"), "1", b"1", [1], {}, (), ((1,),), [[]], 3, -3]


def lies() -> Iterator[bytes]:
    """Yield pickles of tensors with wrong sizes, strides, offsets, counts, names and types."""
    for value in [*HUGE, *WRONG]:
        yield tensor_pickle(offset=value)
        yield tensor_pickle(count=value)
        yield tensor_pickle(size=(value, 1))
        yield tensor_pickle(size=(value, value), stride=(0, 0))
        yield tensor_pickle(size=(0, value, value), stride=(value, 1, 1))
        yield tensor_pickle(stride=(value, 1))
        yield tensor_pickle(size=value)
        yield tensor_pickle(stride=value)
        yield tensor_pickle(key=value)
        yield tensor_pickle(location=value)
        yield tensor_pickle(tag=value)
        yield tensor_pickle(requires_grad=value)
        yield tensor_pickle(more=data(value))
        meta = named("torch._utils._rebuild_meta_tensor_no_storage") + b"("
        yield START + meta + named("torch.float32") + data((value,)) + data((1,)) + data(False) + b"tR."
        yield START + meta + named("torch.float32") + data((value, value)) + data((value, 0)) + data(value) + b"tR."
        yield START + meta + data(value) + data((2,)) + data((1,)) + data(False) + b"tR."
        yield START + named("torch.Size") + data(value) + b"\x85R."
        yield START + named("torch.device") + data(value) + b"\x85R."
        yield START + named("builtins.bytearray") + data(value) + b"\x85R."
        yield START + named("builtins.complex") + data(value) + data(value) + b"\x86R."
        yield START + named("collections.Counter") + data(value) + b"\x85R."
        yield START + named("torch.serialization._get_layout") + data(value) + b"\x85R."
        yield START + named("builtins.range") + data(value) + data(value) + b"\x86R."
        yield START + named("numpy.dtype") + data(value) + b"\x85R."
        array = (
            named("numpy.core.multiarray._reconstruct") + named("numpy.ndarray") + data((0,)) + data(b"b") + b"\x87R"
        )
        kind = named("numpy.dtype") + data("f8") + b"\x85R"
        yield START + array + b"(" + data(1) + data((value,)) + kind + data(False) + data(b"12345678") + b"tb."
        yield START + array + data(value) + b"b."
    for kind in (
        "torch.float32",
        "torch.Tensor",
        "torch.DoubleStorage",
        "torch.BoolStorage",
        "torch.storage.UntypedStorage",
    ):
        yield tensor_pickle(storage=kind)
        yield tensor_pickle(storage=kind, function="torch._utils._rebuild_tensor")
        yield tensor_pickle(storage=kind, function="torch._utils._rebuild_tensor_v3", more=named("torch.float64"))
    yield tensor_pickle(size=(1,) * 65, stride=(1,) * 65)
    yield tensor_pickle(size=(1,) * 100_000, stride=(1,) * 100_000)
    yield tensor_pickle(size=(0, 1) * 40, stride=(1, 1) * 40)
    yield tensor_pickle(key="../version")
    yield tensor_pickle(key="0" * 100_000)


def bombs() -> Iterator[bytes]:
    """Yield small pickles that would take much memory, time or stack."""
    doubled = b")q\x00" + b"h\x00h\x00\x86q\x00" * 60
    deep = b")" + b"\x85" * 100_000
    for key in (doubled, deep, b")" + b"\x85" * 150):
        yield START + b"}" + key + b"Ns."
        yield START + b"}(" + key + b"Nu."
        yield b"\x80\x04\x8f(" + key + b"\x90."
        yield b"\x80\x04(" + key + b"\x91."
        for made in ("builtins.set", "builtins.frozenset"):
            yield START + named(made) + b"](" + key + b"e\x85R."
        yield START + named("collections.OrderedDict") + b"](" + key + b"N\x86e\x85R."
        yield START + named("collections.Counter") + b"}" + key + b"K\x01s\x85R."
        yield START + key + b"."
        yield START + key + b")R."
        yield START + key + b")\x81."
        yield START + key + b"Q."
        yield START + b"(" + key + b"NNNNtQ."
        yield START + named("torch.Tensor") + key + b"R."
        yield START + named("torch.Size") + key + b"\x85R."
        yield START + key + key + b"\x93."
        yield START + named("collections.OrderedDict") + b")R" + key + b"b."
        yield START + named("builtins.slice") + key + b"NN\x87R."
        yield START + b"}" + named("builtins.slice") + key + b"NN\x87RNs."
        yield tensor_pickle(more=key)
        yield START + named("torch.device") + key + b"\x85R."
    for length in (b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff"):
        for code in b"XTB\x8brj":
            yield START + bytes([code]) + length + b"ab."
    for code in b"\x8d\x8e\x96\x95":
        yield b"\x80\x05" + bytes([code]) + b"\xff\xff\xff\xff\xff\xff\xff\x7fab."
        yield b"\x80\x05" + bytes([code]) + b"\x00\x00\x00\x00\x01\x00\x00\x00ab."
    content = b"X" + struct.pack("<I", 50_000) + b"a" * 50_000 + b"q\x00"
    yield START + content + b"0](" + (named("_codecs.encode") + b"h\x00" + data("latin1") + b"\x86R") * 2000 + b"e."
    yield START + content + b"0](" + (named("builtins.bytearray") + b"h\x00\x85R") * 3000 + b"e."
    items = b"](" + b"".join(b"M" + struct.pack("<H", i) for i in range(20_000)) + b"eq\x00"
    for made in ("builtins.set", "builtins.frozenset", "collections.deque", "torch.Size"):
        yield START + items + b"0](" + (named(made) + b"h\x00\x85R") * 3000 + b"e."
    yield START + b"]" * 100_000 + b"a" * 99_999 + b"."
    yield START + b"}" + (b"K\x01}" * 50_000) + b"s" * 50_000 + b"."
    yield START + b"]q\x00" + b"(h\x00h\x00e" * 10_000 + b"."
    yield START + b"}q\x00h\x00h\x00s."
    yield START + b"(" * 100_000 + b"t."
    yield START + b"N" * 100_000 + b"."
    yield START + b"I" + b"9" * 100_000 + b"\n."
    yield START + b"L" + b"9" * 100_000 + b"L\n."
    yield START + b"\x8b" + struct.pack("<I", 100_000) + b"\x7f" * 100_000 + b"."
    yield START + b"c" + b"a" * 100_000 + b"\nb\n."
    yield START + b"c" + b"a." * 50_000 + b"\nb\n."


# ---------------------------------------------------------------------------------------------------------------------
# Archives

FOUR = struct.pack("<4f", 1, 2, 3, 4)
MAGIC = 0x1950A86A20F9469CFC6C


def archive(
    pickled: bytes, storages: dict[str, bytes] | None = None, compression: int = 0, **more: bytes | str
) -> bytes:
    """Return a zip archive with these records."""
    file = io.BytesIO()
    records = {"data.pkl": pickled, "byteorder": "little", "version": "3\n", **more}
    records |= {f"data/{key}": content for key, content in (storages or {"0": FOUR}).items()}
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", compression) as out:
        warnings.simplefilter("ignore")
        for name, content in records.items():
            if content is not None:
                out.writestr(f"archive/{name}", content)
    return file.getvalue()


def legacy(pickled: bytes, rest: bytes = pickle.dumps(["0"], 2) + struct.pack("<q", 4) + FOUR) -> bytes:
    """Return a file of the format before archives."""
    head = [MAGIC, 1001, {"little_endian": True, "protocol_version": 1001, "type_sizes": {}}]
    return b"".join(pickle.dumps(each, 2) for each in head) + pickled + rest


def archives() -> Iterator[bytes]:
    """Yield archives with wrong records, headers or directories."""
    good = archive(tensor_pickle())
    with zipfile.ZipFile(io.BytesIO(good)) as opened:
        infos, directory = opened.infolist(), opened.start_dir
    end = good.rindex(b"PK\x05\x06")
    for position in [*range(directory, len(good)), *(info.header_offset + i for info in infos for i in range(30))]:
        for value in (0x00, 0x01, 0xFF):
            yield good[:position] + bytes([value]) + good[position + 1 :]
    for cut in range(0, len(good), 7):
        yield good[:cut]
        yield good[cut:]
    for width, value in ((2, 0xFFFF), (4, 0xFFFFFFFF), (4, 0x7FFFFFFF), (4, 0x80000000)):
        for position in range(end, len(good) - width + 1):
            yield good[:position] + value.to_bytes(width, "little") + good[position + width :]
    yield good[:end] * 3 + good[end:]
    yield good + bytes(70_000)
    yield bytes(1000) + good
    yield good + good
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        yield archive(tensor_pickle(), {"0": bytes(10**6)}, compression)
    for order in ("big", "middle", "", b"\xff" * 9):
        yield archive(tensor_pickle(), byteorder=order)
    for version in ("0", "10", "11", "-1", "9" * 10_000, "", b"\xff", None):
        yield archive(tensor_pickle(), version=version)
    yield archive(tensor_pickle(), **{"constants.pkl": b""})
    yield archive(tensor_pickle(), **{"data.pkl": None})  # type: ignore[dict-item]
    yield archive(tensor_pickle(), {str(i): b"" for i in range(5000)})
    for name in (
        "version",
        "archive/../version",
        "/archive/version",
        "archive\\version",
        "archive//version",
        "é/version",
    ):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as out:
            out.writestr(name, b"3")
            out.writestr("archive/data.pkl", tensor_pickle())
        yield file.getvalue()
    file = io.BytesIO()
    zipfile.ZipFile(file, "w").close()
    yield file.getvalue()


def legacies() -> Iterator[bytes]:
    """Yield files of the older format with wrong parts."""
    named_twice = data("N") and tensor_pickle(view=b"N")
    good = legacy(named_twice)
    yield from (good[:cut] for cut in range(0, len(good), 5))
    for value in [*HUGE, *WRONG]:
        plain = pickle.dumps(value, 2)
        yield plain
        yield pickle.dumps(MAGIC, 2) + plain
        yield pickle.dumps(MAGIC, 2) + pickle.dumps(1001, 2) + plain + named_twice
        yield legacy(named_twice, plain)
        yield legacy(tensor_pickle(view=data(value)))
        yield legacy(tensor_pickle(view=data(("1", value, 2))))
        yield legacy(tensor_pickle(view=data(("1", 1, value))))
        yield legacy(tensor_pickle(count=value, view=b"N"))
    for count in (0, 3, 5, -1, 2**40, -(2**63)):
        yield legacy(named_twice, pickle.dumps(["0"], 2) + struct.pack("<q", count) + FOUR)
    yield legacy(named_twice, pickle.dumps(["0", "0"], 2) + (struct.pack("<q", 4) + FOUR) * 2)


def catalogue() -> Iterator[bytes]:
    """Return every handwritten hostile file."""
    pickles = [pickled for name in CALLABLES for pickled in calls(name)]
    for pickled in [*pickles, *lies(), *bombs()]:
        yield archive(pickled)
        yield legacy(pickled)
    yield from archives()
    yield from legacies()


# ---------------------------------------------------------------------------------------------------------------------
# Random changes to good files


@cache
def good_files() -> list[bytes]:
    """Return checkpoints of all kinds of data, in both formats and all protocols."""
    grid = torch.arange(24.0).reshape(4, 6)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    values = [
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3},
        [
            grid,
            grid[1],
            grid.t(),
            grid[:, ::2],
            torch.nn.Parameter(grid),
            torch.tensor([1 + 2j]).conj(),
            grid.to(torch.uint16),
        ],
        [
            torch.empty(2, 3, device="meta"),
            torch.tensor([True]),
            grid.to(torch.bfloat16),
            torch.Size([2]),
            torch.float32,
        ],
        [
            1,
            2**70,
            1.5,
            1j,
            None,
            True,
            "text",
            b"bytes",
            bytearray(b"b"),
            {1, 2},
            frozenset([3]),
            (1, (2,)),
            slice(1, 2),
        ],
        [
            numpy.arange(3),
            numpy.float64(2),
            OrderedDict(a=1),
            Counter("aab"),
            defaultdict(list, {1: [2]}),
            deque([1], 3),
        ],
    ]
    files = []
    for number, value in enumerate(values * 2):
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zipped = number < len(values)
            torch.save(value, file, pickle_protocol=1 + (number % 5), _use_new_zipfile_serialization=zipped)
        files.append(file.getvalue())
    return files


def changed(content: bytes, chance: random.Random) -> bytes:
    """Return `content` with some random changes."""
    file = bytearray(content)
    for _ in range(chance.choice([1, 1, 1, 2, 4, 16])):
        if not file:
            break
        at, way = chance.randrange(len(file)), chance.randrange(9)
        length = chance.choice([1, 1, 2, 4, 8, chance.randrange(1, 200)])
        if way <= 2:
            file[at] = chance.randrange(256)
        elif way == 3:
            file[at] ^= 1 << chance.randrange(8)
        elif way == 4:
            del file[at : at + length]
        elif way == 5:
            file[at:at] = file[at : at + length]
        elif way == 6:
            file[at:at] = chance.randbytes(length)
        elif way == 7:
            other = chance.randrange(len(file))
            file[at : at + length] = file[other : other + length]
        else:
            del file[at:]
    return bytes(file)


def changed_inside(content: bytes, chance: random.Random) -> bytes:
    """Return an archive with random changes in one record and correct headers."""
    if not content.startswith(b"PK"):
        return changed(content, chance)
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w") as new, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = old.namelist()
        victim = chance.choice([next(name for name in names if name.endswith("data.pkl"))] * 4 + names)
        for name in names:
            record = old.read(name)
            new.writestr(name, changed(record, chance) if name == victim else record)
    return file.getvalue()


# ---------------------------------------------------------------------------------------------------------------------
# Reading them


def outcome_of(content: bytes, weights_only: bool, events: list[str]) -> str | None:
    """Load a file, read all its contents, and return a description of the failure, or None."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    events.clear()
    try:
        more = {"weights_only": True} if weights_only or NAME != "adjoint" else {"pickle_module": pickle}
        value = torch.load(io.BytesIO(content), map_location="cpu", **more)
        signal.setitimer(signal.ITIMER_REAL, 0)
        touch(value)
    except CLEAR as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        text = str(error)
        if not text or isinstance(error, RecursionError) or len(text) > 200_000:
            return f"an unclear {type(error).__name__}: {text[:60]}"
    except ValueError as error:  # both libraries raise this error for an unknown byte order
        signal.setitimer(signal.ITIMER_REAL, 0)
        if not str(error).startswith("Unknown endianness type"):
            return f"ValueError: {str(error)[:100]}"
    except BaseException as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        return f"{type(error).__name__}: {str(error)[:100]}"
    return f"the file did {events[0]}" if events else None


def touch(value: object) -> None:
    """Read every element of every tensor in the first levels of a list or dictionary."""
    level = [value]
    for _ in range(4):
        following: list[Any] = []
        for each in level[:1000]:
            if isinstance(each, torch.Tensor):
                if each.device.type == "cpu" and each.numel() < 10**6:
                    each.flatten().tolist()
            elif isinstance(each, dict):
                following += each.values()
            elif isinstance(each, (list, tuple, deque)):
                following += each
        level = following


def results(files: Callable[[], Iterator[bytes]], start: int) -> Iterator[str | None]:
    """Yield the failure of each file from number `start` on, in a process with little memory and an audit hook."""
    warnings.simplefilter("ignore")
    if NAME == "adjoint":
        importlib.import_module("adjoint.operators").load_all()
        importlib.import_module(
            "adjoint.serialization.options"
        )  # `load` needs the options for files without the byte order
    for content in good_files():  # import the modules that `load` imports
        with suppress(AttributeError):  # PyTorch cannot read its own older format with untyped storages
            touch(torch.load(io.BytesIO(content), pickle_module=pickle))
    events: list[str] = []
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + MEMORY,) * 2)
    signal.signal(signal.SIGALRM, _too_long)
    harmless = ("object.", "array.", "marshal", "cpython.run", "gc.", "sys._getframe", "builtins.id", "code.__new__")
    harmless += ("ctypes.cdata",)  # NumPy reads the address of an array's elements
    torch.manual_seed(0)
    auditing = [True]
    sys.addaudithook(
        lambda event, args: auditing and not event.startswith(harmless) and events.append(f"{event} {args!r}"[:80])
    )
    for number, content in enumerate(files()):
        if number >= start:
            yield outcome_of(content, bool(number % 2), events)


def _too_long(*_: object) -> None:
    raise TimeoutError(f"longer than {SECONDS} seconds")


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def read_all(files: Callable[[], Iterator[bytes]]) -> Outcome:
    """Read each file. A file that ends its process counts as one failure. Another process continues with the next file."""
    outcome, last = Outcome(), 0
    while True:
        found, end = in_child(lambda: results(files, outcome.tried), patience=60)
        for failure in found:
            outcome.note(failure)
        if end is None:
            return outcome
        if not found and outcome.tried == last:
            raise RuntimeError(f"no file can be read: {end}")
        outcome.note(end)
        last = outcome.tried


@experiment("hostile-files", tries=6000, short=250)
def hostile_files(count: int) -> Outcome:
    """Handwritten hostile files: calls, imports, bombs, wrong sizes of storages, broken archives. All errors are clear."""
    files = list(catalogue())
    chosen = random.Random(0).sample(files, min(count, len(files)))
    return read_all(lambda: iter(chosen))


@experiment("changed-files", tries=40_000, short=500)
def changed_files(count: int) -> Outcome:
    """Random changes to good files: each changed file gives data or a clear error."""

    def files() -> Iterator[bytes]:
        chance = random.Random(count)
        for _ in range(count):
            content = chance.choice(good_files())
            yield (changed if chance.random() < 0.5 else changed_inside)(content, chance)

    return read_all(files)
