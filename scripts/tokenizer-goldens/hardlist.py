"""The texts on which tokenizers are compared: name and bytes of each."""


def texts():
    cases = {
        "empty": "",
        "english": "The quick brown fox jumps over the lazy dog. It wasn't John's fault, she said.",
        "contractions": "I'm you're he's we've they'll she'd don't it's o'clock 'tis y'all'd've",
        "contractions in upper case": "I'M YOU'RE HE'S WE'VE THEY'LL SHE'D DON'T 'S'T'RE'VE'M'LL'D",
        "contractions in mixed case": "it'S we'Ve they'lL I'd'D can'T'll 'rE 'Re",
        "contractions after other": "''s '''t !'s 's's ' s 'l 'v 'r 'x '' ' \u2019s don\u2019t",
        "apostrophe at the end": "the dogs' bones'",
        "one blank": " ",
        "one letter": "a",
        "blanks": " a  b   c    d     e" + " " * 40 + "f" + " " * 17,
        "tabs": "\ta\t\tb\t\t\tc\t d \te\t",
        "newlines": "a\nb\n\nc\n\n\nd \n e\n \nf\r\ng\r\n\r\nh\n",
        "mixed white space": "a \t\n\v\f\r b\u0085c\u00a0d\u2003\u2003e\u2028f\u2029g \u3000 h\u1680i \u00a0",
        "no-break space before a word": "a\u00a0b \u00a0c\u00a0 d\u00a0\u00a0e",
        "ideographic space": "\u3000\u65e5\u672c\u3000\u8a9e\u3000 \u3000x",
        "zero width space": "a\u200bb \u200b c\u200b\u200b 1\u200b2",
        "other format characters": "\ufeffa\u2060b\u00adc\u200ed\u200f \ufeff e",
        "information separators": "a\x1cb\x1d\x1e \x1fc\x00d\x00\x00 \x7f",
        "python": "def f(x):\n    if x:\n\treturn x ** 2  # square\n\n\nprint(f(3))\n",
        "json": '{"a": [1, 2.5e-3, null], "b\\"c": "\\u00e9"}\n',
        "html": "<p class=\"x\">Tom &amp; Jerry</p><!-- c --><br/>",
        "url": "https://example.org/a_b/c?d=e&f=%20g#h-i and user@host.example",
        "punctuation": "!!! ??? ... --- === *** ___ ((( ))) [[ ]] {{ }} <<>> ~~ `` ^^ || \\\\ // ,,,,,",
        "commas": ",", "commas 2": ",,", "commas 3": ",,,", "commas 7": ",,,,,,,",
        "long rule": "=" * 300 + "-" * 257 + "_" * 129,
        "digits": "0 1 12 123 1234 12345 123456 1234567890 3.14159 1,000,000 007 0x1F",
        "numbers of other kinds": "\u00bd \u2167 \u00b2\u00b3 \u2460 x\u00bd3\u2167y 1\u00bd \u0663\u0664\u0665 \u096a\u0968 \U0001d7d8\U0001d7d9 \u4e09\u3007",
        "accents": "caf\u00e9 na\u00efve \u00c5ngstr\u00f6m \u00df \u1e9e \u0131\u0130 \ufb01n",
        "combining marks": "cafe\u0301 A\u030angstro\u0308m e\u0301\u0301 \u0301 \u0301a Z\u0351\u036b\u0343a\u0321\u0353l\u0325g\u030ao",
        "greek": "\u039a\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1 \u03ba\u03cc\u03c3\u03bc\u03b5\u00b7 \u1f05\u03bd\u03b8\u03c1\u03c9\u03c0\u03bf\u03c2",
        "russian": "\u0421\u044a\u0435\u0448\u044c \u0435\u0449\u0451 \u044d\u0442\u0438\u0445 \u043c\u044f\u0433\u043a\u0438\u0445 \u0444\u0440\u0430\u043d\u0446\u0443\u0437\u0441\u043a\u0438\u0445 \u0431\u0443\u043b\u043e\u043a",
        "arabic": "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645\u060c \u0643\u0645 \u0627\u0644\u0633\u0627\u0639\u0629\u061f \u0661\u0662:\u0663\u0660 \u0648\u0650\u0644\u0627\u062f\u064e\u0629",
        "hebrew": "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd \u05e2\u05d5\u05dc\u05dd",
        "hindi": "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e\u0964 \u0915\u094d\u0937",
        "thai": "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
        "chinese": "\u4f60\u597d\uff0c\u4e16\u754c\uff01\u6211\u4eec\u5728\u8bad\u7ec3\u6a21\u578b\u3002\U00020000\U0002a6d6",
        "japanese": "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u3001\u30ab\u30bf\u30ab\u30ca\u3068\u3072\u3089\u304c\u306a\u3002\uff21\uff22\uff43\uff11\uff12 \u3005\u309d\u30fc",
        "korean": "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4! \u1112\u1161\u11ab\u1100\u1173\u11af",
        "emoji": "\U0001f600 \U0001f680\U0001f680 \u2764\ufe0f \U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7 1\ufe0f\u20e3 \U0001f44d\U0001f3fd",
        "emoji joined": "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f3f3\ufe0f\u200d\U0001f308 \U0001f9d1\U0001f3fe\u200d\U0001f680a\u200db",
        "mathematics": "\u2200x\u2208\u211d: x\u00b2\u22650 \u2211\u222b\u221a\u221e \u2102 \U0001d44e\U0001d44f \u210c \u2135",
        "modifiers and letter numbers": "\u02b0\u02c6 \u1d43\u1d47 \u2c7c \u3021\u3022 \U00010140\U00010141 \u0bf0 \u1369",
        "replacement character": "a\ufffdb \ufffd\ufffd 1\ufffd",
        "noncharacters and private use": "a\ufdd0b\uffff \ue000\uf8ff \U000f0000\U0010ffff",
        "special token as text": "a<|endoftext|>b <|endoftext|><|endoftext|",
        "glitch tokens": " SolidGoldMagikarp PsyNetMessage rawdownloadcloneembedreportprint ?????-?????-",
        "byte spellings": "\u0120the \u010a \u0100\u0143 \u00a1\u00ac\u00ad\u00ae\u00ff",
        "long word of one letter": "a" * 1000,
        "long word": "Donaudampfschifffahrtselektrizit\u00e4tenhauptbetriebswerkbauunterbeamtengesellschaft" * 4,
        "long word of letters": "".join(chr(97 + (i * i * 7 + i // 3) % 26) for i in range(2000)),
        "47, 48 and 49 letters": "abcde" * 9 + "ab " + "abcde" * 9 + "abc" + " " + "abcde" * 9 + "abcd",
        "23, 24 and 25 letters": "w" * 23 + "." + "w" * 24 + "." + "w" * 25,
        "lengths to 32": " ".join("translation"[: i % 12] + "s" * (i // 2) for i in range(1, 33)),
    }
    out = [(name, text.encode("utf-8")) for name, text in cases.items()]
    # What is not UTF-8: no string can hold it, so that libraries cannot be asked directly.
    out += [
        ("all bytes", bytes(range(256))),
        ("all bytes downwards", bytes(range(255, -1, -1))),
        ("all bytes after blanks", b"".join(b" " + bytes([b]) for b in range(256))),
        ("cut sequences", b"caf\xc3 \xe2\x82 x\xf0\x9f\x98"),
        ("lone continuation bytes", b"a\x80b \x80\xbf1\xbf"),
        ("surrogates", b"a\xed\xa0\x80b \xed\xbf\xbf"),
        ("overlong forms", b"\xc0\x80 \xe0\x80\xaf\xf0\x80\x80\x80"),
        ("above U+10FFFF", b"\xf4\x90\x80\x80 \xf7\xbf\xbf\xbf\xff\xfe"),
        ("latin-1", "na\u00efve caf\u00e9 \u00bd \u00a0x".encode("latin-1")),
        ("long run of bad bytes", b"\xff" * 100 + b" " + b"\x80" * 60),
    ]
    return out


def is_utf8(data):
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
