"""The program `mdmem`: parse, one call of the façade, render."""
