"""Unpicklers. One creates only data. The other reads files that the caller trusts, with `weights_only=False`.

Python's own unpickler calls any function that a file names. `Unpickler` looks up each name in `Allowed`, and refuses
the instructions that plain data does not need. It trusts a length only after it has read that many bytes. A short
pickle cannot use much memory, time or stack. Copies count against the length of the file, and keys are checked before
Python hashes them.
"""

import pickle
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any

from .._runtime.places import OWN, THEIRS
from .allowed import Allowed, qualified, weights_globals
from .limits import check_keys, shown
from .storages import ErrorOfCaller

__all__ = ["NamedUnpickler", "TrustedUnpickler", "Unpickler"]

_BLOCKED_MODULES = frozenset(["sys", "os", "nt", "posix"])
_DICTS = (dict, OrderedDict, Counter, defaultdict)
_LISTS = (list, deque)
_MARK: Any = object()
_LONGEST_NAME = 200
_COPIED = (str, bytes, bytearray, tuple, list, dict)


class Unpickler:
    """Reads one pickle with a protocol from 1 to 5.

    Args:
        file: the file, positioned at the start of the pickle. It may be any object with `read` and `readline`.
        allowed: the objects that the pickle may name.
        users: the allowed objects that the user has added. Their instances may be created and filled without
            restrictions.
        persistent_load: a function that returns the storage with a persistent id.
        encoding: the encoding of byte strings that Python 2 wrote. `'bytes'` returns them as bytes.
        length: the maximum number of bytes in `file`. It limits all lengths in the pickle.
    """

    def __init__(
        self,
        file: IO[bytes],
        allowed: Mapping[str, Allowed],
        users: Mapping[str, Allowed],
        persistent_load: Callable[[Any], Any] | None = None,
        encoding: str = "utf-8",
        length: int = 2**63,
    ) -> None:
        self._read = file.read
        self._readline = file.readline
        self._allowed = {**users, **allowed}
        self._by_value = {id(each.value): each for each in self._allowed.values()}
        self._user_types = tuple(each.value for each in users.values() if isinstance(each.value, type))
        self._persistent_load = persistent_load
        self._encoding = encoding
        self._length = length
        self._left_to_copy = max(length, 1000)
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def load(self) -> Any:
        """Return the pickled object.

        Raises:
            pickle.UnpicklingError: if the pickle needs an object that is not allowed, or if it is not a pickle.
            EOFError: if it ends too early.
        """
        try:
            while True:
                code = self._take(1)
                if code == pickle.STOP:
                    return self._pop()
                handler = _HANDLERS.get(code)
                if handler is None:
                    raise pickle.UnpicklingError(f"Unsupported operand {code[0]}")
                handler(self)
        except (pickle.UnpicklingError, EOFError, OSError, MemoryError, RuntimeError, ImportError, ErrorOfCaller):
            raise
        except Exception as error:  # noqa: BLE001
            raise pickle.UnpicklingError(f"the pickle is corrupt: {type(error).__name__}: {error}") from None

    # --- bytes and stack ------------------------------------------------------------------------------------------

    def _take(self, count: int) -> bytes:
        if count > self._length:
            raise EOFError("Ran out of input")
        data = self._read(count)
        if len(data) < count:
            raise EOFError("Ran out of input")
        return data

    def _number(self, layout: str) -> Any:
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def _line(self) -> str:
        line = self._readline()
        if line[-1:] != b"\n":
            raise EOFError("Ran out of input")
        return line[:-1].decode("utf-8")

    def _pop(self) -> Any:
        value = self._stack.pop()
        if value is _MARK:
            raise pickle.UnpicklingError("unexpected MARK found")
        return value

    def _pop_mark(self) -> list[Any]:
        """Pop and return the items above the topmost mark, and the mark."""
        stack = self._stack
        for position in range(len(stack) - 1, -1, -1):
            if stack[position] is _MARK:
                items = stack[position + 1 :]
                del stack[position:]
                return items
        raise pickle.UnpicklingError("could not find MARK")

    def _top(self) -> Any:
        value = self._stack[-1]
        if value is _MARK:
            raise pickle.UnpicklingError("unexpected MARK found")
        return value

    # --- containers -----------------------------------------------------------------------------------------------

    def _append(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) not in _LISTS and not self._has_user_type(target):
            raise pickle.UnpicklingError(f"Can only append to lists, but got {type(target)}")
        target.extend(items)

    def _set_items(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) not in _DICTS and not self._has_user_type(target):
            raise pickle.UnpicklingError(
                f"Can only SETITEM for dict, collections.OrderedDict, collections.Counter, but got {type(target)}"
            )
        if len(items) % 2:
            raise pickle.UnpicklingError("odd number of items for SETITEMS")
        check_keys(items[::2])
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[key] = value

    def _add_items(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) is not set:
            raise pickle.UnpicklingError(f"Can only add to sets, but got {type(target)}")
        check_keys(items)
        target.update(items)

    def _frozenset(self) -> None:
        items = self._pop_mark()
        check_keys(items)
        self._stack.append(frozenset(items))

    def _has_user_type(self, target: object) -> bool:
        return bool(self._user_types) and isinstance(target, self._user_types)

    # --- objects --------------------------------------------------------------------------------------------------

    def _find(self, module: str, name: str) -> None:
        full = qualified(module, name)
        found = self._allowed.get(full)
        if full.partition(".")[0] in _BLOCKED_MODULES:
            raise pickle.UnpicklingError(
                f"Trying to load unsupported GLOBAL {full[:_LONGEST_NAME]} whose module {module[:_LONGEST_NAME]} is blocked."
            )
        if found is None:
            said = full.removeprefix("builtins.")[:_LONGEST_NAME]
            raise pickle.UnpicklingError(
                f"Unsupported global: GLOBAL {said} was not an allowed global by default. Please use "
                f"`torch.serialization.add_safe_globals([{said}])` or the `torch.serialization.safe_globals([{said}])"
                "` context manager to allowlist this global if you trust this class/function."
            )
        self._stack.append(found.value)

    def _reduce(self) -> None:
        args = self._pop()
        function = self._pop()
        allowed = self._by_value.get(id(function))
        if allowed is None or allowed.construct is None:
            raise pickle.UnpicklingError(f"Trying to call reduce for unrecognized function {shown(function)}")
        self._stack.append(allowed.construct(*self._arguments(args)))

    def _new(self, keywords: dict[Any, Any]) -> None:
        args = self._arguments(self._pop())
        kind = self._pop()
        allowed = self._by_value.get(id(kind))
        if allowed is None or allowed.construct is None or not isinstance(kind, type):
            raise pickle.UnpicklingError(f"Trying to create new object for unrecognized class {shown(kind)}")
        if any(kind is each for each in self._user_types):
            self._stack.append(kind.__new__(kind, *args, **keywords))
        else:
            self._stack.append(allowed.construct(*args, **keywords))

    def _new_with_keywords(self) -> None:
        keywords = self._pop()
        if type(keywords) is not dict:
            raise pickle.UnpicklingError(f"keyword arguments must be a dict, but got {type(keywords)}")
        self._new(keywords)

    def _arguments(self, args: Any) -> tuple[Any, ...]:
        if type(args) is not tuple:
            raise pickle.UnpicklingError(f"arguments must be a tuple, but got {type(args)}")
        self._count_copies(args)
        return args

    def _count_copies(self, values: Iterable[Any]) -> None:
        """Count the bytes that a constructor may copy.

        The file contains the bytes of each copied value, unless it refers to one value many times.
        """
        self._left_to_copy -= sum(len(value) for value in values if isinstance(value, _COPIED))
        if self._left_to_copy < 0:
            raise pickle.UnpicklingError("the pickle makes more copies of a value than its size allows")

    def _build(self) -> None:
        state = self._pop()
        target = self._top()
        known = (self._by_value.get(id(kind)) for kind in type(target).__mro__)
        allowed = next((each for each in known if each is not None), None)
        if allowed is None or allowed.set_state is None:
            raise pickle.UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, "
                f"but got {type(target)}"
            )
        self._count_copies([state, *(state if type(state) is tuple else ())])
        allowed.set_state(target, state)

    def _persistent(self) -> None:
        identity = self._pop()
        if self._persistent_load is None or type(identity) is not tuple:
            raise pickle.UnpicklingError(f"persistent_load id must be tuple or int, but got {type(identity)}")
        self._stack.append(self._persistent_load(identity))

    def _stack_global(self) -> None:
        name = self._pop()
        module = self._pop()
        if type(name) is not str or type(module) is not str:
            raise pickle.UnpicklingError("STACK_GLOBAL requires str")
        self._find(module, name)

    # --- numbers and text -----------------------------------------------------------------------------------------

    def _text(self, layout: str) -> str:
        return str(self._take(self._number(layout)), "utf-8", "surrogatepass")

    def _old_text(self, layout: str) -> str | bytes:
        data = self._take(self._number(layout))
        return data if self._encoding == "bytes" else data.decode(self._encoding)

    def _decimal(self) -> int | bool:
        line = self._line()
        return line == "01" if line in ("00", "01") else int(line)

    def _memoize(self, key: int) -> None:
        self._memo[key] = self._top()

    def _protocol(self) -> None:
        protocol = self._number("<B")
        if protocol > pickle.HIGHEST_PROTOCOL:
            raise pickle.UnpicklingError(f"unsupported pickle protocol: {protocol}")


