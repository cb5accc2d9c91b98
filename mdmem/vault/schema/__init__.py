"""Schemas: what a memory must look like, as JSON Schema 2020-12.

`Schemas` holds the built-in schemas and the vault's own, chooses the one that a memory follows, and tells
every violation with its place. Beside the keywords of 2020-12 there is `x-body`, for the Markdown below the
fields (`mdmem.vault.schema.violation`).
"""

from __future__ import annotations

from mdmem.vault.schema.schemas import SchemaInfo, Schemas

__all__ = ["SchemaInfo", "Schemas"]
