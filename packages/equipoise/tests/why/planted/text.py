"""Puts a text together from pieces: copying it for each one, or once at the end."""

import sys

PIECE = "a"


def by_copying(pieces: int) -> str:
    text = ""
    for _ in range(pieces):
        before = text
        text = before + PIECE
    return text


def by_joining(pieces: int) -> str:
    return "".join([PIECE for _ in range(pieces)])


how, pieces = sys.argv[1], int(sys.argv[2])
text = by_copying(pieces) if how == "copying" else by_joining(pieces)
assert len(text) == pieces * len(PIECE)
