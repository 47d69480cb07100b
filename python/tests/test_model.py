"""Models, beliefs in every form, and results."""

from __future__ import annotations

import pathlib
import pickle
import re

import numpy as np
import pytest

import prsl
from prsl import Model, errors

BELIEFS = {
    "activity": [[0.1, 0.4, 0.5], [0.2, 0.2, 0.6]],
    "feet": [[0.05, 0.95], [0.5, 0.5]],
    "hands": [[0.5, 0.3, 0.2], [np.nan, np.nan, np.nan]],
}


def test_the_worked_example(warehouse: str) -> None:
    posterior = Model.parse(warehouse).predict(BELIEFS, "both")
    assert posterior["activity"][0].round(3).tolist() == [0.007, 0.289, 0.703]
    assert posterior.assignments[0] == {"activity": "overhead", "feet": "standing", "hands": "high"}
    assert posterior.log_probability is not None and -1.5 < posterior.log_probability[0, 0] < 0
    assert len(posterior) == 2 and list(posterior) == posterior.keys() == ["activity", "feet", "hands"]


def test_beliefs_in_every_form_are_the_same_beliefs(warehouse: str) -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    model = Model.parse(warehouse)
    expected = model.predict(BELIEFS).values
    arrays = {label: np.array(values) for label, values in BELIEFS.items()}
    together = np.column_stack(list(arrays.values()))
    columns = {
        f"{label.name}={category}": arrays[label.name][:, at]
        for label in model.labels
        for at, category in enumerate(label.categories)
    }
    strided = {label: np.asfortranarray(np.repeat(values, 2, axis=0))[::2] for label, values in arrays.items()}
    nulls = {name: [None if value != value else value for value in values] for name, values in columns.items()}
    forms = {
        "list": list(arrays.values()),
        "array": together,
        "strided": strided,
        "pandas": pandas.DataFrame(columns),
        "polars": polars.DataFrame(columns),
        "pyarrow": pyarrow.table(nulls),
        "polars in another order": polars.DataFrame(dict(reversed(nulls.items()))),
        "batches": pyarrow.concat_tables([pyarrow.table(nulls).slice(0, 1), pyarrow.table(nulls).slice(1)]),
    }
    for name, form in forms.items():
        np.testing.assert_array_equal(model.predict(form).values, expected, err_msg=name)
    narrow = {label: values.astype(np.float32) for label, values in arrays.items()}
    np.testing.assert_allclose(model.predict(narrow, normalize=True).values, expected, atol=1e-7)


def test_observed_categories_and_single_numbers() -> None:
    model = Model.parse("label weather: sun, rain\nlabel alarm\nrule 0.9: rain -> alarm")
    posterior = model.predict({"weather": ["rain", None], "alarm": [0.5, 0.5]})
    assert posterior["weather"][0].tolist() == [0.0, 1.0]
    assert posterior["alarm"][0, 1] == pytest.approx(0.9)
    with pytest.raises(errors.UnknownCategoryError, match="row 1, counted from 0: unknown category `snow`"):
        model.predict({"weather": ["rain", "snow"]})


def test_answers_do_not_depend_on_order_batches_or_threads(warehouse: str) -> None:
    model = Model.parse(warehouse)
    rng = np.random.default_rng(1)
    beliefs = [rng.dirichlet(np.ones(n), 300) for n in (3, 2, 3)]
    whole = model.predict(beliefs, threads=2).values
    assert whole is not None
    order = rng.permutation(300)
    np.testing.assert_array_equal(model.predict([b[order] for b in beliefs], threads=1).values, whole[order])
    parts = [model.predict([b[at : at + 7] for b in beliefs]).values for at in range(0, 300, 7)]
    np.testing.assert_array_equal(np.vstack(parts), whole)


