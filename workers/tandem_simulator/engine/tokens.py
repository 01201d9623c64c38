"""A toy tokenizer: reversible, without a vocabulary file, and about as dense on English as real ones.

Ids, in this order: 256 single bytes; the special tokens; a table of common words with their leading space; every pair
and every triple of bytes. Text is cut at white space; a piece that is in the table is one token, another is cut into
triples of bytes. A character may therefore be spread over tokens, as with real byte-level tokenizers, and text must be
held back until its last byte is there.
"""

import re
from collections.abc import Iterable, Sequence

__all__ = ["ANSWER_WORDS", "BYTES", "EOS", "IM_START", "SPECIALS", "VOCABULARY", "decode", "encode", "token_bytes", "word"]

BYTES = 256
SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
IM_START = BYTES + 1
EOS = BYTES + 2
_WORDS_AT = BYTES + len(SPECIALS)
_TABLE = """
a about after again air all along also always an and animal another answer any are around as ask at away back be because
been before began being below best better between big body book both boy but by call came can car carry change children
city close cold come could country cut day did different do does door down draw each early earth eat end enough even
every eye face family far father feet few find fire first fish five follow food for form found four friend from full
game gave get girl give go gold good got great green ground grow had half hand happen hard has have he head hear heard
help her here high him his hold home horse hot hour house how idea if in into is island it its just keep kind king knew
know land large last late learn leave left let letter life light like line list listen little live long look low made
make man many map may me mean men might mile money moon more morning most mother mountain move much music must my name
near need never new next night north not notice now number of off often oh old on once one only open or order other our
out over own page paper part people picture place plan plant play point ran read real red rest right river road rock
room round rule run said same sand saw say school sea second see seem sentence set several she ship short should show
side simple sing sit six sleep slow small snow so some song soon sound south spell stand star start state stay step
still stop story strong study such sun sure table take talk tell ten than that the their them then there these they
thing think this those thought three through time to together told too took top toward town travel tree true try turn
two under unit until up us use very voice walk want war warm was watch water way we week well went were what wheel when
where which while white who whole why will wind with without wood word work world would write year you young your
""".split()  # noqa: SIM905 - 365 literals would be as many lines
_PAIRS_AT = _WORDS_AT + len(_TABLE)
_TRIPLES_AT = _PAIRS_AT + 256**2
VOCABULARY = _TRIPLES_AT + 256**3
"""Number of ids: every id from 0 to one below it is valid."""

_WORD_IDS = {f" {word}": _WORDS_AT + index for index, word in enumerate(_TABLE)}
_SPECIAL_IDS = {text: BYTES + index for index, text in enumerate(SPECIALS)}
_SPECIAL_PATTERN = re.compile("(" + "|".join(map(re.escape, SPECIALS)) + ")")
_PIECES = re.compile(r" ?\w+|\s+|[^\w\s]+")

ANSWER_WORDS = len(_TABLE)
"""How many words the model can say; `word` gives each by its index."""


def word(index: int) -> int:
    """Id of the word at `index`, below `ANSWER_WORDS`."""
    return _WORDS_AT + index


def encode(text: str) -> list[int]:
    """Token ids of `text`; special tokens written out in the text become themselves, as in real tokenizers."""
    ids: list[int] = []
    for part in _SPECIAL_PATTERN.split(text):
        special = _SPECIAL_IDS.get(part)
        if special is None:
            ids.extend(_plain(part))
        else:
            ids.append(special)
    return ids


def _plain(text: str) -> Iterable[int]:
    for piece in _PIECES.findall(text):
        known = _WORD_IDS.get(piece)
        if known is not None:
            yield known
            continue
        # Lone surrogates come in through JSON escapes; they have no UTF-8 form of their own.
        data = piece.encode("utf-8", "replace")
        for at in range(0, len(data), 3):
            yield _chunk(data[at : at + 3])


def _chunk(data: bytes) -> int:
    value = int.from_bytes(data, "big")
    return value + (0, 0, _PAIRS_AT, _TRIPLES_AT)[len(data)]


def token_bytes(token: int, *, skip_special: bool = True) -> bytes:
    """Bytes that one token stands for; none for a special token unless `skip_special` is false."""
    if token < BYTES:
        return bytes((token,))
    if token < _WORDS_AT:
        return b"" if skip_special else SPECIALS[token - BYTES].encode()
    if token < _PAIRS_AT:
        return b" " + _TABLE[token - _WORDS_AT].encode()
    if token < _TRIPLES_AT:
        return (token - _PAIRS_AT).to_bytes(2, "big")
    return (token - _TRIPLES_AT).to_bytes(3, "big")


def decode(tokens: Sequence[int], *, skip_special: bool = True) -> str:
    """Text of `tokens`; bytes that are no UTF-8 become the replacement character."""
    return b"".join(token_bytes(token, skip_special=skip_special) for token in tokens).decode("utf-8", "replace")
