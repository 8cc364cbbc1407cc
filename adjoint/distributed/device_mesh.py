"""`torch.distributed.device_mesh`: processes arranged in a grid. Each row and each column is a group."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy

import adjoint as torch

from .groups import (
    NON_GROUP_MEMBER,
    ProcessGroup,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
    new_group,
)

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """A grid of ranks. The processes along each line of the grid are a group.

    Args:
        device_type: "cpu".
        mesh: the ranks, as a tensor or nested lists. They must be the same in all processes. All processes call this
            constructor.
        mesh_dim_names: a name for each dimension.

    Raises:
        RuntimeError: if a rank does not exist, or occurs twice in the mesh.
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: Iterable[str] | None = None, **others: Any
    ) -> None:
        if not is_initialized():
            init_process_group()
        ranks = numpy.array(mesh.tolist() if isinstance(mesh, torch.Tensor) else mesh, dtype=numpy.int64)
        flat = ranks.ravel().tolist()
        if len(set(flat)) != len(flat) or any(not 0 <= rank < get_world_size() for rank in flat):
            raise RuntimeError(f"Mesh should hold ranks from 0 to {get_world_size() - 1}, each once, but found {flat}")
        self._set(device_type, ranks, tuple(mesh_dim_names) if mesh_dim_names is not None else None)
        self._groups: list[Any] = [self._lines(number) for number in range(ranks.ndim)]

    def _set(self, device_type: str, ranks: Any, names: tuple[str, ...] | None) -> None:
        if names is not None and len(names) != ranks.ndim:
            raise RuntimeError(
                f"mesh_shape and mesh_dim_names should have same length! Got len(mesh_dim_names): {len(names)} and "
                f"len(mesh_shape): {ranks.ndim}."
            )
        self.device_type, self._ranks, self.mesh_dim_names = device_type, ranks, names
        place = numpy.argwhere(ranks == get_rank())
        self._coordinate = tuple(place[0].tolist()) if len(place) else None

    def _lines(self, number: int) -> Any:
        """Return the group of this process along a dimension. All processes must create all groups."""
        lines = numpy.moveaxis(self._ranks, number, -1).reshape(-1, self._ranks.shape[number]).tolist()
        if lines == [list(range(get_world_size()))]:
            return torch.distributed.group.WORLD
        made = [new_group(line, sort_ranks=False) for line in lines]
        return next((group for group in made if group != NON_GROUP_MEMBER), NON_GROUP_MEMBER)

    @classmethod
    def from_group(
        cls, group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: Iterable[str] | None = None
    ) -> DeviceMesh:
        """Create a mesh from an existing group or, with `mesh`, from one group per dimension."""
        groups = list(group) if isinstance(group, (list, tuple)) else [group]
        if len(groups) > 1 and mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        made = cls.__new__(cls)
        ranks = groups[0].ranks if mesh is None else mesh
        ranks = numpy.array(ranks.tolist() if isinstance(ranks, torch.Tensor) else ranks, dtype=numpy.int64)
        made._set(device_type, ranks, tuple(mesh_dim_names) if mesh_dim_names is not None else None)
        made._groups = groups
        return made

    @property
    def mesh(self) -> Any:
        """The ranks, as a tensor."""
        return torch.tensor(self._ranks)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self._ranks.ndim)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of processes along each dimension."""
        return tuple(self._ranks.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """Return the number of processes, or the number along a dimension."""
        return math.prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    def _number(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified when "
                    "device_mesh.ndim > 1."
                )
            return 0
        if isinstance(mesh_dim, str):
            names = self.mesh_dim_names or ()
            if mesh_dim not in names:
                raise KeyError(f"Invalid mesh_dim_name {mesh_dim!r} specified. Valid mesh_dim_names are {names}.")
            return names.index(mesh_dim)
        return mesh_dim

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Return the group of this process along a dimension, given by its number or name."""
        group: ProcessGroup = self._groups[self._number(mesh_dim)]
        return group

    def get_all_groups(self) -> list[ProcessGroup]:
        """Return the groups of this process along all dimensions."""
        return list(self._groups)

    def get_rank(self) -> int:
        """Return the global rank of this process."""
        return get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return the number of this process along a dimension."""
        if self._coordinate is None:
            return -1
        return self._coordinate[self._number(mesh_dim)]

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Return the position of this process in the grid, or None if it is not in the grid."""
        return self._coordinate

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        """Return the part of the mesh that contains this process and has only the named dimensions."""
        chosen = [self._number(name) for name in ([names] if isinstance(names, str) else names)]
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        if chosen == list(range(self.ndim)):
            return self
        place = self._coordinate or (0,) * self.ndim
        index = tuple(slice(None) if number in chosen else place[number] for number in range(self.ndim))
        part = DeviceMesh.__new__(DeviceMesh)
        ranks = numpy.transpose(self._ranks[index], [sorted(chosen).index(number) for number in chosen])
        part._set(self.device_type, ranks, tuple(self.mesh_dim_names[number] for number in chosen))
        part._groups = [self._groups[number] for number in chosen]
        return part

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, DeviceMesh)
            and self.mesh_dim_names == other.mesh_dim_names
            and self.device_type == other.device_type
            and numpy.array_equal(self._ranks, other._ranks)
        )

    def __hash__(self) -> int:
        return hash((self.device_type, self.shape, self.mesh_dim_names, tuple(self._ranks.ravel().tolist())))

    def __repr__(self) -> str:
        named = zip(self.mesh_dim_names or (), self.shape, strict=self.mesh_dim_names is not None)
        sizes = f"({', '.join(f'{name}={size}' for name, size in named)})" if self.mesh_dim_names else str(self.shape)
        return f"DeviceMesh({sizes}, {self.device_type!r})"


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """Create a mesh of all processes, in the order of their ranks.

    Join the processes first if necessary.

    Raises:
        RuntimeError: if names are not unique, if there is not one name per dimension, or if the mesh needs more
            processes than exist.
    """
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}"
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                f"mesh_shape and mesh_dim_names should have same length! Got len(mesh_dim_names): {len(mesh_dim_names)} and "
                f"len(mesh_shape): {len(mesh_shape)}."
            )
    if not is_initialized():
        init_process_group()
    count = math.prod(mesh_shape)
    if count > get_world_size():
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {get_world_size()}, but found {count} ranks!"
        )
    return DeviceMesh(device_type, numpy.arange(count).reshape(mesh_shape), mesh_dim_names=mesh_dim_names)
