"""The result of learning."""

from __future__ import annotations

from dataclasses import dataclass

from ._model import Model


@dataclass(frozen=True)
class Learned:
    """The result of learning. Likelihoods are means of ln P(known truths | beliefs) over the validation set."""

    #: The labels with all rules and calibrators.
    model: Model
    #: The selected size, in words.
    size: str
    #: Number of optimizer steps over all candidates.
    n_steps: int
    #: For the selected size: step, likelihood on the training set (`None` at first) and on the validation set.
    curve: list[tuple[int, float | None, float]]
    #: The likelihood under the model.
    validation: float
    #: The likelihood of the raw beliefs.
    beliefs_alone: float
    #: The likelihood of calibrated beliefs with the given rules.
    base_alone: float
    #: For each learned rule: the loss of likelihood on the validation set without it.
    gains: list[float]
    #: Whether learning was stopped early.
    interrupted: bool
