"""Schemas: what a memory must look like, as JSON Schema 2020-12, and how a violation is told."""

from __future__ import annotations

from mdmem.vault.schema.schemas import SchemaInfo, Schemas

__all__ = ["SchemaInfo", "Schemas"]
