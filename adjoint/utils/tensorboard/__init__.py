"""`torch.utils.tensorboard`: files for TensorBoard with numbers, histograms and images.

It needs the package `tensorboard` (`pip install tensorboard`), which is imported when a writer is created.
"""

from __future__ import annotations

import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy

import adjoint as torch

from ..._runtime.first_use import further_names
from ..._runtime.platform import socket

__all__ = ["FileWriter", "SummaryWriter"]

writer = sys.modules[__name__]
further_names(__name__, {"writer": writer})


def _parts() -> Any:
    """Return the parts of the package `tensorboard`."""
    try:
        from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError as error:
        raise ImportError("torch.utils.tensorboard needs the package tensorboard: pip install tensorboard") from error
    from types import SimpleNamespace

    return SimpleNamespace(event=event_pb2, summary=summary_pb2, tensor=tensor_pb2, writer=EventFileWriter)


def _array(values: Any) -> numpy.ndarray[Any, Any]:
    if isinstance(values, torch.Tensor):
        values = values.detach()
        return (values.float() if values.dtype in (torch.bfloat16, torch.float16) else values).numpy()
    return numpy.asarray(values)


class FileWriter:
    """Writes summaries to an event file in a folder."""

    def __init__(self, log_dir: str, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:
        self._parts = _parts()
        self._log_dir = str(log_dir)
        self.event_writer = self._parts.writer(self._log_dir, max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return self._log_dir

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Write an event."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Write a summary."""
        self.add_event(self._parts.event.Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write the pending events."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write the pending events, and close the file."""
        self.event_writer.close()


class SummaryWriter:
    """Writes numbers, histograms, images and texts of a training run for TensorBoard.

    Args:
        log_dir: the folder of the event file; by default `runs/` with the date and the host.
        comment: the end of the folder's default name.
    """

    def __init__(
        self,
        log_dir: str | Path | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = Path("runs") / f"{now}_{socket.gethostname()}{comment}"
        self.log_dir = str(log_dir)
        self._options = (max_queue, flush_secs, filename_suffix)
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._parts = _parts()
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None:
            self.file_writer = FileWriter(self.log_dir, *self._options)
            self.all_writers = {self.log_dir: self.file_writer, **(self.all_writers or {})}
        return self.file_writer

    def get_logdir(self) -> str:
        """Return the folder of the event file."""
        return self.log_dir

    def _add(self, step: int | None, walltime: float | None, **value: Any) -> None:
        summary = self._parts.summary.Summary(value=[self._parts.summary.Summary.Value(**value)])
        self._get_file_writer().add_summary(summary, step, walltime)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Write a number."""
        array = _array(scalar_value)
        if array.size != 1:
            raise AssertionError("scalar should be 0D")
        self._add(global_step, walltime, tag=tag, simple_value=float(array.item()))

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write several numbers for one chart. Each goes to a file in a separate folder."""
        writers = self.all_writers = self.all_writers or {}
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in writers:
                writers[folder] = FileWriter(folder, *self._options)
            parts = self._parts.summary
            summary = parts.Summary(value=[parts.Summary.Value(tag=main_tag, simple_value=float(_array(value).item()))])
            writers[folder].add_summary(summary, global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: str | Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Write a histogram of values.

        `bins` is "tensorflow" (limits that grow by a tenth), the name of a NumPy method, or the limits.
        """
        array = _array(values).astype(numpy.float64).ravel()
        if not array.size:
            raise ValueError("The input has no element.")
        counts, limits = numpy.histogram(
            array, bins=_limits() if isinstance(bins, str) and bins == "tensorflow" else bins
        )
        filled = numpy.flatnonzero(counts)
        start, end = (filled[0], filled[-1] + 1) if filled.size else (0, 1)
        histogram = self._parts.summary.HistogramProto(
            min=array.min(),
            max=array.max(),
            num=array.size,
            sum=array.sum(),
            sum_squares=array.dot(array),
            bucket_limit=[limits[start], *limits[start + 1 : end + 1]],
            bucket=[0, *counts[start:end]],
        )
        self._add(global_step, walltime, tag=tag, histo=histogram)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Write an image, as bytes or as numbers from 0 to 1."""
        array = _array(img_tensor)
        order = [dataformats.upper().index(letter) for letter in "HWC" if letter in dataformats.upper()]
        array = array.transpose(order)
        array = array[..., None] if array.ndim == 2 else array
        if array.dtype != numpy.uint8:
            array = (array.astype(numpy.float32) * 255).clip(0, 255).astype(numpy.uint8)
        height, width, channels = array.shape
        image = self._parts.summary.Summary.Image(
            height=height, width=width, colorspace=channels, encoded_image_string=_png(array)
        )
        self._add(global_step, walltime, tag=tag, image=image)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Write several images, side by side."""
        array = _array(img_tensor)
        array = array.transpose([dataformats.upper().index(letter) for letter in "NHWC"])
        count = array.shape[0]
        columns = min(count, 8)
        rows = -(-count // columns)
        array = numpy.concatenate([array, numpy.zeros((rows * columns - count, *array.shape[1:]), array.dtype)])
        grid = array.reshape(rows, columns, *array.shape[1:]).swapaxes(1, 2)
        self.add_image(tag, grid.reshape(rows * grid.shape[1], -1, array.shape[-1]), global_step, walltime, "HWC")

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Write one or several figures of matplotlib."""
        figures = figure if isinstance(figure, list) else [figure]
        images = []
        for each in figures:
            each.canvas.draw()
            images.append(numpy.asarray(each.canvas.buffer_rgba())[..., :3])
            if close:
                import matplotlib.pyplot

                matplotlib.pyplot.close(each)
        if isinstance(figure, list):
            self.add_images(tag, numpy.stack(images), global_step, walltime, "NHWC")
        else:
            self.add_image(tag, images[0], global_step, walltime, "HWC")

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write a text in Markdown."""
        self._add_tensor_of_strings(f"{tag}/text_summary", "text", [text_string], global_step, walltime)

    def _add_tensor_of_strings(
        self, tag: str, plugin: str, texts: list[str], step: int | None, walltime: float | None
    ) -> None:
        metadata = self._parts.summary.SummaryMetadata
        shape = {"dim": [{"size": len(texts)}]}
        tensor = self._parts.tensor.TensorProto(
            dtype="DT_STRING", string_val=[text.encode() for text in texts], tensor_shape=shape
        )
        about = metadata(plugin_data=metadata.PluginData(plugin_name=plugin))
        self._add(step, walltime, tag=tag, metadata=about, tensor=tensor)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Write the hyperparameters of a run, and its resulting metrics."""
        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):  # type: ignore[redundant-expr]
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        from tensorboard.plugins.hparams import summary_v2

        names = [summary_v2.HParam(name) for name in hparam_dict]
        metrics = [summary_v2.Metric(name) for name in metric_dict]
        folder = Path(self.log_dir) / (run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as writer:
            out = writer._get_file_writer()
            out.add_summary(summary_v2.hparams_config_pb(hparams=names, metrics=metrics))
            out.add_summary(summary_v2.hparams_pb(hparam_dict))
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False, **options: Any) -> None:
        """Raise an error. Use `adjoint.inspect.graph`, which draws the graph.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "SummaryWriter.add_graph is not in adjoint: draw graphs with `adjoint.inspect.graph`."
        )

    def flush(self) -> None:
        """Write the pending events."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write the pending events, and close the files."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _limits() -> list[float]:
    """Return the limits of TensorBoard's bins. They start at 1e-12 and grow by a tenth, on both sides of zero."""
    limits, value = [], 1e-12
    while value < 1e20:
        limits.append(value)
        value *= 1.1
    return [-limit for limit in reversed(limits)] + [0.0] + limits


def _png(array: numpy.ndarray[Any, Any]) -> bytes:
    """Return an image of shape (height, width, channels) as a PNG file."""
    import struct
    import zlib

    height, width, channels = array.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = numpy.concatenate([numpy.zeros((height, 1), numpy.uint8), array.reshape(height, -1)], axis=1)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes()))
        + chunk(b"IEND", b"")
    )