def test_engines_and_queries(warehouse: str) -> None:
    model = Model.parse(warehouse)
    exact = model.predict(BELIEFS, engine="exact")
    np.testing.assert_allclose(model.predict(BELIEFS, engine="enumeration").values, exact.values, atol=1e-12)
    loopy = model.predict(BELIEFS, engine="loopy", max_sweeps=50)
    assert loopy.engine == "loopy" and loopy.sweeps is not None and loopy.residual is not None
    top = model.predict(BELIEFS, "mpe", top=4)
    assert top.positions is not None and top.positions.shape == (2, 4, 3)
    assert top.log_weight is not None and (np.diff(top.log_weight, axis=1) <= 0).all()
    drawn = model.predict(BELIEFS, "samples", samples=5000, seed=3)
    assert drawn.positions is not None
    share = (drawn.positions[0, :, 0] == 2).mean()
    assert share == pytest.approx(exact["activity"][0, 2], abs=0.03)
    assert "junction tree" in model.plan()["marginals"] and "mpe" in model.plan("both")
    for wrong in ({"query": "all"}, {"engine": "magic"}, {"top": 0, "query": "mpe"}, {"samples": 0, "query": "samples"}):
        with pytest.raises(errors.ArgumentError):
            model.predict(BELIEFS, **wrong)


