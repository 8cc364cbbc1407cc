"""Recorded kernels in eager calls: one built-in function makes all launches of a kernel, without Python between them.

A kernel that is `replayed`, or whose plan is `recordable`, is recorded after `CALLS` calls with one signature, if it does little
work (see `codegen.recording`). The built-in function then makes the launches, with the bits of the kernel. If a condition on
elements fails, the kernel itself runs, and raises the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy import generic, ndarray

from ..._runtime.forks import compile_source
from ...kernels.runtime import parallel
from ...kernels.runtime.addresses import AFTER_HEAD
from ...kernels.runtime.costs import PARALLEL_BYTES
from ...kernels.runtime.parallel import LINE
from ..acceleration import SHAPES
from ..observed_kernels import KERNELS
from ..plans import memory_like
from ..recording import Outline, Recorder
from .atomics import call_address
from .calls import MOST_ARRAYS, REFUSED
from .external import NONE, built_in, function_of_python, new_reference
from .language import *

allocated = function_of_python("PyMem_Malloc", i64, i64)
freed = function_of_python("PyMem_Free", None, i64)

REPLAY = Struct("launches bytes flag arrays")
"""A recording. The numbers of the objects that are arrays follow, and then the launches. `bytes`: the size of the memory that the
launches share. `flag`: the offset of the flag in this memory, or -1."""

LAUNCH = Struct("address words arrays")
"""A launch. Two words follow for each array, and then the table: the number of the object that contains the array, or -1 for the
shared memory, and the offset of the array there in bytes. `words`: the length of the table."""


@loops(noalias=False, explicit=True, plain=True)
def run_launches(own: Int, objects: Pointer[i64], given: Int) -> i64:
    """Make the launches of a recording for arrays and other objects. `own` is an array with a `REPLAY`.

    Return NotImplemented if an object is no array, or if a launch has written to the flag.
    """
    at = as_pointer(as_pointer(own, i64)[AFTER_HEAD // 8], i64)
    told = fields(at, REPLAY)
    at = at + REPLAY.size
    for n in rolled(told.arrays):
        if as_pointer(objects[at[n]], i64)[AFTER_HEAD // 8 - 1] != id(ndarray):
            return new_reference(REFUSED)
    at = at + told.arrays
    whole = i64(0)
    if told.bytes > 0:
        whole = allocated(told.bytes + LINE)
        if whole == 0:
            return new_reference(REFUSED)
    memory = (whole + LINE) // LINE * LINE
    flag = as_pointer(memory + told.flag, i64)
    if told.flag >= 0:
        flag[0] = i64(0)
    elements = local(i64, MOST_ARRAYS)
    result = NONE
    for _ in rolled(told.launches):
        launch = fields(at, LAUNCH)
        at = at + LAUNCH.size
        for k in rolled(launch.arrays):
            begin = memory
            if at[2 * k] >= 0:
                begin = as_pointer(objects[at[2 * k]], i64)[AFTER_HEAD // 8]
            elements[k] = begin + at[2 * k + 1]
        at = at + 2 * launch.arrays
        call_address(
            launch.address, at, elements[0], elements[1], elements[2], elements[3], elements[4], elements[5],
            elements[6], elements[7], elements[8], elements[9], elements[10], elements[11],
        )  # fmt: skip
        at = at + launch.words
        if told.flag >= 0 and flag[0] != 0:
            result = REFUSED
            break
    if whole != 0:
        freed(whole)
    return new_reference(result)


def replay_of(plain: Callable[..., Any], record: Callable[..., Any], arguments: Sequence[Any]) -> Callable[..., Any]:
    """Return a function like `plain` that replays the recording of a call with these arguments.

    `record` returns the results of the kernel for outlines in place of arrays. Return `plain` itself if the kernel cannot be
    recorded, if the call does much work, or if an argument is NumPy's 0.0, which has the same signature as -0.0.
    """
    recorder = Recorder()
    try:
        outlines = [
            recorder.outline(each.shape, each.dtype, each.strides) if isinstance(each, ndarray) else each
            for each in arguments
        ]
        results = recorder.record(record, *outlines)
    except Exception:  # noqa: BLE001  (whatever a kernel raises without elements)
        return plain
    work = sum(each.launch.work for each in recorder.launches)
    zero = any(isinstance(each, generic) and each == 0 for each in arguments)
    if work >= PARALLEL_BYTES or zero:
        return plain
    results = results if isinstance(results, tuple) else (results,)
    if not all(each is None or (isinstance(each, ndarray) and recorder.place(each)) for each in results):
        return plain
    # NumPy's `asarray` returns outlines as plain arrays.
    results = tuple([each if isinstance(each, Outline | None) else each.view(Outline) for each in results])
    written = [each for each in results if each is not None and not any(each is given for given in outlines)]
    objects = [*written, *outlines]
    arrays = [number for number, each in enumerate(objects) if isinstance(each, Outline)]
    places: dict[Any, tuple[int, int]] = {recorder.place(objects[number]): (number, 0) for number in arrays}
    memories = [memory_like(each) for each in written]
    whole = all(
        (made.empty().strides == each.strides or not each.size)
        and recorder.memories[(recorder.place(each) or (0,))[0]].nbytes == each.nbytes
        for made, each in zip(memories, written, strict=True)
    )
    if len(places) < len(arrays) or not whole:
        return plain  # a result is a part of an array
    size = 0
    for number, memory in enumerate(recorder.memories):
        if (number, 0) not in places:
            places[number, 0] = (-1, size)
            size += -(-memory.nbytes // LINE) * LINE
    flag = -1 if recorder.flag is None else places[recorder.flag, 0][1]
    words = [*REPLAY.pack(launches=len(recorder.launches), bytes=size, flag=flag, arrays=len(arrays)), *arrays]
    for launch, read, _ in recorder.launches:
        table = launch.words(1, 0)
        words += LAUNCH.pack(address=launch.address, words=len(table), arrays=len(read))
        for number, offset in read:
            place, begin = places[number, 0]
            words += (place, begin + offset)
        words += table
    own = numpy.array(words, numpy.int64)
    known = {"SHAPES": SHAPES, "KERNELS": KERNELS, "plain": plain, "parallel": parallel}
    known["kept"] = own, recorder.kept, [each.launch.kept for each in recorder.launches]
    known["replay"] = built_in(plain.__name__, run_launches.compiled().code.address, own)
    known |= {f"new_{number}": memory.allocator() for number, memory in enumerate(memories)}
    names = {id(None): "None"} | {id(each): f"arguments[{number}]" for number, each in enumerate(outlines)}
    names |= {id(each): f"r{number}" for number, each in enumerate(written)}
    source = f"""def run(*arguments):
    if SHAPES.special or KERNELS.observers or parallel.num_threads != {parallel.num_threads}:
        return plain(*arguments)
    {"; ".join([f"r{number} = new_{number}()" for number in range(len(written))]) or "pass"}
    if replay({"".join([f"r{number}, " for number in range(len(written))])}*arguments) is NotImplemented:
        return plain(*arguments)
    return {", ".join([names[id(each)] for each in results])}
"""
    run: Any = compile_source(source, "<adjoint replay>", known)["run"]
    run.recordable = True
    return run
