"""An agent in a process of its own: it changes memories through the library, a JSON line for each change.

agent_worker.py ROOT     reads `[verb, *arguments]`, and prints the code of the error, or an empty line
"""

from __future__ import annotations

import json
import sys

import mdmem
from mdmem.errors import MdmemError

memory = mdmem.open(sys.argv[1])
for line in sys.stdin:
    verb, *arguments = json.loads(line)
    try:
        getattr(memory, verb)(*arguments)
        code = ""
    except MdmemError as error:
        code = error.code
    sys.stdout.write(f"{code}\n")
    sys.stdout.flush()
