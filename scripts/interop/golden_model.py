"""The models of trainer/internal/gpt/testdata as transformers' GPT2LMHeadModel."""
import gzip
import json
import pathlib

import torch
from transformers import GPT2Config, GPT2LMHeadModel

TESTDATA = pathlib.Path(__file__).resolve().parents[2] / "trainer/internal/gpt/testdata"


def load_golden(name):
    """Returns the model in evaluation mode and the golden values."""
    golden = json.loads(gzip.decompress((TESTDATA / f"{name}.json.gz").read_bytes()))
    config = GPT2Config(**golden["config"], bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config).eval()
    state = {n: torch.tensor(p["data"]).reshape(p["shape"]) for n, p in golden["params"].items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    # The head is tied; older versions keep the causal mask as a buffer.
    missing = [n for n in missing if n != "lm_head.weight" and not n.endswith((".attn.bias", ".attn.masked_bias"))]
    assert not missing and not unexpected, (missing, unexpected)
    return model, golden
