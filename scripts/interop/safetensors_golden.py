"""Writes trainer/internal/safetensors/testdata/reference.safetensors with Hugging
Face's own library (PyPI safetensors, with Debian's PyTorch for the types that
numpy lacks), for the tests of trainer/internal/safetensors.

    scripts/interop/run.sh golden
"""
import pathlib
import sys

import torch
from safetensors.torch import save

TENSORS = {
    "a.i64": torch.tensor([-(2 ** 63), -1, 0, 2 ** 63 - 1]),
    "b.f32": torch.tensor([[0.0, -0.0, 1.5], [3.4028234663852886e38, 1e-45, float("-inf")]]),
    "c.scalar": torch.tensor(-2.5),
    "d.empty": torch.zeros(0, 3),
    # Ties, the least and largest values and what underflows.
    "e.bf16": torch.tensor([1.0, 1.00390625, 1.01171875, 3.38e38, -1e-40, 0.1]).bfloat16(),
    "f.f16": torch.tensor([1.0, 1.00048828125, 1.00146484375, 65504.0, -6e-8, 2.9e-8, 0.1]).half(),
    "g.u8": torch.tensor([0, 1, 254, 255], dtype=torch.uint8),
}


def main():
    here = pathlib.Path(__file__).resolve().parents[2] / "trainer/internal/safetensors/testdata"
    path = (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here) / "reference.safetensors"
    path.write_bytes(save(TENSORS, metadata={"format": "pt"}))
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