def test_files_pickles_and_copies_are_the_same_model(warehouse: str, tmp_path: pathlib.Path) -> None:
    model = Model.parse(warehouse + "typical 2.5: overhead, standing, high\ncalibrate feet platt 1.25 -0.5\n")
    for name in ("model.prsl", "model.json"):
        model.save(tmp_path / name)
        assert Model.load(tmp_path / name) == model
    assert pickle.loads(pickle.dumps(model)) == model
    assert hash(Model.parse(str(model))) == hash(model)
    assert model != Model.parse(warehouse) and model.typical[0].weight == 2.5
    assert model.labels[1].calibrator == "platt" and model.without_calibrators().labels[1].calibrator is None
    with pytest.raises(errors.FileError, match="cannot open"):
        Model.load(tmp_path / "nowhere.prsl")
    (tmp_path / "half.prsl").write_text(str(model)[: len(str(model)) // 2])
    with pytest.raises(errors.ModelError):
        Model.load(tmp_path / "half.prsl")
    with pytest.raises(OSError):
        model.save(tmp_path / "no such folder" / "model.prsl")


def test_editing(warehouse: str) -> None:
    model = Model.parse(warehouse)
    builder = model.edit().label("alarm", prior=0.1, latent=True).rule("overhead -> alarm", 0.7, name="strain")
    larger = builder.build()
    assert [rule.name for rule in larger.rules][-1] == "strain" and larger.labels[-1].classifier is None
    with pytest.raises(errors.ArgumentError, match="has been built"):
        builder.build()
    assert larger.edit().remove_rule("strain").remove_label("alarm").build() == model
    assert len(model.edit().remove_rule(0).build().rules) == 2
    noisy = Model.builder().label("a").label("b").noisy_or({"a": {"no": 0.2}, "b": {"yes": 0.1}}, 0.999).build()
    assert noisy.rules[0].kind == "noisy_or" and noisy.rules[0].labels == ["a", "b"]
    with pytest.raises(errors.UnknownRuleError):
        model.edit().remove_rule("nobody").build()


def test_texts_for_missing_values() -> None:
    model = Model.parse("label rain\nlabel sky: clear, cloudy, dark\nrule 0.9: rain -> dark")
    pyarrow = pytest.importorskip("pyarrow")
    unknown = model.predict({"rain": [0.8, 0.8]})
    frame = pyarrow.table({"rain": ["0.8", "0.8"], "sky": ["NA", "?"]})
    np.testing.assert_array_equal(model.predict(frame, missing=["NA", "?"]).values, unknown.values)
    observed = {"rain": [0.8, 0.8], "sky": ["NA", "?"]}
    np.testing.assert_array_equal(model.predict(observed, missing=["NA", "?"]).values, unknown.values)
    with pytest.raises(errors.PrslError, match="NA"):
        model.predict(observed)
    with pytest.raises(errors.ArgumentError, match="expected a list of texts"):
        model.predict(observed, missing="NA")


def test_deprecated_names(warehouse: str) -> None:
    found = Model.parse(warehouse).predict(BELIEFS, "mpe")
    for old, new in (
        ("explanations", "assignments"),
        ("all_explanations", "all_assignments"),
        ("explanation_engine", "assignment_engine"),
    ):
        with pytest.warns(DeprecationWarning, match=f"use `Posterior.{new}`"):
            assert getattr(found, old) == getattr(found, new)


def test_explanations(warehouse: str) -> None:
    explanation = Model.parse(warehouse).explain(BELIEFS, 0)
    assert explanation.possible and explanation.best is not None and explanation.runner_up is not None
    assert str(explanation) and len(explanation.labels) == len(explanation.rules) == 3
    impossible = Model.parse("label a\nlabel b\nrule 1: a -> b\nrule 1: !(a & b)").explain({"a": ["yes"]})
    assert not impossible.possible and [rule["number"] for rule in impossible.conflicts] == [1, 2]
    with pytest.raises(errors.ArgumentError):
        Model.parse(warehouse).explain(BELIEFS, 2)


def test_pages_are_html_and_escape_names(warehouse: str) -> None:
    model = Model.parse('label "<b>": "x & y", z\nlabel other\nrule 0.9: "<b>"=z -> other\ntypical 1: z, other')
    beliefs = {"<b>": [[0.5, 0.5]], "other": [0.2]}
    for page in (
        model._repr_html_(),
        model.predict(beliefs)._repr_html_(),
        model.predict(beliefs, "mpe")._repr_html_(),
        model.explain(beliefs)._repr_html_(),
    ):
        assert "&lt;b&gt;" in page and "<b>:" not in page and page.count("<table>") >= 1
    assert Model.parse(warehouse).graph().startswith("<svg")


def test_every_kind_of_error_has_its_class(root: pathlib.Path) -> None:
    source = (root / "crates" / "prsl" / "src" / "error" / "mod.rs").read_text()
    kinds = re.findall(r'=> "(\w+)",', source[source.index("pub fn kind") :])
    assert len(kinds) > 30
    for kind in kinds:
        assert issubclass(getattr(errors, f"{kind}Error"), errors.PrslError), kind


@pytest.mark.parametrize(
    ("beliefs", "kind", "message"),
    [
        ({"feet": [[0.5, 0.6]]}, errors.SumError, "row 0, counted from 0: belief for label `feet` sums to 1.1"),
        ({"feet": [[0.5, 0.5], [1.5, -0.5]]}, errors.NotAProbabilityError, "row 1"),
        ({"feet": [[0.0, 0.0]]}, errors.BeliefError, "feet"),
        ({"feet": [[0.2, 0.3, 0.5]]}, errors.LengthError, r"expected \(n, 2\)"),
        ({"foot": [[0.5, 0.5]]}, errors.UnknownLabelError, "unknown label `foot`"),
        ({"feet": [[0.5, 0.5]], "hands": [[1, 0, 0], [1, 0, 0]]}, errors.ArgumentError, "different numbers of rows"),
        ({"feet": [[np.inf, 0.5]]}, errors.NotAProbabilityError, "inf"),
        (np.ones((2, 3)), errors.LengthError, "3 columns, expected 8"),
        (3.5, errors.ArgumentError, "float"),
        ([[[0.5, 0.5]]], errors.ArgumentError, "expected 3, one for each label"),
    ],
)
def test_invalid_beliefs(warehouse: str, beliefs: object, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as raised:
        Model.parse(warehouse).predict(beliefs)
    assert isinstance(raised.value, ValueError)


def test_a_frame_with_a_wrong_column_is_named(warehouse: str) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"feet=gait": [0.5, 2.0]})
    with pytest.raises(errors.DataError, match="the frame.*row 2"):
        Model.parse(warehouse).predict(frame)
    with pytest.raises(errors.DataError, match="foot"):
        Model.parse(warehouse).predict(pandas.DataFrame({"foot=gait": [0.5]}))


def test_all_errors_of_a_text_are_reported() -> None:
    with pytest.raises(errors.TextError) as raised:
        Model.parse("label a\nrule 0.9: b\nrule 2: a")
    assert "b" in str(raised.value) and "line" not in type(raised.value).__name__


def test_findings() -> None:
    findings = Model.parse("label a\nlabel b\nrule 0.5: a -> b").check()
    [finding] = [finding for finding in findings if finding.severity != "note"]
    assert (finding.severity, finding.code, finding.line) == ("warning", "no-effect", 3)
    assert "^" in str(finding)


def test_predictions_as_a_frame(warehouse: str) -> None:
    pytest.importorskip("pandas")
    frame = Model.parse(warehouse).predict(BELIEFS, "both").to_pandas()
    assert list(frame.columns[:3]) == ["activity=walking", "activity=normal", "activity=overhead"]
    assert frame["mpe:feet"].tolist()[0] == "standing" and frame["status"].tolist() == ["ok", "ok"]


def test_calibration_and_evaluation() -> None:
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, 800)
    timid = np.where(truth == 1, 0.6, 0.4) + 0.05 * rng.normal(size=800)
    model = Model.parse("label alarm")
    truths = truth.reshape(-1, 1)
    calibrated = model.calibrate({"alarm": timid}, truths, "platt")
    before, after = (m.evaluate({"alarm": timid}, truths) for m in (model, calibrated))
    assert after["mean_joint_log_likelihood"] > before["mean_joint_log_likelihood"] + 0.1
    assert after["expected_calibration_error"] < before["expected_calibration_error"]
    values = calibrated.joint_log_likelihood({"alarm": timid}, truths)
    assert values.mean() == pytest.approx(after["mean_joint_log_likelihood"])
    with pytest.raises(errors.ArgumentError):
        model.calibrate({"alarm": timid}, truths, "magic")


