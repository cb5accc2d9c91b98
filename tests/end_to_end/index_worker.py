"""A process that makes an index current, to be killed at any instant: python index_worker.py VAULT."""

from __future__ import annotations

import sys

from mdmem.index.index import Index

if __name__ == "__main__":
    index = Index(sys.argv[1])
    # All that a sync needs is loaded and open before it is said to begin.
    index.rows("SELECT 1")
    sys.stdout.write("begins\n")
    sys.stdout.flush()
    index.sync()
