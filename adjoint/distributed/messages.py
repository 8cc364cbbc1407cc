"""Messages from one rank to another."""

from __future__ import annotations

from typing import Any

from .._runtime.tracebacks import end_at_caller
from .arguments import check_tensor
from .groups import for_members, resolve
from .steps import receive_steps, send_steps, source, target
from .work import Work


@for_members
def isend(
    tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Start to send the tensor to a rank. The tensor must not be changed until `wait()` of the handle has returned."""
    check_tensor(tensor, "tensor")
    peer = group.own(dst, group_dst)
    return Work(group, "send", send_steps(group.comm, source(tensor), peer, tag), tensor, in_order=False)


@for_members
def irecv(
    tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Start to receive a tensor from a rank, or from any rank if no source is given."""
    check_tensor(tensor, "tensor")
    peer = None if src is None and group_src is None else group.own(src, group_src)
    sender = [-1]
    work = Work(group, "recv", receive_steps(group.comm, target(tensor), peer, tag, sender, group.ranks), tensor, False)
    work.sender = sender
    return work


def send(tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send the tensor to a rank.

    Raises:
        ValueError: if the destination is this process.
    """
    found = resolve(group)
    if found is not None and found.own(dst, group_dst) == found.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive a tensor from a rank, or from any rank if no source is given. Return the rank of the sender."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


class P2POp:
    """A message of `batch_isend_irecv`. `op` is `isend` or `irecv`."""

    def __init__(
        self,
        op: Any,
        tensor: Any,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = (
            op,
            tensor,
            peer,
            group,
            tag,
            group_peer,
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start several messages, and return a handle for each."""
    if not p2p_op_list or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    works = [each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer) for each in p2p_op_list]
    return [work for work in works if work is not None]


end_at_caller(P2POp, "__init__", "__new__")