def test_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", prsl.__version__)


def test_missing_and_unproven_assignments_have_their_own_status() -> None:
    names = [f"p{pigeon}_{hole}" for pigeon in range(10) for hole in range(9)]
    rules = ["rule 1: " + " | ".join(f"p{pigeon}_{hole}" for hole in range(9)) for pigeon in range(10)]
    for hole in range(9):
        rules += [f"rule 1: !p{a}_{hole} | !p{b}_{hole}" for b in range(10) for a in range(b)]
    pigeons = Model.parse("\n".join([f"label {name}" for name in names] + rules))
    found = pigeons.predict({"p0_0": [0.6]}, "mpe", memory=1, time_limit=0)
    assert found.status.tolist() == ["not_found"] and found.assignments == [None]
    pairs = [f"label l{label}" for label in range(24)]
    pairs += [f"rule 0.9: l{a} xor l{b}" for b in range(24) for a in range(b)]
    found = Model.parse("\n".join(pairs)).predict({"l0": [0.6]}, "mpe", memory=1, time_limit=1e-9)
    assert found.status.tolist() == ["time_limit"] and found.assignments[0] is not None


def test_engines_are_asked_for_by_name() -> None:
    model = prsl.Model.parse("label a\nlabel b\nlabel c\nrule 1: a -> b\nrule 0.8: b -> c")
    beliefs = {"a": [0.7], "b": [0.4], "c": [0.2]}
    expected = model.predict(beliefs, engine="enumeration")
    for engine in ["auto", "exact", "junction-tree", "circuit"]:
        found = model.predict(beliefs, engine=engine)
        np.testing.assert_allclose(found["c"], expected["c"], rtol=1e-12)
        explanation = model.explain(beliefs, engine=engine)
        assert len(explanation.rules) == 2
    assert model.predict(beliefs, engine="circuit").engine == "circuit"
    assert "approximate" in str(model.explain(beliefs, engine="loopy"))
    with pytest.raises(prsl.errors.ArgumentError, match="unknown engine `tree`"):
        model.explain(beliefs, engine="tree")
