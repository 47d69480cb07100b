"""The methods of the benchmark, in the order of its tables."""

from __future__ import annotations

from .base import Method, Skipped
from .boomer import Boomer, BoomerStacked
from .chain import Chain
from .linear import Mlwse, Ridge
from .network import Network
from .powerset import LabelPowerset
from .prior import LabelSetPrior
from .relevance import BinaryRelevance, Isotonic, Platt
from .stacking import Prsl, PrslPaper, PrslPaperLoopy, PrslPaperLoopyPlatt, PrslPaperPlatt

METHODS: dict[str, type[Method]] = {
    method.key: method
    for method in (
        BinaryRelevance,
        Platt,
        Isotonic,
        Network,
        Mlwse,
        Ridge,
        Chain,
        LabelPowerset,
        LabelSetPrior,
        Boomer,
        BoomerStacked,
        PrslPaper,
        PrslPaperPlatt,
        PrslPaperLoopy,
        PrslPaperLoopyPlatt,
        Prsl,
    )
}
"""Every method by its name on the command line."""

__all__ = ["METHODS", "Method", "Skipped"]
