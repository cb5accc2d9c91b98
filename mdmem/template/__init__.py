"""Templates: what a new memory looks like. Jinja2, sandboxed, strict about what is missing, bounded."""

from mdmem.template.library import Templates
from mdmem.template.model import Shown, TemplateInfo, Variable

__all__ = ["Shown", "TemplateInfo", "Templates", "Variable"]
