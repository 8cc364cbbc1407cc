"""The group of all processes, and subgroups: their creation, their members and their end."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

from .._runtime.tracebacks import end_functions_at_caller, shorten, warn
from . import bootstrap, mpi
from .process_group import ProcessGroup
from .state import STATE, wait_for_saving

default_pg_timeout = timedelta(minutes=30)
NON_GROUP_MEMBER = -100
FIRST_MEETING_TAG = 100
"""The first tag of messages that synchronize ranks before they create a group."""
FORWARDING = 0.2
"""The number of seconds in which a launcher forwards the output of a process before it learns that all processes must end."""
UNINITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."


class Backend(str):
    """The name of a backend in lower case. All backends mean MPI here."""

    __slots__ = ()
    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI = "undefined", "gloo", "nccl", "xccl", "ucc", "mpi"
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]

    def __new__(cls, name: str) -> Backend:
        """Convert a name."""
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, {type(name)} given")
        return str.__new__(cls, name.lower())


class _WithWorld(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes, or None."""
        return STATE.world

    @WORLD.setter
    def WORLD(cls, group: ProcessGroup | None) -> None:
        STATE.world = group


class group(metaclass=_WithWorld):
    """A class with the group of all processes, and the value for groups that do not contain this process."""

    NON_GROUP_MEMBER: int | None = NON_GROUP_MEMBER


GroupMember = group


def is_initialized() -> bool:
    """Return whether `init_process_group` has been called."""
    return STATE.world is not None


def is_backend_available(backend: str) -> bool:
    """Return whether a group can be created with a backend of this name. All backends mean MPI."""
    return backend.lower() in Backend.backend_list[1:] and mpi.is_available()


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Connect to the processes that an MPI launcher has started, or that the variables of `torchrun` describe.

    A single process becomes a group with one rank.

    Args:
        backend: the name of one of PyTorch's backends. All backends mean MPI, and rank 0 prints this once.
        init_method: "env://" (the default), "tcp://ADDRESS:PORT" or "file://PATH". Processes started by MPI need no
            address.
        timeout: the time that a collective waits for the other ranks; 30 minutes if None.
        world_size, rank: the number of processes and the rank of this process, if the environment does not contain
            them.
        store: a store that the processes share and that leads to rank 0, as an alternative to `init_method`.
        group_name, pg_options, device_id: accepted for compatibility with PyTorch, without effect.

    Raises:
        ValueError: if a group already exists, or if `world_size` or `rank` differs from MPI's value.
        DistStoreError: if the other processes do not arrive in time.
        ModuleNotFoundError: if mpi4py or an MPI is missing.
    """
    if STATE.world is not None:
        raise ValueError("trying to initialize the default process group twice!")
    name = _checked_backend(backend)
    limit = _checked_timeout(timeout)
    where = None
    if bootstrap.started_by_mpi():
        bootstrap.await_all(limit.total_seconds())
    else:
        where = bootstrap.place(init_method, world_size, rank, limit.total_seconds(), store)
        if where is not None and "mpi4py.MPI" not in sys.modules:
            bootstrap.prepare(where, limit.total_seconds())
    if STATE.companions is not None:
        STATE.companions.enter()
    MPI = mpi.load()
    if MPI.Is_finalized():
        raise RuntimeError("MPI has been finalized: this process cannot join a group any more")
    world = MPI.COMM_WORLD
    _check_place(world, where.size if where else world_size, where.rank if where else rank)
    comm = world.Dup()
    STATE.control = world.Dup()
    mpi.forget_names()
    STATE.rank = comm.Get_rank()
    STATE.numbered = 0
    STATE.world = ProcessGroup(comm, list(range(comm.Get_size())), "0", limit, name, "default_pg")
    STATE.live["0"] = STATE.world
    _give_board(STATE.world)
    _complete_environment(world)
    if name not in ("mpi", "undefined") and not STATE.said and STATE.rank == 0 and comm.Get_size() > 1:
        STATE.said = True
        print(f"adjoint.distributed: backend {name!r} means MPI here ({mpi.version()})", file=sys.stderr, flush=True)
    if comm.Get_size() > 1:
        sys.excepthook = _show_and_end


def _checked_backend(backend: str | None) -> str:
    parts = [part.rpartition(":")[2] for part in str(backend or "mpi").lower().split(",")]
    for part in parts:
        if part not in Backend.backend_list:
            raise AssertionError(f"Unknown backend type {backend}")
    return parts[0]


def _checked_timeout(timeout: timedelta | None) -> timedelta:
    if timeout is None:
        return default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout


def _check_place(world: Any, size: int, rank: int) -> None:
    """Raise ValueError if MPI's number of processes, or its rank of this process, differs from the requested one."""
    found, own = world.Get_size(), world.Get_rank()
    if size > 0 and found != size:
        alone = ""
        if found == 1:
            alone = (
                f": MPI ({mpi.version()}) started alone. Start the script by `adjoint launch -n {size}` or mpiexec; "
                "MPICH also joins processes that other launchers have started"
            )
        raise ValueError(f"world_size is {size}, but MPI has {found} process{'es' * (found > 1)}{alone}")
    if rank >= 0 and own != rank:
        raise ValueError(f"rank is {rank}, but MPI has numbered this process {own}")


