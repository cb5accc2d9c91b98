"""`python -m mdmem` is the program `mdmem`."""

from mdmem.cli.main import program

program()
