"""Makes the vectors of a vault in processes that are killed.

Reads JSON from its input, a line each: the vault, a file that takes each text before its vector is kept,
after how many vectors the kill comes, and how long after. It prints how the process ended.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from hashlib import blake2b
from typing import TYPE_CHECKING

from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Sequence


class MortalEmbedder:
    """Draws a vector from a hash of the text, and has its process killed a moment after some of them."""

    name, dims, constants, is_local = "drawn", 32, (0.1, 0.1), True

    def __init__(self, log: str, after: int, seconds: float) -> None:
        self.log, self.after, self.seconds = log, after, seconds

    def reads(self, _text: str) -> bool:
        return True

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        with open(self.log, "a", encoding="utf-8") as file:
            file.write("".join(f"{text}\n" for text in texts))
        self.after -= len(texts)
        if self.after == 0:
            threading.Timer(self.seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return [[byte - 127.5 for byte in blake2b(text.encode(), digest_size=32).digest()] for text in texts]

    def embed_query(self, text: str) -> Sequence[float]:
        return self.embed_documents([text])[0]


def fill(root: str, log: str, after: int, seconds: float) -> None:
    memory = Memory(root, embedder=MortalEmbedder(log, after, seconds))
    memory.sync()
    assert memory.meaning
    memory.meaning.fill()


if __name__ == "__main__":
    for line in sys.stdin:
        child = os.fork()  # before an index is opened here
        if not child:
            status = 1
            try:
                fill(*json.loads(line))
                status = 0
            finally:
                os._exit(status)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
