"""Laws of probabilities, given as such or as log-odds: either is made from the other when first asked for."""

from __future__ import annotations

from typing import Any, ClassVar

from adjoint import Size, Tensor

from .utils import lazy_property, logits_to_probs, probs_to_logits

__all__ = ["ProbsOrLogits"]


class ProbsOrLogits:
    """A mixin for distributions that are given either `probs` or `logits`."""

    is_binary: ClassVar[bool] = True
    """Whether each number is the probability of an event of its own, not one of those along the last dimension."""

    _given: str

    def _choose(self, probs: Any, logits: Any) -> Any:
        """The one that is given.

        Raises:
            ValueError: unless exactly one is.
        """
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._given = "logits" if probs is None else "probs"
        return logits if probs is None else probs

    @lazy_property
    def logits(self) -> Tensor:
        """Log-odds or, of categories, normalized logarithms of probabilities."""
        return probs_to_logits(self.probs, is_binary=self.is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=self.is_binary)

    @property
    def _param(self) -> Tensor:
        return getattr(self, self._given)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._param.size()

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)
