"""The metrics against values computed by hand."""

import numpy as np
import pytest

from bench.paper.metrics import LOG_FLOOR, Prediction, independent, reliability, row_log_likelihood, score

MARGINALS = np.array([[0.9, 0.2], [0.6, 0.5], [0.0, 1.0]])
TRUTHS = np.array([[1, 0], [0, 0], [1, 1]])


def test_rows_multiply_their_beliefs():
    values = row_log_likelihood(MARGINALS, TRUTHS)
    np.testing.assert_allclose(values, [np.log(0.72), np.log(0.2), LOG_FLOOR])
    assert pytest.approx(-690.7755278982137) == LOG_FLOOR


def test_scores_by_hand():
    scores = score(independent(MARGINALS, TRUTHS), TRUTHS)
    assert scores["joint_accuracy"] == pytest.approx(1 / 3)
    assert scores["hamming_loss"] == pytest.approx(2 / 6)
    assert scores["median_joint"] == pytest.approx(np.log(0.2))
    assert scores["mean_labelwise"] == pytest.approx((np.log(0.72) + np.log(0.2) + LOG_FLOOR) / 3)
    # Bins by belief: 0.0 | 0.2 | 0.5 | 0.6 | 0.9 and 1.0; distances 1, 0.2, 0.5, 0.6 and |1.9 - 2|.
    assert scores["calibration_error"] == pytest.approx((1.0 + 0.2 + 0.5 + 0.6 + 0.1) / 6)


def test_joint_accuracy_is_of_the_mode_and_hamming_loss_of_the_labels():
    prediction = Prediction(MARGINALS, np.zeros((3, 2)), TRUTHS, np.array([-1.0, -np.inf, -3.0]))
    scores = score(prediction, TRUTHS)
    assert scores["joint_accuracy"] == 1.0
    assert scores["hamming_loss"] == pytest.approx(3 / 6)
    assert scores["mean_joint"] == pytest.approx((-4.0 + LOG_FLOOR) / 3)


def test_nan_is_refused():
    prediction = independent(np.array([[np.nan, 0.5]]), np.array([[1, 0]]))
    with pytest.raises(ValueError, match="not numbers"):
        score(prediction, np.array([[1, 0]]))


def test_every_belief_is_in_a_bin():
    strata = reliability(MARGINALS, TRUTHS)
    assert strata.count.tolist() == [1, 0, 1, 0, 0, 1, 1, 0, 0, 2]
    assert strata.positive.sum() == TRUTHS.sum()
