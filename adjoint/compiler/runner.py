"""The machine code that runs the blocks of native runs one after another, and the branches of forks on several threads."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from ..codegen.llvm.atomics import call_address
from ..codegen.llvm.builtin_functions import Struct
from ..codegen.llvm.external import define_functions_of_python
from ..codegen.llvm.host import HOST
from ..codegen.llvm.language import Int, Pointer, as_integer, as_pointer, fields, i64, local, loops
from ..codegen.llvm.workers import run_ranges_apart
from ..kernels.runtime.addresses import AFTER_HEAD

HEAD = 4
"""The number of words before the blocks. The words are the number of blocks, the size of the arena, the offset of the
sizes of arrays in bytes, and whether to release the interpreter lock."""


@functools.cache
def block_runner(count: int) -> Any:
    """Return the machine code that runs blocks with this many pointers.

    Each word of its code is the address of a block, or the position of an array. The position after the last array contains the
    addresses of all arrays. If a block writes to the status, the run ends. It returns the arena, and behind it the number of the
    block.
    """
    define_functions_of_python(
        *("PyEval_SaveThread", "PyEval_RestoreThread", "PyMem_RawMalloc", "PyMem_RawFree"),
        *("PyErr_NoMemory", "PyByteArray_FromStringAndSize", "Py_IncRef"),
    )
    words = 1 + 2 * count
    pointers = "".join(
        f"  %n{k}p = getelementptr i64, ptr %entry, i64 {1 + 2 * k}\n  %n{k} = load i64, ptr %n{k}p\n"
        f"  %o{k}p = getelementptr i64, ptr %entry, i64 {2 + 2 * k}\n  %o{k} = load i64, ptr %o{k}p\n"
        f"  %b{k}p = getelementptr ptr, ptr %bases, i64 %n{k}\n  %b{k} = load ptr, ptr %b{k}p\n"
        f"  %p{k} = getelementptr i8, ptr %b{k}, i64 %o{k}\n"
        for k in range(count)
    )
    arguments = ", ".join(f"ptr %p{k}" for k in range(count))
    text = f"""
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
declare ptr @PyErr_NoMemory()
declare ptr @PyByteArray_FromStringAndSize(ptr, i64)
declare void @Py_IncRef(ptr)

define i64 @run_list(ptr %list, i64 %blocks, ptr %bases, ptr %status.at) {{
start:
  br label %run
run:
  %block = phi i64 [0, %start], [%block.next, %run]
  %apart = mul i64 %block, {words}
  %entry = getelementptr i64, ptr %list, i64 %apart
  %function = load ptr, ptr %entry
{pointers}  call void %function({arguments})
  %block.next = add i64 %block, 1
  %status = load i64, ptr %status.at
  %fits = icmp eq i64 %status, 0
  %left = icmp ult i64 %block.next, %blocks
  %again = and i1 %fits, %left
  br i1 %again, label %run, label %end
end:
  ret i64 %block
}}

