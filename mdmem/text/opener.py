"""Brackets that may begin a link, kept until the bracket that closes them is found."""

from __future__ import annotations

_MOST_IN_A_ROW = 100


class Opener:
    """A bracket that may begin a link: where it stands, where its text begins, what is known of it."""

    __slots__ = ("content", "image", "nests", "start")

    def __init__(self, start: int, content: int) -> None:
        self.start = start
        self.content = content
        self.image = content - start > 1
        self.nests = False  # there is another bracket behind it: what they enclose is no label


def push(stack: list[Opener], start: int, at: int, *, image: bool) -> None:
    """Put what stands from `start` to `at` on the stack: `[`, `![`, or several brackets in a row."""
    if stack:
        stack[-1].nests = True
    if image or at - start == 1:
        stack.append(Opener(start, at))
        return
    many = [Opener(number, number + 1) for number in range(max(start, at - _MOST_IN_A_ROW), at)]
    for opener in many[:-1]:
        opener.nests = True
    stack += many
