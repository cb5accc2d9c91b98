"""Makes the vectors of vaults in processes that are killed: a test that has opened an index cannot fork.

Reads JSON from its input, a line each: the vault, how many vectors are made before the kill, and a file that
takes each text. It prints how the process ended: 0 where nothing was left to kill it for.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING

from mdmem.facade.memory import Memory
from tests.toy import ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Sequence


class MortalEmbedder(ToyEmbedder):
    """Kills its process when it has made so many vectors, before the next one is kept."""

    def __init__(self, after: int, log: str) -> None:
        super().__init__()
        self.after, self.log = after, log

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        with open(self.log, "a") as file:
            file.write("\n".join(texts) + "\n")
        if len(self.given) >= self.after:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().embed_documents(texts)


def fill(root: str, after: int, log: str) -> None:
    memory = Memory(root, embedder=MortalEmbedder(after, log))
    memory.sync()
    assert memory.meaning
    memory.meaning.fill()


for line in sys.stdin:
    child = os.fork()
    if not child:
        status = 1
        try:
            fill(*json.loads(line))
            status = 0
        finally:
            os._exit(status)
    sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
    sys.stdout.flush()
