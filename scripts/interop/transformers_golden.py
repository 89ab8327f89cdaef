"""Saves the model of gpt2_tiny_tanh.json.gz with transformers' save_pretrained into
trainer/internal/hf/testdata/transformers, for the tests of trainer/internal/hf.

    scripts/interop/run.sh golden
"""
import pathlib
import sys

from golden_model import load_golden

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "trainer/internal/hf/testdata/transformers"
    model, _ = load_golden("gpt2_tiny_tanh")
    model.save_pretrained(directory, safe_serialization=True)
    print(directory, sorted(p.name for p in directory.iterdir()))


if __name__ == "__main__":
    main()
