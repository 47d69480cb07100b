"""The methods on problems with known answers."""

import numpy as np
import pytest
from conftest import simulate

from bench.paper.calibrate import IsotonicScaling, PlattScaling
from bench.paper.datasets import Fold, Part
from bench.paper.methods.linear import Mlwse, Ridge, dissimilarity, mlwse, ridge
from bench.paper.methods.network import Network
from bench.paper.methods.powerset import LabelPowerset
from bench.paper.methods.prior import LabelSetPrior
from bench.paper.methods.relevance import Isotonic, Platt
from bench.paper.metrics import score


def fold_of(beliefs: np.ndarray, truths: np.ndarray) -> Fold:
    parts = [Part(rows, beliefs[rows], truths[rows]) for rows in np.array_split(np.arange(len(truths)), 3)]
    return Fold("toy", 1, *parts)


@pytest.fixture
def toy() -> Fold:
    _, truths, beliefs = simulate(600)
    return fold_of(beliefs, truths)


def test_ridge_of_no_strength_is_least_squares(toy: Fold):
    x, y = toy.train.beliefs, toy.train.truths.astype(float)
    expected, *_ = np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), y, rcond=None)
    np.testing.assert_allclose(ridge(x, y, 0.0).weights, expected[:-1], atol=1e-10)


def test_mlwse_without_regularization_is_least_squares(toy: Fold):
    x, y = toy.train.beliefs, toy.train.truths
    np.testing.assert_allclose(mlwse(x, y, 0.0, 0.0, 20000).weights, ridge(x, y, 0.0).weights, atol=1e-4)


def test_mlwse_minimizes_its_objective(toy: Fold):
    x, y = toy.train.beliefs - toy.train.beliefs.mean(axis=0), toy.train.truths - toy.train.truths.mean(axis=0)
    relation = dissimilarity(toy.train.truths)
    values, vectors = np.linalg.eigh(relation)
    relation = (vectors * np.maximum(values, 0.0)) @ vectors.T

    def objective(weights: np.ndarray) -> float:
        squares = ((x @ weights - y) ** 2).sum() / (2 * len(x))
        return squares + 0.002 * np.abs(weights).sum() + 0.005 * np.trace(relation @ weights.T @ weights)

    weights = mlwse(toy.train.beliefs, toy.train.truths, 0.002, 0.01, 20000).weights
    random = np.random.default_rng(0)
    least = objective(weights)
    assert all(objective(weights + 0.02 * random.normal(size=weights.shape)) > least for _ in range(50))


def test_sparsity_removes_weights(toy: Fold):
    weights = mlwse(toy.train.beliefs, toy.train.truths, 0.02, 0.0).weights
    assert (weights == 0.0).any()
    assert (mlwse(toy.train.beliefs, toy.train.truths, 10.0, 0.0).weights == 0.0).all()


def test_labels_that_always_occur_together_are_alike():
    truths = np.array([[1, 1, 0], [0, 0, 1], [1, 1, 0]])
    np.testing.assert_allclose(dissimilarity(truths), [[0, 0, 1], [0, 0, 1], [1, 1, 0]], atol=1e-12)


@pytest.mark.parametrize("method", [Ridge, Mlwse, LabelSetPrior, Network])
def test_stacking_beats_its_beliefs_on_a_label_that_others_explain(toy: Fold, method: type):
    model = method()
    model.fit(toy)
    raw = (toy.test.beliefs > 0.5) == toy.test.truths
    stacked = model.predict(toy.test)
    assert (stacked.labels == toy.test.truths)[:, 2].mean() > raw[:, 2].mean() + 0.03
    assert score(stacked, toy.test.truths)["mean_joint"] > -2.5


@pytest.mark.parametrize("method", [LabelSetPrior, LabelPowerset])
def test_methods_over_label_sets_are_distributions(method: type):
    features, truths, beliefs = simulate(600)
    parts = [Part(rows, beliefs[rows], truths[rows], features[rows]) for rows in np.array_split(np.arange(600), 3)]
    fold = Fold("toy", 1, *parts)
    model = method(quick=True)
    model.fit(fold)
    sets = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)])

    def few(labels: np.ndarray) -> Part:
        return Part(fold.test.rows[:5], fold.test.beliefs[:5], labels, fold.test.features[:5])

    for _ in ("train", "train+val"):
        table = np.array([model.predict(few(np.tile(labels, (5, 1)))).joint for labels in sets])
        prediction = model.predict(few(fold.test.truths[:5]))
        np.testing.assert_allclose(np.exp(table).sum(axis=0), 1.0)
        np.testing.assert_allclose(np.exp(table).T @ sets, prediction.marginals)
        np.testing.assert_array_equal(sets[table.argmax(axis=0)], prediction.mode)
        model.refit(fold)


@pytest.mark.parametrize("method", [Platt, Isotonic, Ridge, Mlwse, LabelSetPrior, Network])
def test_refitting_uses_the_validation_rows(toy: Fold, method: type):
    model = method(quick=True)
    chosen = model.fit(toy)
    before = model.predict(toy.test).marginals
    assert model.refit(toy) == chosen
    assert np.abs(model.predict(toy.test).marginals - before).max() > 1e-6


def test_platt_recovers_the_distortion():
    random = np.random.default_rng(2)
    odds = random.normal(size=20000)
    truth = (random.random(20000) < 1.0 / (1.0 + np.exp(-odds))).astype(np.int8)
    distorted = 1.0 / (1.0 + np.exp(-(odds - 0.6) / 2.0))
    scaling = PlattScaling(0.01).fit(distorted[:, None], truth[:, None])
    assert scaling.slope[0] == pytest.approx(2.0, abs=0.1)
    assert scaling.intercept[0] == pytest.approx(0.6, abs=0.1)
    np.testing.assert_array_equal(scaling.apply_to(0, distorted), scaling.apply(distorted[:, None])[:, 0])


def test_platt_stays_finite_on_a_label_without_positives():
    beliefs = np.full((50, 1), 0.01)
    calibrated = PlattScaling(0.01).fit(beliefs, np.zeros((50, 1))).apply(beliefs)
    assert 0.0 < calibrated[0, 0] < 0.01


def test_isotonic_is_nondecreasing_and_within_its_bounds():
    random = np.random.default_rng(3)
    beliefs = random.random((200, 1))
    truths = (random.random((200, 1)) < beliefs**2).astype(np.int8)
    calibrated = IsotonicScaling().fit(beliefs, truths).apply(np.linspace(0, 1, 101)[:, None])[:, 0]
    assert (np.diff(calibrated) >= 0.0).all()
    assert calibrated.min() >= 1 / 202 and calibrated.max() <= 1 - 1 / 202
