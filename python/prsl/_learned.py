"""What was learned, and how it went."""

from __future__ import annotations

from dataclasses import dataclass

from ._model import Model


@dataclass(frozen=True)
class Learned:
    """What was learned. Likelihoods are means over the validation rows of ln P(known truths | beliefs)."""

    #: The labels with all rules and calibrators.
    model: Model
    #: How much was learned, in words.
    size: str
    #: Steps of the optimizer, of all sizes that were tried.
    n_steps: int
    #: For the chosen size: steps, likelihood of training rows (`None` at first) and of validation rows.
    curve: list[tuple[int, float | None, float]]
    #: The likelihood under the model.
    validation: float
    #: The likelihood of the beliefs as they were given.
    beliefs_alone: float
    #: The likelihood of calibrated beliefs, with the rules that were there before.
    base_alone: float
    #: For each rule: what the validation rows lose without it.
    gains: list[float]
    #: Whether somebody asked to stop early.
    interrupted: bool
