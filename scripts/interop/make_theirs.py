"""Saves random GPT-2 models with transformers, in every layout met in the field, with
a tokenizer trained by Hugging Face's tokenizers, for the trainer to load.

    make_theirs.py EXCHANGE_DIRECTORY
"""
import json
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from tokenizers import ByteLevelBPETokenizer
from transformers import GPT2Config, GPT2LMHeadModel, GPT2TokenizerFast

import exchange

ROOT = pathlib.Path(__file__).resolve().parents[2]


def make_tokenizer():
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator([(ROOT / "LICENSE").read_text()], vocab_size=600, min_frequency=2,
                            special_tokens=["<|endoftext|>"], show_progress=False)
    return GPT2TokenizerFast(tokenizer_object=bpe._tokenizer, clean_up_tokenization_spaces=False)


def make_model(tokenizer, **config):
    torch.manual_seed(1)
    end = tokenizer.eos_token_id
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), bos_token_id=end, eos_token_id=end, **config)).eval()
    with torch.no_grad():  # far from the linear range, every bias counts
        for p in model.parameters():
            p.copy_(p * 5 if p.dim() == 2 else p + torch.randn_like(p) / 5)
    return model


NANO = dict(n_positions=128, n_embd=128, n_layer=4, n_head=4)
ODD = dict(n_positions=97, n_embd=33, n_layer=3, n_head=3, n_inner=70, activation_function="gelu", layer_norm_epsilon=1e-6)


def save_plain(model, directory):
    model.save_pretrained(directory, safe_serialization=True)


def save_base(model, directory):
    """GPT2Model: the same tensors without the prefix."""
    model.transformer.save_pretrained(directory, safe_serialization=True)


def save_like_hub(model, directory):
    """As openai-community/gpt2 was published: no prefix, causal masks, head of its own."""
    save_base(model, directory)
    path = str(directory / "model.safetensors")
    tensors = load_file(path)
    n = model.config.n_positions
    for i in range(model.config.n_layer):
        tensors[f"h.{i}.attn.bias"] = torch.ones(n, n).tril().reshape(1, 1, n, n)
        tensors[f"h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
    tensors["lm_head.weight"] = tensors["wte.weight"].clone()
    save_file(tensors, path, metadata={"format": "pt"})


CASES = {
    "nano-f32": (NANO, torch.float32, save_plain),
    "nano-f16": (NANO, torch.float16, save_plain),
    "nano-bf16": (NANO, torch.bfloat16, save_plain),
    "odd-erf-f32": (ODD, torch.float32, save_plain),
    "base-model-f32": (NANO, torch.float32, save_base),
    "hub-layout-f32": (ODD, torch.float32, save_like_hub),
}


def main():
    base = pathlib.Path(sys.argv[1]) / "theirs"
    tokenizer = make_tokenizer()
    for name, (config, dtype, save) in CASES.items():
        directory = base / name
        model = make_model(tokenizer, **config).to(dtype)
        save(model, directory)
        tokenizer.save_pretrained(directory)
        model = model.float()  # what was rounded stays rounded
        answers = []
        for text in exchange.PROMPTS:
            ids = tokenizer(text)["input_ids"]
            out = exchange.greedy(model, ids)
            answers.append({"text": text, "ids": ids, "logits": exchange.logits_of(model, ids).flatten().tolist(),
                            "greedy": out, "greedy_hex": exchange.text_bytes(tokenizer, out).hex()})
        (directory / "expected.json").write_text(json.dumps({"prompts": answers}))
        print("saved", directory)


if __name__ == "__main__":
    main()
