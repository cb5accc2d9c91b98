"""Templates: what a new memory looks like. Jinja2, sandboxed, strict about what is missing, bounded."""

from mdmem.template.templates import Shown, TemplateInfo, Templates

__all__ = ["Shown", "TemplateInfo", "Templates"]
