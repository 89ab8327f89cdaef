"""What both directions of the exchange share; the trainer's half is in
trainer/internal/hf/interoptest/exchange_test.go."""
import json
import pathlib

import torch

TOLERANCE = 1e-4
NEW_TOKENS = 40
PROMPTS = [
    "The Licensor grants",
    "Hello, it's 3 o'clock — they'll  wait\n\n  for   us.",
    "日本語と中文 and 한국어",
    "🙂👩‍👩‍👧 émigré naïve\t\ttabs",
    "Permission is hereby granted, free of charge, to any person",
]


def logits_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].float()


def greedy(model, ids):
    x = torch.tensor([ids])
    out = model.generate(x, attention_mask=torch.ones_like(x), max_new_tokens=NEW_TOKENS, do_sample=False,
                         pad_token_id=model.config.eos_token_id)
    return out[0].tolist()


def byte_of_character():
    """GPT-2's alphabet: printable bytes stand for themselves, the others for U+0100 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return {**{chr(b): b for b in plain}, **{chr(256 + i): b for i, b in enumerate(rest)}}


def text_bytes(tokenizer, ids):
    """The bytes of tokens: a random model's text need not be UTF-8, and decode hides it."""
    byte_of = byte_of_character()
    out = bytearray()
    for token, i in zip(tokenizer.convert_ids_to_tokens(ids), ids):
        out += token.encode() if i in tokenizer.all_special_ids else bytes(byte_of[c] for c in token)
    return bytes(out)


def read(directory):
    return json.loads((pathlib.Path(directory) / "expected.json").read_text())


class Rows:
    """Rows of the table in docs/interop.md."""

    def __init__(self, direction):
        self.direction, self.rows = direction, []

    def add(self, model, check, result, ok):
        self.rows.append({"direction": self.direction, "model": model, "check": check, "result": result, "ok": bool(ok)})
        print(("ok    " if ok else "FAIL  ") + f"{self.direction}  {model}  {check}: {result}")

    def count(self, model, check, flags):
        self.add(model, check, f"{sum(flags)} of {len(flags)} equal", flags and all(flags))

    def write(self, path):
        pathlib.Path(path).write_text(json.dumps(self.rows, indent=2) + "\n")
        return all(r["ok"] for r in self.rows)
