"""The program as a whole: which vault, whose memory, exit codes, errors, and what becomes of its output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

import mdmem
from mdmem.memory.memory import Memory

if TYPE_CHECKING:
    from tests.cli.conftest import Run

sys.path.insert(0, os.path.dirname(__file__))
