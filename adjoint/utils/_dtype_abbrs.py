"""`torch.utils._dtype_abbrs`: short names of dtypes, such as `f32`."""

import adjoint as torch

__all__ = ["dtype_abbrs"]

dtype_abbrs = {dtype: dtype.abbr for dtype in torch._C._get_all_dtypes()}