define ptr @run_blocks(ptr %own, ptr %objects, i64 %given) {{
start:
  %code.at = getelementptr i8, ptr %own, i64 {AFTER_HEAD}
  %code = load ptr, ptr %code.at
  %blocks = load i64, ptr %code
  %size.at = getelementptr i64, ptr %code, i64 1
  %size = load i64, ptr %size.at
  %sizes.at = getelementptr i64, ptr %code, i64 2
  %sizes.offset = load i64, ptr %sizes.at
  %sizes = getelementptr i8, ptr %code, i64 %sizes.offset
  %long.at = getelementptr i64, ptr %code, i64 3
  %long = load i64, ptr %long.at
  %releases = icmp ne i64 %long, 0
  %wanted = add i64 %size, 128
  %memory = call ptr @PyMem_RawMalloc(i64 %wanted)
  %failed = icmp eq ptr %memory, null
  br i1 %failed, label %full, label %place
full:
  %nothing = call ptr @PyErr_NoMemory()
  ret ptr null
place:
  %memory.number = ptrtoint ptr %memory to i64
  %behind = add i64 %memory.number, 63
  %aligned = and i64 %behind, -64
  %arena = inttoptr i64 %aligned to ptr
  %status.at = getelementptr i8, ptr %arena, i64 %size
  store i64 0, ptr %status.at
  %arrays = add i64 %given, 3
  %bases = alloca ptr, i64 %arrays
  store ptr %arena, ptr %bases
  %sizes.place = getelementptr ptr, ptr %bases, i64 1
  store ptr %sizes, ptr %sizes.place
  br label %find
find:
  %array = phi i64 [0, %place], [%array.next, %find]
  %object.at = getelementptr ptr, ptr %objects, i64 %array
  %object = load ptr, ptr %object.at
  %elements.at = getelementptr i8, ptr %object, i64 {AFTER_HEAD}
  %elements = load ptr, ptr %elements.at
  %number = add i64 %array, 2
  %base.at = getelementptr ptr, ptr %bases, i64 %number
  store ptr %elements, ptr %base.at
  %array.next = add i64 %array, 1
  %more = icmp ult i64 %array.next, %given
  br i1 %more, label %find, label %found
found:
  %last.at = getelementptr ptr, ptr %base.at, i64 1
  store ptr %bases, ptr %last.at
  br i1 %releases, label %release, label %run
release:
  %thread = call ptr @PyEval_SaveThread()
  br label %run
run:
  %held = phi ptr [null, %found], [%thread, %release]
  %list = getelementptr i64, ptr %code, i64 {HEAD}
  %block = call i64 @run_list(ptr %list, i64 %blocks, ptr %bases, ptr %status.at)
  %status = load i64, ptr %status.at
  %fits = icmp eq i64 %status, 0
  br i1 %releases, label %take, label %end
take:
  call void @PyEval_RestoreThread(ptr %held)
  br label %end
end:
  br i1 %fits, label %done, label %stopped
stopped:
  store i64 %block, ptr %status.at
  %whole = add i64 %size, 8
  %copy = call ptr @PyByteArray_FromStringAndSize(ptr %arena, i64 %whole)
  call void @PyMem_RawFree(ptr %memory)
  ret ptr %copy
done:
  call void @PyMem_RawFree(ptr %memory)
  call void @Py_IncRef(ptr inttoptr (i64 {id(None)} to ptr))
  ret ptr inttoptr (i64 {id(None)} to ptr)
}}
"""
    return HOST.compile("run_blocks", text, plain=True, brief=True, also=("run_list",))


_FORK = Struct("branches run nothing shared count threads")
"""What `fork` reads: the machine code of `run_branches`, the machine code that runs a list of blocks, 0, the memory that threads
share, the number of branches, and the number of threads. The distance to the blocks of each branch and their number follow."""


@loops(noalias=False, explicit=True, plain=True)
def run_branches(table: Pointer[i64], start: Int, stop: Int) -> None:
    """Run some branches of a fork. `table`: the addresses of the words of the fork, and of the addresses of arrays."""
    words = as_pointer(table[0], i64)
    told = fields(words, _FORK)
    for branch in range(start, stop):
        blocks = words + (_FORK.size + 2 * branch)
        call_address(told.run, words + blocks[0], blocks[1], table[1], words + _FORK.places["nothing"])


@loops(noalias=False, plain=True, brief=True)
def fork(words: Pointer[i64], bases: Int) -> None:
    """Run the branches of a fork, and return when all are done. `words`: see `_FORK`. `bases`: the addresses of arrays."""
    told = fields(words, _FORK)
    table = local(i64, 2)
    table[0], table[1] = as_integer(words), bases
    shared = as_pointer(told.shared, i64)
    run_ranges_apart(shared, told.branches, as_integer(table), i64(0), told.count, i64(1), told.threads)


def words_of(run: int, shared: int, threads: int, branches: list[tuple[int, int]]) -> list[int]:
    """Return the words of a fork. `branches`: for each branch, the distance to its blocks in words, and their number."""
    given = {"branches": run_branches.compiled().code.address, "run": run, "nothing": 0, "shared": shared}
    return [*_FORK.pack(**given, count=len(branches), threads=threads), *itertools.chain(*branches)]