def _complete_environment(world: Any) -> None:
    """Set the variables of `torchrun` that a plain mpiexec does not set."""
    os.environ.setdefault("RANK", str(world.Get_rank()))
    os.environ.setdefault("WORLD_SIZE", str(world.Get_size()))
    local = os.environ.get("MPI_LOCALRANKID", os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK"))
    if "LOCAL_RANK" not in os.environ:
        if local is None:
            node = world.Split_type(mpi.load().COMM_TYPE_SHARED)
            local = str(node.Get_rank())
            node.Free()
        os.environ["LOCAL_RANK"] = local


def show_error(error: BaseException, rank: int) -> None:
    """Print a traceback without interruption, with the rank before each line.

    All ranks receive Ctrl-C, but only one of them prints it.
    """
    told = os.environ.get("ADJOINT_FAILURES")
    if told and isinstance(error, KeyboardInterrupt):
        try:
            Path(f"{told}.interrupted").touch(exist_ok=False)
        except FileExistsError:
            return
        except OSError:  # another machine
            pass
    shorten(error)
    lines = "".join(traceback.format_exception(error)).splitlines()
    sys.stdout.flush()
    sys.stderr.write("".join(f"[rank{rank}]: {line}\n" for line in lines))
    sys.stderr.flush()


def _show_and_end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """End all processes after an uncaught exception, because the others would wait for this process."""
    show_error(error, STATE.rank)
    end_all(130 if issubclass(kind, KeyboardInterrupt) else 1)


def tell_launcher(status: int) -> None:
    """If `adjoint launch` has started this process, report to it that the process fails with an exit status."""
    told = os.environ.get("ADJOINT_FAILURES")
    if told:
        with contextlib.suppress(OSError), open(told, "a", encoding="utf-8") as file:  # noqa: PTH123  (appends in one piece)
            file.write(f"{status}\n")


def end_all(status: int) -> None:
    """End all MPI processes with an exit status, if MPI has started. If `adjoint launch` has started them, inform it."""
    sys.stdout.flush()
    sys.stderr.flush()
    tell_launcher(status)
    if STATE.companions is not None:
        STATE.companions.end_all(status)
    if "mpi4py.MPI" in sys.modules and not mpi.load().Is_finalized():
        time.sleep(FORWARDING)
        mpi.load().COMM_WORLD.Abort(status)


def destroy_process_group(group: Any = None) -> None:
    """Free a group.

    Without a group, or with the group of all processes, free all groups.

    Raises:
        AssertionError: if no group exists.
    """
    if group == NON_GROUP_MEMBER:
        return
    pg: ProcessGroup | None = STATE.world if group is None else group
    if pg is None:
        raise AssertionError("Process group cannot be None")
    if STATE.live.get(pg.group_name) is not pg:
        raise ValueError("Invalid process group specified")
    whole = pg is STATE.world
    if not STATE.broken:
        wait_for_saving()
    for each in list(STATE.live.values()) if whole else [pg]:
        del STATE.live[each.group_name]
        if not STATE.broken:
            each.comm.Free()
    if whole:
        if not STATE.broken:
            STATE.control.Free()
        STATE.world = STATE.control = None
        if STATE.companions is not None:
            STATE.companions.leave()
        if sys.excepthook is _show_and_end:
            sys.excepthook = sys.__excepthook__


def default_group() -> ProcessGroup:
    """Return the group of all processes.

    Raises:
        ValueError: if `init_process_group` has not been called.
    """
    if STATE.world is None:
        raise ValueError(UNINITIALIZED)
    return STATE.world


_get_default_group = default_group


def resolve(group: Any) -> ProcessGroup | None:
    """Return the group for an argument. None means all processes. Return None if this process is not in the group."""
    if group is None:
        return default_group()
    if group == NON_GROUP_MEMBER:
        return None
    if not isinstance(group, ProcessGroup):
        raise TypeError(f"Expected a ProcessGroup, but got {type(group).__name__}")
    return group


def resolve_or_warn(group: Any, name: str) -> ProcessGroup | None:
    """Return the group like `resolve`. Warn if it does not contain this process, because the call then has no effect."""
    found = resolve(group)
    if found is None:
        warn(
            f"Running {name} on global rank {default_group() and STATE.rank} which does not belong to the given group.",
            UserWarning,
        )
    return found


def for_members(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a collective so that it receives the resolved `group`. Outside the group, only warn and return None."""
    position = function.__code__.co_varnames.index("group")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        group = args[position] if len(args) > position else kwargs.pop("group", None)
        found = resolve_or_warn(group, function.__name__)
        if found is None:
            return None
        if len(args) > position:
            return function(*args[:position], found, *args[position + 1 :], **kwargs)
        return function(*args, group=found, **kwargs)

    return call


def get_rank(group: Any = None) -> int:
    """Return the number of this process in the group, or -1 if it is not in the group."""
    found = resolve(group)
    return -1 if found is None else found.rank()


def get_world_size(group: Any = None) -> int:
    """Return the number of processes in the group, or -1 if this process is not in the group."""
    found = resolve(group)
    return -1 if found is None else found.size()


def get_backend(group: Any = None) -> Backend:
    """Return the name that was given as the backend."""
    found = resolve(group)
    if found is None:
        raise ValueError("Invalid process group specified")
    return Backend(found.backend)


def get_backend_config(group: Any = None) -> str:
    """Return the backend of each kind of device."""
    return f"cpu:{get_backend(group)}"


def get_process_group_ranks(group: Any = None) -> list[int]:
    """Return the global ranks of the processes in the group."""
    found = resolve(group)
    if found is None:
        raise ValueError("Invalid process group specified")
    return list(found.ranks)


def get_global_rank(group: Any, group_rank: int) -> int:
    """Return the global rank, given the rank of a process in the group."""
    if group is STATE.world:
        return group_rank
    ranks = get_process_group_ranks(group)
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """Return the rank in the group, given the global rank of a process."""
    ranks = get_process_group_ranks(group)
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the number of this process among the processes on its machine."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return fallback_rank
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def get_pg_count() -> int:
    """Return the number of groups that contain this process."""
    return len(STATE.live)


def new_group(
    ranks: Iterable[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Create a group of some processes. All processes call this in the same order, including processes outside the group.

    Returns:
        The group, or `GroupMember.NON_GROUP_MEMBER` if this process is not in it.
    """
    world = default_group()
    size = world.size()
    chosen = list(range(size)) if ranks is None else [int(rank) for rank in ranks]
    for rank in chosen:
        if not 0 <= rank < size:
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})")
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"ranks list must not contain duplicate entries, got {chosen}")
    if not chosen:
        raise ValueError("a group must have at least one rank")
    if sort_ranks:
        chosen.sort()
    name = _checked_backend(backend or world.backend)
    if use_local_synchronization:  # the other processes do not call this function, so they cannot count
        label = "_".join(map(str, chosen))
        label = f"{label}#{sum(other.startswith(label) for other in STATE.live)}"
    else:
        STATE.numbered += 1
        label = str(STATE.numbered)
    if STATE.rank not in chosen:
        return NON_GROUP_MEMBER
    tag = zlib.crc32(label.encode()) % 30000
    _meet(world, chosen, tag)
    members = world.comm.Get_group().Incl(chosen)
    comm = world.comm.Create_group(members, tag=tag)
    members.Free()
    made = ProcessGroup(
        comm,
        chosen,
        label,
        world.timeout if timeout is None else _checked_timeout(timeout),
        name,
        group_desc or "undefined",
    )
    STATE.live[label] = made
    _give_board(made)
    return made


