"""All samples, by the name of the declared operator."""

from . import (
    samples_arithmetic,
    samples_indexing,
    samples_linalg,
    samples_nn,
    samples_pointwise,
    samples_random,
    samples_reduction,
    samples_view,
)

FAMILIES = (
    samples_arithmetic,
    samples_indexing,
    samples_linalg,
    samples_nn,
    samples_pointwise,
    samples_random,
    samples_reduction,
    samples_view,
)
SAMPLES = {name: calls for family in FAMILIES for name, calls in family.SAMPLES.items()}
