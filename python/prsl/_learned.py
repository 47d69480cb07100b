"""The result of learning."""

from __future__ import annotations

from dataclasses import dataclass, field

from ._model import Model


@dataclass(frozen=True)
class Addition:
    """Rules that were added together, by the recipe "clauses"."""

    #: The rules as text, without their probability.
    rules: list[str]
    #: Gain in penalized log-likelihood of the rows, in nats, after all parameters were refitted.
    gain: float
    #: The price of the rules, in nats. Rules are added only if they gain more.
    price: float
    #: Mean log-likelihood afterward, per row.
    log_likelihood: float
    #: The next candidates as text, with their estimated gains.
    runners_up: list[tuple[str, float]]


@dataclass(frozen=True)
class Learned:
    """The result of learning.

    Log-likelihoods are means of ln P(known truths | beliefs) over the rows learned from. With the recipe "paper" they are
    means over the validation set.
    """

    #: The labels with all rules and calibrators.
    model: Model
    #: "clauses" or "paper".
    recipe: str
    #: Number of passes over the candidates; with the recipe "paper", number of optimizer steps.
    n_iter: int
    #: The log-likelihood of the raw beliefs, without rules.
    beliefs_alone: float
    #: The log-likelihood of calibrated beliefs with the given rules.
    base_alone: float
    #: The log-likelihood under the model.
    log_likelihood: float
    #: The log-likelihood of the validation set under the model; `None` without a validation set.
    validation: float | None = None
    #: The additions of rules, in order. Empty with the recipe "paper".
    path: list[Addition] = field(default_factory=list)
    #: With the recipe "paper": step, log-likelihood of the last batches (`None` at first) and of the validation set.
    curve: list[tuple[int, float | None, float]] = field(default_factory=list)
    #: Number of rows whose truths the given rules exclude. They are not learned from.
    n_impossible: int = 0
    #: Whether learning was stopped early.
    interrupted: bool = False

    @property
    def gains(self) -> list[float | None]:
        """The gain of every rule, in the order of `model.rules`; `None` for rules without a note, such as expert rules.

        It is the log-likelihood of the rows, in nats, that is lost if the rule is removed and the others are refitted.
        """
        return [rule.learned.gain if rule.learned else None for rule in self.model.rules]
