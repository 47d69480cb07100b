"""The paper's worked example and formulas."""

import importlib.util

import numpy as np
import pytest

from bench.paper import example, formulas

needs_prsl = pytest.mark.skipif(importlib.util.find_spec("prsl") is None, reason="the Python package prsl is not installed")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("p", [1.0, 0.999, 0.8])
def test_corrected_gradients_agree_with_differences(seed: int, p: float):
    model = formulas.small(p, seed)
    for title, known, at in formulas.CASES:
        assert formulas.corrected(model, known, at) == pytest.approx(model.difference(known, at), abs=1e-7), title


def test_printed_gradients_are_right_for_p_1_except_where_1_over_q_is_missing():
    model = formulas.small(1.0)
    for title, known, at in formulas.CASES:
        right = formulas.printed(model, known, at) == pytest.approx(model.difference(known, at), abs=1e-7)
        assert right == (title != "some known, category known and correct"), title


def test_the_printed_soft_minimum_leaves_its_range():
    assert formulas.soft_minimum(np.zeros(2), mean=False) == pytest.approx(-np.log(2) / 20)
    assert formulas.soft_minimum(np.ones(3), mean=False) == pytest.approx(1 - np.log(3) / 20)
    assert formulas.soft_minimum(np.ones(3), mean=True) == pytest.approx(1.0)


@needs_prsl
def test_the_joint_table_of_the_paper_is_right_and_its_marginals_are_not():
    from prsl import Model

    from bench.paper.provenance import ROOT

    model = Model.load(ROOT / "examples" / "warehouse.prsl")
    joint = example.joint(model, example.BELIEFS)
    for assignment, printed in example.PRINTED_JOINT.items():
        assert joint[assignment] == pytest.approx(printed, abs=1e-4), assignment
    assert sum(joint.values()) == pytest.approx(1.0)
    overhead = sum(value for assignment, value in joint.items() if assignment[0] == "overhead")
    assert overhead == pytest.approx(0.7034, abs=1e-4)
    assert abs(overhead - example.PRINTED_MARGINALS["activity"][2]) > 0.2