def _push(make: Callable[[Unpickler], Any]) -> Callable[[Unpickler], None]:
    def handler(machine: Unpickler) -> None:
        machine._stack.append(make(machine))

    return handler


def _push_tuple(count: int) -> Callable[[Unpickler], None]:
    def handler(machine: Unpickler) -> None:
        items = [machine._pop() for _ in range(count)]
        machine._stack.append(tuple(reversed(items)))

    return handler


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


_HANDLERS: dict[bytes, Callable[[Unpickler], Any]] = {
    pickle.PROTO: Unpickler._protocol,
    pickle.FRAME: lambda machine: machine._take(8),
    pickle.MARK: _push(lambda machine: _MARK),
    pickle.POP: lambda machine: machine._stack.pop(),
    pickle.POP_MARK: Unpickler._pop_mark,
    # constants and numbers
    pickle.NONE: _push(lambda machine: None),
    pickle.NEWTRUE: _push(lambda machine: True),
    pickle.NEWFALSE: _push(lambda machine: False),
    pickle.INT: _push(Unpickler._decimal),
    pickle.BININT: _push(lambda machine: machine._number("<i")),
    pickle.BININT1: _push(lambda machine: machine._number("<B")),
    pickle.BININT2: _push(lambda machine: machine._number("<H")),
    pickle.LONG: _push(lambda machine: int(machine._line().removesuffix("L"))),
    pickle.LONG1: _push(lambda machine: _signed(machine._take(machine._number("<B")))),
    pickle.LONG4: _push(lambda machine: _signed(machine._take(machine._number("<I")))),
    pickle.BINFLOAT: _push(lambda machine: machine._number(">d")),
    # text and bytes
    pickle.BINUNICODE: _push(lambda machine: machine._text("<I")),
    pickle.SHORT_BINUNICODE: _push(lambda machine: machine._text("<B")),
    pickle.BINUNICODE8: _push(lambda machine: machine._text("<Q")),
    pickle.BINSTRING: _push(lambda machine: machine._old_text("<I")),
    pickle.SHORT_BINSTRING: _push(lambda machine: machine._old_text("<B")),
    pickle.BINBYTES: _push(lambda machine: machine._take(machine._number("<I"))),
    pickle.SHORT_BINBYTES: _push(lambda machine: machine._take(machine._number("<B"))),
    pickle.BINBYTES8: _push(lambda machine: machine._take(machine._number("<Q"))),
    pickle.BYTEARRAY8: _push(lambda machine: bytearray(machine._take(machine._number("<Q")))),
    # containers
    pickle.EMPTY_TUPLE: _push(lambda machine: ()),
    pickle.TUPLE: _push(lambda machine: tuple(machine._pop_mark())),
    pickle.TUPLE1: _push_tuple(1),
    pickle.TUPLE2: _push_tuple(2),
    pickle.TUPLE3: _push_tuple(3),
    pickle.EMPTY_LIST: _push(lambda machine: []),
    pickle.APPEND: lambda machine: machine._append([machine._pop()]),
    pickle.APPENDS: lambda machine: machine._append(machine._pop_mark()),
    pickle.EMPTY_DICT: _push(lambda machine: {}),
    pickle.SETITEM: lambda machine: machine._set_items([machine._pop(), machine._pop()][::-1]),
    pickle.SETITEMS: lambda machine: machine._set_items(machine._pop_mark()),
    pickle.EMPTY_SET: _push(lambda machine: set()),
    pickle.ADDITEMS: lambda machine: machine._add_items(machine._pop_mark()),
    pickle.FROZENSET: Unpickler._frozenset,
    # memo
    pickle.BINGET: _push(lambda machine: machine._memo[machine._number("<B")]),
    pickle.LONG_BINGET: _push(lambda machine: machine._memo[machine._number("<I")]),
    pickle.BINPUT: lambda machine: machine._memoize(machine._number("<B")),
    pickle.LONG_BINPUT: lambda machine: machine._memoize(machine._number("<I")),
    pickle.MEMOIZE: lambda machine: machine._memoize(len(machine._memo)),
    # objects
    pickle.GLOBAL: lambda machine: machine._find(machine._line(), machine._line()),
    pickle.STACK_GLOBAL: Unpickler._stack_global,
    pickle.REDUCE: Unpickler._reduce,
    pickle.NEWOBJ: lambda machine: machine._new({}),
    pickle.NEWOBJ_EX: Unpickler._new_with_keywords,
    pickle.BUILD: Unpickler._build,
    pickle.BINPERSID: Unpickler._persistent,
}


