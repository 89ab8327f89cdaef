"""Writes golden values of small GPT-2 models for the tests of trainer/internal/gpt.

An implementation of its own in plain PyTorch, in float64: it shares nothing with
the trainer but the paper. Run with Debian's PyTorch:

    apt-get install -y python3-torch
    /usr/bin/python3 scripts/interop/gpt2_goldens.py [DIRECTORY]

The format is described in trainer/internal/gpt/testdata/README.md. Numbers are
rounded to where float64 is reproducible, so that running it again changes nothing.
"""
import gzip
import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F

CASES = {
    "gpt2_tiny_tanh": dict(vocab_size=61, n_positions=16, n_layer=2, n_head=2, n_embd=16, n_inner=64,
                           activation_function="gelu_new", layer_norm_epsilon=1e-5),
    "gpt2_tiny_erf": dict(vocab_size=61, n_positions=16, n_layer=2, n_head=2, n_embd=16, n_inner=64,
                          activation_function="gelu", layer_norm_epsilon=1e-5),
    # Nothing here is a multiple of a vector register.
    "gpt2_odd_tanh": dict(vocab_size=131, n_positions=12, n_layer=1, n_head=3, n_embd=33, n_inner=70,
                          activation_function="gelu_new", layer_norm_epsilon=1e-5),
}
ADAMW = dict(lr=1e-2, beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=0.1, clip=1.0)
STEPS = 10


def make_params(c, gen):
    """Random weights with few decimals (short files), exact in float32; every bias counts."""
    C, I = c["n_embd"], c["n_inner"]

    def normal(*shape, std, mean=0.0):
        x = mean + std * torch.randn(*shape, generator=gen, dtype=torch.float64)
        return (x * 1e4).round().div(1e4).float().double().requires_grad_()

    p = {"transformer.wte.weight": normal(c["vocab_size"], C, std=0.3),
         "transformer.wpe.weight": normal(c["n_positions"], C, std=0.3)}
    for i in range(c["n_layer"]):
        h = f"transformer.h.{i}."
        for ln in ("ln_1", "ln_2"):
            p[h + ln + ".weight"] = normal(C, std=0.2, mean=1.0)
            p[h + ln + ".bias"] = normal(C, std=0.2)
        for name, n_in, n_out in (("attn.c_attn", C, 3 * C), ("attn.c_proj", C, C),
                                  ("mlp.c_fc", C, I), ("mlp.c_proj", I, C)):
            p[h + name + ".weight"] = normal(n_in, n_out, std=1.5 / math.sqrt(n_in))  # Conv1D: (in, out)
            p[h + name + ".bias"] = normal(n_out, std=0.2)
    p["transformer.ln_f.weight"] = normal(C, std=0.2, mean=1.0)
    p["transformer.ln_f.bias"] = normal(C, std=0.2)
    return p


def gelu(x, kind):
    if kind == "gelu":
        return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def forward(p, c, ids):
    """ids (B, T) -> logits (B, T, V); the head is the token embedding."""
    B, T = ids.shape
    C, H, eps = c["n_embd"], c["n_head"], c["layer_norm_epsilon"]

    def linear(x, name):
        return x @ p[name + ".weight"] + p[name + ".bias"]

    def norm(x, name):
        d = x - x.mean(-1, keepdim=True)
        return d / torch.sqrt((d * d).mean(-1, keepdim=True) + eps) * p[name + ".weight"] + p[name + ".bias"]

    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    x = p["transformer.wte.weight"][ids] + p["transformer.wpe.weight"][:T]
    for i in range(c["n_layer"]):
        h = f"transformer.h.{i}."
        q, k, v = (t.reshape(B, T, H, C // H).transpose(1, 2)  # (B, H, T, C/H)
                   for t in linear(norm(x, h + "ln_1"), h + "attn.c_attn").split(C, dim=-1))
        att = (q @ k.transpose(-1, -2) / math.sqrt(C // H)).masked_fill(future, -math.inf).softmax(-1)
        x = x + linear((att @ v).transpose(1, 2).reshape(B, T, C), h + "attn.c_proj")
        x = x + linear(gelu(linear(norm(x, h + "ln_2"), h + "mlp.c_fc"), c["activation_function"]), h + "mlp.c_proj")
    return norm(x, "transformer.ln_f") @ p["transformer.wte.weight"].T


def losses_of(p, c, ids, targets):
    """Loss of each position, 0 where the target is -1: (B, T)."""
    logits = forward(p, c, ids)
    return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1,
                                   reduction="none").reshape(targets.shape)


def number(x, digits):
    """Rounded; what is zero but for rounding noise (the keys' bias has no gradient) is 0."""
    return 0.0 if abs(x) < 1e-14 else float(f"{x:.{digits}g}")


def numbers(t, digits):
    return [number(x, digits) for x in t.detach().flatten().tolist()]


def golden(c, seed):
    gen = torch.Generator().manual_seed(seed)
    p = make_params(c, gen)
    B, T = 3, c["n_positions"] - 3
    ids = torch.randint(c["vocab_size"], (B, T), generator=gen)
    targets = torch.randint(c["vocab_size"], (B, T), generator=gen)
    targets[0, :4] = -1   # a question
    targets[1, -3:] = -1  # padding
    targets[2, 5] = -1
    count = int((targets >= 0).sum())

    out = {"config": c, "b": B, "t": T, "inputs": ids.flatten().tolist(), "targets": targets.flatten().tolist(),
           "params": {n: {"shape": list(x.shape), "data": numbers(x.float(), 5)} for n, x in p.items()}}
    logits, per_token = losses_of(p, c, ids, targets)
    (per_token.sum() / count).backward()
    out.update(count=count, loss_sum=number(float(per_token.sum()), 12), logits=numbers(logits, 10),
               per_token=numbers(per_token, 10), grads={n: numbers(x.grad, 8) for n, x in p.items()})

    decay = [x for x in p.values() if x.dim() == 2]
    rest = [x for x in p.values() if x.dim() != 2]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": ADAMW["weight_decay"]},
                             {"params": rest, "weight_decay": 0.0}],
                            lr=ADAMW["lr"], betas=(ADAMW["beta1"], ADAMW["beta2"]), eps=ADAMW["eps"])
    losses, norms = [], []
    for step in range(STEPS + 1):
        opt.zero_grad()
        loss = losses_of(p, c, ids, targets)[1].sum() / count
        losses.append(number(float(loss), 11))
        if step < STEPS:
            loss.backward()
            norms.append(number(float(torch.nn.utils.clip_grad_norm_(p.values(), ADAMW["clip"])), 11))
            opt.step()
    out.update(adamw=ADAMW, losses=losses, grad_norms=norms)
    return out


def main():
    torch.set_num_threads(1)
    here = pathlib.Path(__file__).resolve().parents[2] / "trainer/internal/gpt/testdata"
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    for name, config in CASES.items():
        text = json.dumps(golden(config, seed=1234), separators=(",", ":"))
        path = directory / f"{name}.json.gz"
        path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
