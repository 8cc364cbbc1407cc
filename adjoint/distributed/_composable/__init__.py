"""Former names of parts of `torch.distributed`, which libraries import."""
