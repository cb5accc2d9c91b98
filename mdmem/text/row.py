"""Rows that a note has many of, made without the constructor that `NamedTuple` writes."""

from __future__ import annotations

# `new(Span, (start, end))` is `Span(start, end)` in a third of the time: that constructor is a Python
# function. Every field has to be given, in order.
new = tuple.__new__
