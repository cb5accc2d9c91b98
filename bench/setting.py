"""How a measurement is to be made: where, with which chance, how often."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The temporary folder that a measurement may fill, the seed, and whether it is only being tried out."""

    folder: str
    seed: int
    quick: bool

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def chance(self, name: str) -> random.Random:
        """Random numbers that depend on the seed, and on nothing that other measurements drew."""
        return random.Random(f"{self.seed} {name}")

    def count(self, full: int) -> int:
        """How often, or how many: `full`, or a twentieth when trying out."""
        return max(3, full // 20) if self.quick else full
