"""The generator of all random numbers, which is the Mersenne Twister with exactly PyTorch's state.

Matsumoto and Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed uniform pseudorandom number generator",
1998. NumPy's implementation produces the words. The seeds, the layout of the state and the stored normal number are the
same as in PyTorch.
"""

import operator
import os
from functools import cache
from typing import Any

import numpy
from numpy import ndarray

from ..._runtime.first_use import import_late
from ..._runtime.forks import lock_across_forks
from ..._runtime.platform import ctypes
from ...codegen.acceleration import LOOPS, SHAPES
from ...codegen.plans import compiled
from ..runtime.addresses import address
from ..runtime.costs import PASSES, THREADED

DEFAULT_SEED = 67280421310721
"""The default seed of a generator."""

STATE = numpy.dtype(
    [
        ("seed", "<u8"),
        ("left", "<i4"),  # how many words remain before the next twist, plus one
        ("seeded", "<i4"),
        ("next", "<u8"),  # the index of the next word; 0 before the first twist
        ("words", "<u8", (624,)),
        ("unused", "<f8"),
        ("normal", "<f8"),  # the second number of a Box-Muller pair, not returned yet
        ("also_unused", "<f8"),
        ("has_normal", "<i4"),
        ("padding", "<i4"),
        ("float_normal", "<f4"),  # kept, but no sampler reads it
        ("has_float_normal", "<i4"),
    ]
)
STATE_BYTES = STATE.itemsize

UINT32, UINT64 = numpy.dtype(numpy.uint32), numpy.dtype(numpy.uint64)

TWIST = 624
"""The number of words that one twist of the state produces."""


_WORDS = compiled("create.twister.words", least=THREADED)


class Drawing(compiled):
    """Compiled loops that fill arrays with random numbers.

    Their form takes a dtype and returns the loop for arrays of this dtype. The loop is kept.
    """

    def __init__(self, path: str, *, least: int, cost: int) -> None:
        super().__init__(path, least=least, cost=cost)
        self._loops: dict[Any, Any] = {}

    def fill(self, out: ndarray, stream: "Stream", *numbers: float, first: int = 0) -> Any:
        """Fill a contiguous array from element `first` on. Further arguments are Python's numbers.

        Return the result of the loop, or NotImplemented if NumPy must draw the numbers.
        """
        size = out.size
        if size < self.least and next(self._waiting, 0) and not (LOOPS.every_size and size):
            return NotImplemented
        loop = self._loops.get(out.dtype) if LOOPS._enabled and not SHAPES.only else None
        if loop is None:
            if (loop := LOOPS.run(self.path, out.dtype)) is NotImplemented:
                return NotImplemented
            self._loops[out.dtype] = loop
        state = stream._address or stream.state_address
        if size < PASSES:  # too few to release the interpreter lock
            return loop.quick(out, state, *numbers, first, size)
        return loop.call(address(out), state, *numbers, first, size)


