"""`python -m mdmem` is the program `mdmem`."""

import sys

from mdmem.cli import main

sys.exit(main())
