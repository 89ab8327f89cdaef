"""Compares the trainer's token ids with those of Hugging Face's libraries.

usage: python3 interop.py DIR

DIR holds tokenizer.json, vocab.json and merges.txt as the trainer saved them, and
ids.json, what the trainer made of a list of texts: name, bytes in hex, ids. Needs PyPI's
tokenizers; with transformers installed its GPT2TokenizerFast is asked as well. Texts that
are not UTF-8 are only decoded, since no string can hold them. Exits 1 on a difference.
"""

import json
import os
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

import hardlist


def main(directory):
    path = os.path.join(directory, "tokenizer.json")
    cases = json.load(open(os.path.join(directory, "ids.json"), encoding="utf-8"))
    if len(cases) < 60:
        sys.exit(f"{directory}: ids.json has {len(cases)} texts, want at least 60")
    loaded = Tokenizer.from_file(path)
    encoders = {
        "tokenizer.json": lambda text: loaded.encode(text).ids,
        "vocab.json with merges.txt": from_parts(directory),
        "tokenizer.json, saved again": saved_again(loaded),
    }
    try:
        from transformers import GPT2TokenizerFast
    except ImportError:
        print("transformers is not installed: only tokenizers is compared")
    else:
        fast = GPT2TokenizerFast.from_pretrained(directory)
        encoders["transformers"] = lambda text: fast(text)["input_ids"]

    failed = 0
    for case in cases:
        data, ids = bytes.fromhex(case["Hex"]), case["IDs"] or []
        if loaded.decode(ids, skip_special_tokens=False) != data.decode("utf-8", errors="replace"):
            failed += 1
            print(f"{case['Name']}: decoded differently")
        if not hardlist.is_utf8(data):
            continue
        for name, encode in encoders.items():
            got = encode(data.decode("utf-8"))
            if got != ids:
                failed += 1
                print(f"{case['Name']}: {name} has {got}, the trainer {ids}")
    if failed:
        sys.exit(f"{failed} differences")
    print(f"{len(cases)} texts, {loaded.get_vocab_size()} tokens: equal by {', '.join(encoders)}")


def from_parts(directory):
    """The other two files hold the whole model; special tokens are not marked in them."""
    model = models.BPE.from_file(os.path.join(directory, "vocab.json"), os.path.join(directory, "merges.txt"))
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>", normalized=False, special=True)])
    return lambda text: tokenizer.encode(text).ids


def saved_again(tokenizer):
    again = Tokenizer.from_str(tokenizer.to_str(pretty=True))
    return lambda text: again.encode(text).ids


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
