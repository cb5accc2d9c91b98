"""`python -m mdmem` is the program `mdmem`."""

from mdmem.cli import program

program()