def _give_board(group: ProcessGroup) -> None:
    """Let the ranks of a new group see one another's calls, if possible."""
    from .node_memory import board_steps
    from .work import Work

    if group.size() > 1:
        Work(group, "new_group", board_steps(group)).wait()
        group.calls = 0


def _meet(world: ProcessGroup, ranks: list[int], tag: int) -> None:
    """Wait until all ranks of a new group are about to create it, because MPI itself would wait without a time limit.

    Raises:
        DistBackendError: if ranks do not arrive in time. The error names the missing ranks.
    """
    from .work import Work

    control, byte = STATE.control, mpi.load().BYTE
    tag += FIRST_MEETING_TAG
    first, *others = ranks

    def steps() -> Iterator[Any]:
        if STATE.rank == first:
            for rank in others:
                yield control.Irecv([bytearray(1), byte], rank, tag)
            for rank in others:
                yield control.Isend([b"!", byte], rank, tag)
        else:
            yield control.Isend([b"!", byte], first, tag)
            yield control.Irecv([bytearray(1), byte], first, tag)

    work = Work(world, f"new_group of ranks {ranks}", steps(), in_order=False)
    world.calls -= 1  # ranks outside of the new group do not count this call
    work.wait()


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Split the processes into groups of `group_size`, by default one per machine.

    Return the group of this process, and all groups.
    """
    size = default_group().size()
    if group_size is None:
        group_size = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if group_size > size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={group_size}'")
    parts = [list(range(start, start + group_size)) for start in range(0, size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Create a group of each list of ranks. Return the group of this process, and all groups.

    Raises:
        ValueError: if a rank is in two lists.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: set[int] = set()
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {ranks} and another one")
        seen.update(ranks)
    groups = [new_group(ranks, timeout, backend, pg_options, False, group_desc) for ranks in ranks_per_subgroup_list]
    own = next((each for each in groups if each != NON_GROUP_MEMBER), None)
    return own, groups


end_functions_at_caller(globals(), but=("show_error", "tell_launcher", "end_all"))
