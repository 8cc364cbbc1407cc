"""`torch.utils.tensorboard`: values, histograms and images in files that TensorBoard shows.

It needs the package `tensorboard` (`pip install tensorboard`), which is imported when a writer is made.
"""

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
