"""Loads the models that the trainer saved, with transformers and with Hugging Face's
safetensors, and compares with what the trainer says of them.

    check_ours.py EXCHANGE_DIRECTORY
"""
import hashlib
import pathlib
import sys

import torch
from safetensors import safe_open
from transformers import AutoTokenizer, GPT2LMHeadModel, GPT2Tokenizer

import exchange


def check(rows, directory):
    name, want = directory.name, exchange.read(directory)

    # An independent reader of the file format, without transformers.
    with safe_open(directory / "model.safetensors", framework="pt") as f:
        sums = {k: hashlib.sha256(f.get_tensor(k).float().numpy().astype("<f4").tobytes()).hexdigest() for k in f.keys()}
        metadata = f.metadata()
    rows.count(name, "tensors read by safetensors", [sums.get(k) == v for k, v in want["tensors"].items()])
    rows.add(name, "metadata read by safetensors", str(dict(sorted(metadata.items()))), metadata == {"format": "pt", "made_by": "trainyard"} and len(sums) == len(want["tensors"]))

    model, info = GPT2LMHeadModel.from_pretrained(directory, torch_dtype=torch.float32, output_loading_info=True)
    model.eval()
    wrong = {k: v for k, v in info.items() if v}
    rows.add(name, "from_pretrained", str(wrong or "no missing or unexpected keys"), not wrong)

    fast, slow = AutoTokenizer.from_pretrained(directory), GPT2Tokenizer.from_pretrained(directory)
    rows.add(name, "tokenizer", f"{type(fast).__name__}, {len(fast)} tokens", len(fast) == len(slow) == model.config.vocab_size)
    ps = want["prompts"]
    rows.count(name, "token ids (tokenizer.json)", [fast(p["text"])["input_ids"] == p["ids"] for p in ps])
    rows.count(name, "token ids (vocab.json, merges.txt)", [slow(p["text"])["input_ids"] == p["ids"] for p in ps])

    worst = max((exchange.logits_of(model, p["ids"]).flatten() - torch.tensor(p["logits"])).abs().max().item() for p in ps)
    rows.add(name, "logits", f"largest difference {worst:.1e}", worst <= exchange.TOLERANCE)
    out = [exchange.greedy(model, p["ids"]) for p in ps]
    rows.count(name, "greedy ids", [o == p["greedy"] for o, p in zip(out, ps)])
    rows.count(name, "greedy text", [
        exchange.text_bytes(fast, o).hex() == p["greedy_hex"]
        and fast.decode(o) == bytes.fromhex(p["greedy_hex"]).decode("utf-8", "replace") for o, p in zip(out, ps)])


def main():
    base = pathlib.Path(sys.argv[1])
    rows = exchange.Rows("trainer → transformers")
    models = sorted(p for p in (base / "ours").iterdir())
    assert models, "no models"
    for directory in models:
        check(rows, directory)
    sys.exit(0 if rows.write(base / "results-ours.json") else 1)


if __name__ == "__main__":
    main()
