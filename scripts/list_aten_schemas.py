"""Write `adjoint/aten/schemas.txt`: the signatures of the operators of PyTorch's dispatcher.

Run `python scripts/list_aten_schemas.py` with the version of PyTorch to list. Some operators are omitted: operators of
libraries and devices that adjoint does not have, operators on TorchScript's lists, strings and numbers, and operators
that adjoint does not compute.
"""

import re
from pathlib import Path

import torch

from adjoint.aten.overloads import is_there

TARGET = Path(__file__).parents[1] / "adjoint" / "aten" / "schemas.txt"
ELSEWHERE = re.compile(
    r"_?(cudnn|miopen|mkldnn|mkl|mps|fbgemm|foreach|fused|nested|vulkan|xpu|cufft|cslt|q_|quantize|dequantize|autocast|"
    r"amp|thnn|use_cudnn|sobol|cuda|weight_int|dyn_quant|choose_qparams|jagged|int_repr|rowwise_prune|grid_sampler_2d_cpu|"
    r"segment_reduce|efficient_|padded_|per_channel|_?transformer|convert_weight|test_|triton|scaled_mm|sparse_semi|flash)"
)
OF_TENSORS = re.compile(r"\bTensor\b")


def schemas() -> list[str]:
    """Return the signatures, sorted by name, without `aten::`."""
    names = sorted({schema.name for schema in torch._C._jit_get_all_schemas() if schema.name.startswith("aten::")})
    found = []
    for name in names:
        packet = getattr(torch.ops.aten, name.removeprefix("aten::"), None)
        if (
            packet is None
            or not is_there(name.removeprefix("aten::"))
            or ELSEWHERE.match(name.removeprefix("aten::").lstrip("_"))
        ):
            continue
        for overload in packet.overloads():
            text = str(getattr(packet, overload)._schema).removeprefix("aten::")
            if OF_TENSORS.search(text) and "Dimname" not in text and "QScheme" not in text:
                found.append(text)
    return found


if __name__ == "__main__":
    lines = [f"PyTorch {torch.__version__.partition('+')[0]}", *schemas()]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
