"""Writes docs/interop.md from the results of both directions.

    report.py EXCHANGE_DIRECTORY OUTPUT
"""
import json
import pathlib
import platform
import sys

import safetensors
import tokenizers
import torch
import transformers

INTRO = """# Exchange with Hugging Face

`make interop` (`scripts/interop/run.sh`) exchanges models with Hugging Face's `transformers` in both directions and writes
this page. It needs Debian's `python3-torch` and PyPI packages, which it installs; it is not part of `make test`.

- **trainer → transformers**: the trainer saves models of random weights; `safetensors` reads every tensor,
  `GPT2LMHeadModel.from_pretrained` and `AutoTokenizer.from_pretrained` load the directory.
- **transformers → trainer**: `save_pretrained` writes random models; the trainer loads them. `base-model` was saved from
  `GPT2Model` (no `transformer.` prefix); `hub-layout` has causal masks and an explicit `lm_head.weight`, as OpenAI's
  published GPT-2 does.

Logits may differ by {tolerance} (absolute, float32 on both sides); token ids, {tokens} greedily decoded tokens and their
bytes must be equal, for {prompts} prompts with contractions, runs of spaces, CJK and emoji.

PyPI's `torch` for x86-64 is built for CUDA and does not start without several gigabytes of CUDA libraries; Debian's PyTorch
does. transformers 4.40 generates text with it; 4.46 does not.
The current versions can be tried with `INTEROP_PYTHON=` a Python that has them: all checks passed with PyTorch 2.15.0+cu132,
transformers 5.24.0, tokenizers 0.23.3 and safetensors 0.8.0 as well.

Last run with {versions}.

| direction | model | check | result | |
|---|---|---|---|---|
"""


def main():
    base, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    import exchange
    rows = [r for name in ("results-ours.json", "results-theirs.json") for r in json.loads((base / name).read_text())]
    versions = (f"Python {platform.python_version()}, PyTorch {torch.__version__}, transformers {transformers.__version__}, "
                f"tokenizers {tokenizers.__version__}, safetensors {safetensors.__version__}")
    text = INTRO.format(tolerance=exchange.TOLERANCE, tokens=exchange.NEW_TOKENS, prompts=len(exchange.PROMPTS), versions=versions)
    for r in rows:
        text += f"| {r['direction']} | {r['model']} | {r['check']} | {r['result']} | {'ok' if r['ok'] else '**FAIL**'} |\n"
    out.write_text(text)
    failed = sum(not r["ok"] for r in rows)
    print(f"{len(rows) - failed} passed, {failed} failed; {out}")
    sys.exit(1 if failed or not rows else 0)


if __name__ == "__main__":
    main()
