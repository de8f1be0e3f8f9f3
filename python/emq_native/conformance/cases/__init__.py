# SPDX-License-Identifier: BSD-3-Clause
"""The cases, one module a family."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules


def load() -> None:
    """Import every family, so that its cases are registered."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
