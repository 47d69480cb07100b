"""A script as users write it. mypy and pyright check it in strict mode, and it runs."""

from __future__ import annotations

import pathlib
import tempfile

import numpy as np
import numpy.typing as npt

from prsl import (
    Addition,
    Explanation,
    Finding,
    Label,
    Learned,
    LearnedNote,
    Model,
    Posterior,
    Progress,
    PrslError,
    Rule,
    RuleStacker,
    RuleStackingClassifier,
    metrics,
)

Numbers = npt.NDArray[np.float64]


def expert_model() -> Model:
    """A model, built and edited."""
    model = Model.builder().label("rain").label("ground", ["dry", "wet"]).rule("rain -> wet", 0.95, name="wets").build()
    model = model.edit().label("cold", latent=True, prior=0.3).rule("cold -> !rain", 0.6).build()
    labels: list[Label] = model.labels
    rules: list[Rule] = model.rules
    findings: list[Finding] = model.check()
    names: list[str] = [label.name for label in labels]
    severities: list[str] = [finding.severity for finding in findings]
    assert names == ["rain", "ground", "cold"] and rules[0].probability == 0.95 and "error" not in severities
    return model


def ask(model: Model) -> float:
    """Predictions and an explanation."""
    beliefs: dict[str, Numbers] = {"rain": np.array([0.9, 0.2]), "ground": np.array([[0.7, 0.3], [0.5, 0.5]])}
    posterior: Posterior = model.predict(beliefs, "both", top=2, threads=1)
    wet: Numbers = posterior["ground", "wet"]
    statuses: list[str] = posterior.status.tolist()
    best: list[dict[str, str] | None] = posterior.assignments
    assert statuses == ["ok", "ok"] and best[0] is not None and best[0]["rain"] == "yes"
    explanation: Explanation = model.explain(beliefs, row=0)
    texts: list[str] = [str(rule["sentence"]) for rule in explanation.rules]
    assert explanation.possible and texts[0] == "if rain then wet, 0.95"
    return float(wet[0])


def compare(model: Model) -> float:
    """Scores of two models."""
    beliefs = {"rain": [0.9, 0.2, 0.6], "ground": [[0.3, 0.7], [0.8, 0.2], [0.4, 0.6]]}
    truths: dict[str, list[int] | list[str]] = {"rain": [1, 0, 1], "ground": ["wet", "dry", "wet"]}
    calibrated: Model = model.calibrate(beliefs, truths, "platt")
    scores = model.compare(calibrated, beliefs, truths)
    return float(scores["mean_joint_log_likelihood"]["difference"])


def learn() -> Learned:
    """Rules from beliefs, with a callback."""
    rng = np.random.default_rng(1)
    y: npt.NDArray[np.int64] = np.repeat(rng.integers(0, 2, 200), 2).reshape(-1, 2)
    yes: Numbers = np.clip(0.5 + 0.2 * (y - 0.5) + 0.1 * rng.normal(size=y.shape), 0.01, 0.99)
    seen: list[float] = []

    def tell(progress: Progress) -> bool:
        seen.append(progress.seconds)
        return progress.n_rules < 100

    stacker = RuleStacker(["left", "right"], parsimony="predict", callbacks=tell, max_seconds=60.0).fit(yes, y)
    learned: Learned = stacker.learned_
    additions: list[Addition] = learned.path
    notes: list[LearnedNote | None] = [rule.learned for rule in stacker.model_.rules]
    assert seen and len(additions) >= 1 and any(note is not None and note.gain > 0 for note in notes)
    accuracy: float = metrics.joint_accuracy(y, stacker.predict(yes))
    assert 0.0 <= accuracy <= 1.0
    again: RuleStacker = RuleStacker.from_model(learned.model)
    assert np.array_equal(again.predict(yes), stacker.predict(yes))
    return learned


def stack() -> RuleStackingClassifier:
    """Rules beside the default classifiers."""
    rng = np.random.default_rng(2)
    y: npt.NDArray[np.int64] = rng.integers(0, 2, (40, 2))
    X: Numbers = y + rng.normal(size=y.shape)
    classifier = RuleStackingClassifier(
        rules=[(0.9, "a -> b")], labels=["a", "b"], n_rules=0, cv=2, threshold=0.4, random_state=0
    )
    return classifier.fit(X, y)


def main() -> None:
    model = expert_model()
    assert 0.0 < ask(model) < 1.0 and np.isfinite(compare(model))
    path = pathlib.Path(tempfile.mkdtemp()) / "learned.prsl"
    learn().model.save(path)
    assert len(Model.load(path).rules) > 0
    assert len(stack().model_.labels) == 2
    try:
        Model.parse("rule 2: nothing")
    except PrslError as error:
        assert "nothing" in str(error) or "2" in str(error)


if __name__ == "__main__":
    main()