class Stream:
    """A stream of random words, and the lock that a sampler holds while it draws several words.

    Methods that draw words do not acquire the lock. Hold `lock` around them, so that a sample consists of consecutive
    words even if several threads share the stream.
    """

    __slots__ = ("_address", "_engine", "_float_normal", "_seed", "lock", "normal")

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self.lock = lock_across_forks()
        self._engine: Any = None  # created at the first draw, because `import numpy` does not import the generators
        self._address: int | None = None
        self._seed = seed
        self._forget_normals()

    def _forget_normals(self) -> None:
        self.normal: float | None = None
        """The second number of a Box-Muller pair, which the next scalar draw returns."""
        self._float_normal = (0.0, 0)

    # --- seeding --------------------------------------------------------------------------------------------------

    @property
    def initial_seed(self) -> int:
        """The last seed, in [0, 2**64)."""
        return self._seed

    def manual_seed(self, seed: int) -> None:
        """Restart the stream from `seed`. For a negative seed, 2**64 is added. The low 32 bits determine the words."""
        seed = operator.index(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        with self.lock:
            self._seed = seed % 2**64
            self._forget_normals()
            if self._engine is not None:
                self._restart(self._engine)

    def seed(self) -> int:
        """Restart from a seed that the operating system chooses, and return it."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def _start(self) -> Any:
        """Return the source of words, which is created when it is first needed."""
        with self.lock:
            if self._engine is None:
                engine = import_late("numpy.random").MT19937(_zeros())
                self._restart(engine)
                self._engine = engine
        return self._engine

    def _restart(self, engine: Any) -> None:
        import_late("numpy.random").RandomState(engine).seed(self._seed & 0xFFFFFFFF)

    # --- state ----------------------------------------------------------------------------------------------------

    def get_state(self) -> ndarray:
        """Return the whole state as 5056 bytes, a `uint8` array of shape (5056,), with the layout of `torch.get_rng_state()`."""
        record = numpy.zeros(1, STATE)
        with self.lock:
            words, position = self._words()
            if position == TWIST and _is_freshly_seeded(words):
                position = 0
            record["seed"] = self._seed
            record["left"] = TWIST + 1 - position if position else 1
            record["seeded"] = 1
            record["next"] = position
            record["words"] = words
            if self.normal is not None:
                record["normal"] = self.normal
                record["has_normal"] = 1
            record["float_normal"], record["has_float_normal"] = self._float_normal
        return record.view(numpy.uint8)

    def _words(self) -> tuple[ndarray, int]:
        """Return the words of the generator and the position of the next word."""
        engine = self._engine or self._start()
        if not ctypes:
            found = engine.state["state"]
            return found["key"], found["pos"]
        # In a tenth of the time:
        memory = numpy.frombuffer(ctypes.string_at(self.state_address, 4 * (TWIST + 1)), UINT32)
        return memory[:TWIST], int(memory[TWIST])

    def set_state(self, state: ndarray) -> None:
        """Continue from a state that `get_state`, here or in PyTorch, has returned."""
        if state.dtype != numpy.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if not state.flags.c_contiguous:
            raise RuntimeError("RNG state must be contiguous")
        if state.size != STATE_BYTES:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_BYTES} but found the input RNG state size to be "
                f"{state.size}"
            )
        record = numpy.frombuffer(state.tobytes(), STATE)[0]
        position, left = int(record["next"]), int(record["left"])
        consistent = left == 1 if position == 0 else left + position == TWIST + 1
        if not record["seeded"] or position > TWIST or not consistent:
            raise RuntimeError("Invalid mt19937 state")
        with self.lock:
            key = record["words"].astype(numpy.uint32).tolist()  # NumPy reads it number by number: lists are faster
            (self._engine or self._start()).state = {
                "bit_generator": "MT19937",
                "state": {"key": key, "pos": position or TWIST},
            }
            self._seed = int(record["seed"])
            self.normal = float(record["normal"]) if record["has_normal"] else None
            self._float_normal = (float(record["float_normal"]), int(record["has_float_normal"]))

    def clone(self) -> "Stream":
        """Return a separate stream that continues like this one."""
        new = Stream()
        new.set_state(self.get_state())
        return new

    @property
    def state_address(self) -> int:
        """Return the address of the words and of the next position, for compiled code that draws. Hold `lock` while it draws."""
        if self._address is None:
            self._address = (self._engine or self._start()).ctypes.state_address
        return self._address

    # --- drawing --------------------------------------------------------------------------------------------------

    def words32(self, n: int) -> ndarray:
        """Return the next `n` words of 32 bits, as a new `uint32` array."""
        words: ndarray = _WORDS.run(n, self, n, UINT32)
        if words is NotImplemented:
            words = (self._engine or self._start()).random_raw(n).astype(UINT32)
        return words

    def words64(self, n: int) -> ndarray:
        """Return the next `n` words of 64 bits, each made of two words, the high half first, as a new `uint64` array."""
        words: ndarray = _WORDS.run(n, self, n, UINT64)
        if words is NotImplemented:
            halves = (self._engine or self._start()).random_raw(2 * n)
            words = halves[::2] << 32
            words |= halves[1::2]
        return words

    def double(self) -> float:
        """Return the next number in [0, 1) with 53 random bits, which are the low bits of a 64-bit word."""
        word = (self._engine or self._start()).random_raw
        bits: int = (word() << 32 | word()) & 0x1FFFFFFFFFFFFF
        return bits * 2.0**-53

    def doubles(self, n: int) -> list[float]:
        """Return the next `n` numbers of `double` as a list. For a few numbers, a list is faster than an array."""
        words = iter((self._engine or self._start()).random_raw(2 * n).tolist())
        return [(high << 32 & 0x1FFFFFFFFFFFFF | low) * 2.0**-53 for high, low in zip(words, words, strict=True)]


@cache
def _zeros() -> Any:
    """Return a seed that NumPy need not hash, because the source of words replaces it immediately.

    The seed is a list, because NumPy reads it number by number, which takes twenty times as long for an array.
    """
    ISeedSequence: Any = import_late("numpy.random.bit_generator").ISeedSequence

    class Zeros(ISeedSequence):  # type: ignore[misc]
        def generate_state(self, n_words: int, dtype: Any = numpy.uint32) -> Any:
            return [0] * n_words

    return Zeros()


def _is_freshly_seeded(words: ndarray) -> bool:
    """Return whether `words` are the words after seeding (the recurrence of `init_genrand`), which the first twist replaces."""
    first = int(words[0])
    return int(words[1]) == (1812433253 * (first ^ first >> 30) + 1) % 2**32
