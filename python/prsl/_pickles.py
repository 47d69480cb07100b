"""Restores pickled labels, rules, combinations and findings."""

from __future__ import annotations

from typing import Any

from . import _prsl
from .errors import PrslError


def restore(kind: str, version: str, fields: tuple[Any, ...]) -> Any:
    """The object of this class with these fields, as pickled by this version of the package."""
    try:
        return getattr(_prsl, kind)._restore(*fields)
    except (AttributeError, TypeError) as error:
        raise PrslError(
            f"the {kind} was pickled by prsl {version} and cannot be read by prsl {_prsl.__version__}"
        ) from error
