"""prsl: classifiers stacked with probabilistic rules.

>>> import prsl
>>> model = prsl.Model.parse('''
... label activity: walking, normal, overhead
... label feet: gait, standing
... label hands: high, centered, low
... rule 0.8: high & standing -> overhead
... rule 0.9: normal -> centered | low
... rule 1: walking <-> gait
... ''')
>>> posterior = model.predict({
...     "activity": [[0.1, 0.4, 0.5]], "feet": [[0.05, 0.95]], "hands": [[0.5, 0.3, 0.2]]})
>>> posterior["activity"].round(3)
array([[0.007, 0.289, 0.703]])

Public names:

* :class:`Model`, its :class:`Posterior` and :class:`Explanation`, and :class:`LearnedNote` of its rules
* :class:`Counterfactuals` (what would change an answer) and :class:`InformationGains` (what to ask next)
* :class:`RuleStacker` (beliefs in) and :class:`RuleStackingClassifier` (features in), two scikit-learn estimators
* :class:`Learned`, the result of learning, with its :class:`Addition` steps
* :mod:`prsl.metrics`, :mod:`prsl.displays`, :mod:`prsl.data`, :mod:`prsl.rules`, :mod:`prsl.errors`
"""

from . import data, errors, metrics, rules
from ._answers import Counterfactuals, InformationGains
from ._classifier import RuleStackingClassifier
from ._explanation import Explanation
from ._learned import Addition, Learned
from ._model import Model, ModelBuilder
from ._posterior import Posterior
from ._prsl import Combination, Finding, Label, Rule, __version__
from ._stacker import RuleStacker
from .errors import PrslError, PrslWarning
from .rules import LearnedNote

__all__ = [
    "Addition",
    "Combination",
    "Counterfactuals",
    "Explanation",
    "Finding",
    "InformationGains",
    "Label",
    "Learned",
    "LearnedNote",
    "Model",
    "ModelBuilder",
    "Posterior",
    "PrslError",
    "PrslWarning",
    "Rule",
    "RuleStacker",
    "RuleStackingClassifier",
    "__version__",
    "data",
    "displays",
    "errors",
    "metrics",
    "rules",
]


def __getattr__(name: str) -> object:
    # Matplotlib is optional, and slow to import.
    if name == "displays":
        import importlib

        return importlib.import_module("prsl.displays")
    raise AttributeError(f"module 'prsl' has no attribute {name!r}")