class NamedUnpickler(pickle.Unpickler):
    """Python's unpickler, with PyTorch's names resolved to this package. It calls any function that a pickle names."""

    def find_class(self, module: str, name: str, /) -> Any:
        """Return the class or function of a full name. PyTorch's names lead to this package."""
        package, _, rest = module.partition(".")
        if package != THEIRS:
            return super().find_class(module, name)
        if name.startswith(f"{THEIRS}."):  # PyTorch's names of memory formats
            rest, name = "", name.partition(".")[2]
        try:
            return super().find_class(f"{OWN}.{rest}".rstrip("."), name)
        except (ImportError, AttributeError):
            raise AttributeError(f"the file names {module}.{name}, which adjoint does not have") from None


class TrustedUnpickler(NamedUnpickler):
    """The unpickler of files in which storages are records.

    Whole modules and optimizers that PyTorch has saved become objects of this package.

    Args:
        file: the open file.
        persistent_load: a function that maps the identity of a storage to the storage.
        encoding: the encoding of byte strings that Python 2 wrote.
    """

    def __init__(self, file: IO[bytes], persistent_load: Callable[[Any], Any], encoding: str) -> None:
        super().__init__(file, encoding=encoding)
        self._load = persistent_load

    def persistent_load(self, pid: Any) -> Any:
        """Return the storage with a persistent id. In old files, an id may also contain the class of a module."""
        return pid[1] if pid[0] == "module" else self._load(pid)

    def find_class(self, module: str, name: str, /) -> Any:
        """Return the class or function of a full name. Storages are named by their types."""
        known = weights_globals().get(f"{module}.{name}") if module.partition(".")[0] == THEIRS else None
        return super().find_class(module, name) if known is None else known.value
