"""Times GPT-2 training steps in plain PyTorch and prints one JSON object.

    /usr/bin/python3 bench/pytorch/train_step.py --workload bench/workloads.json:small-b8 --threads 2

The model is written the way that is fast in PyTorch 1.13 (Debian's): fused
linear, layer norm, GELU and cross-entropy, one matrix product for q, k and v,
views instead of copies, gradients set to None. A step is what the trainer's step
is: forward, backward, clipping, AdamW with decay on matrices only, and reading
the loss. Weights and tokens are random: the time does not depend on them.
"""
import argparse
import json
import math
import statistics
import sys
import time

import torch
import torch.nn.functional as F


class Block(torch.nn.Module):
    def __init__(self, channels, heads, block):
        super().__init__()
        self.heads = heads
        self.ln_1 = torch.nn.LayerNorm(channels)
        self.attn = torch.nn.Linear(channels, 3 * channels)
        self.attn_proj = torch.nn.Linear(channels, channels)
        self.ln_2 = torch.nn.LayerNorm(channels)
        self.fc = torch.nn.Linear(channels, 4 * channels)
        self.fc_proj = torch.nn.Linear(4 * channels, channels)
        future = torch.full((block, block), float("-inf")).triu(1)
        self.register_buffer("future", future, persistent=False)

    def forward(self, x):  # (B, T, C)
        B, T, C = x.shape
        q, k, v = self.attn(self.ln_1(x)).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(C // self.heads))  # (B, H, T, T)
        weights = F.softmax(scores + self.future[:T, :T], dim=-1)
        x = x + self.attn_proj((weights @ v).transpose(1, 2).reshape(B, T, C))
        return x + self.fc_proj(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class GPT2(torch.nn.Module):
    def __init__(self, w):
        super().__init__()
        self.wte = torch.nn.Embedding(w["vocab"], w["channels"])
        self.wpe = torch.nn.Embedding(w["block"], w["channels"])
        self.blocks = torch.nn.ModuleList(
            Block(w["channels"], w["heads"], w["block"]) for _ in range(w["layers"]))
        self.ln_f = torch.nn.LayerNorm(w["channels"])
        # GPT-2's initial weights: what feeds the residual stream is smaller.
        for name, p in self.named_parameters():
            if p.dim() == 2:
                torch.nn.init.normal_(p, std=0.02 / (math.sqrt(2 * w["layers"]) if "_proj" in name else 1))
            elif name.endswith("bias"):
                torch.nn.init.zeros_(p)

    def forward(self, inputs, targets):  # (B, T) each
        x = self.wte(inputs) + self.wpe.weight[: inputs.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)  # the head is tied
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def peak_rss_bytes():
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    raise RuntimeError("no VmHWM in /proc/self/status")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload", required=True, help="FILE:NAME")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--foreach", action="store_true", help="the multi-tensor AdamW")
    args = parser.parse_args()
    path, name = args.workload.rsplit(":", 1)
    with open(path) as f:
        found = [w for w in json.load(f) if w["name"] == name]
    if not found:
        sys.exit(f"{path} has no workload {name!r}")
    w = found[0]

    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = GPT2(w)
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
        lr=1e-4, betas=(0.9, 0.95), eps=1e-8, foreach=args.foreach)
    tokens = torch.randint(w["vocab"], (w["batch"], w["tokens"] + 1))
    inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    losses, times = [], []
    for _ in range(w["warmup"] + w["steps"]):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = model(inputs, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        times.append((time.perf_counter() - start) * 1e3)
    times = times[w["warmup"]:]
    print(json.dumps({
        "contender": "pytorch",
        "version": "PyTorch " + torch.__version__,
        "workload": name,
        "threads": args.threads,
        "params": sum(p.numel() for p in model.parameters()),
        "step_ms": [round(t, 3) for t in times],
        "median_ms": round(statistics.median(times), 3),
        "peak_rss_bytes": peak_rss_bytes(),
        "first_loss": losses[0],
        "last_loss": losses[-1],
    }))


if __name__ == "__main__":
    main()
