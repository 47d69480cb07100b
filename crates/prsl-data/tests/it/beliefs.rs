//! The meaning of tables for a model, one test for each rule of it.

use std::io;

use prsl::{BeliefMatrix, Evidence, Label, Model};
use prsl_data::{
    BeliefOptions, BeliefReader, Column, ColumnKind, ColumnSpec, Error, Format, RowColumns, TableReader,
    TableWriter, Target, TruthOptions, TruthReader,
};

const STRICT: BeliefOptions = BeliefOptions { normalize: false, ignore_extra: false };
const NORMALIZE: BeliefOptions = BeliefOptions { normalize: true, ignore_extra: false };
const IGNORE_EXTRA: BeliefOptions = BeliefOptions { normalize: false, ignore_extra: true };

/// Categories in order: high centered low, yes no, left right.
fn model() -> Model {
    Model::builder()
        .label("hands", ["high", "centered", "low"])
        .add_label(Label::binary("alarm").with_prior([0.1, 0.9]))
        .add_label(Label::new("side", ["left", "right"]).latent())
        .build()
        .unwrap()
}

fn csv(text: &str) -> TableReader {
    TableReader::csv(io::Cursor::new(text.to_owned().into_bytes()), "b.csv").unwrap()
}

fn read(model: &Model, table: TableReader, options: BeliefOptions) -> Result<Vec<Vec<f64>>, Error> {
    let mut reader = BeliefReader::new(model, table, options)?;
    let mut rows = Vec::new();
    while let Some(chunk) = reader.next_chunk(2)? {
        rows.extend((0..chunk.n_rows()).map(|row| chunk.row(row).to_vec()));
    }
    Ok(rows)
}

/// The beliefs about hands and alarm.
fn rows(text: &str) -> Vec<Vec<f64>> {
    let rows = read(&model(), csv(text), STRICT).unwrap();
    rows.into_iter().map(|row| row[..5].to_vec()).collect()
}

fn message(text: &str) -> String {
    read(&model(), csv(text), STRICT).expect_err("this table is wrong").to_string()
}

/// A Parquet file with one column of numbers.
fn parquet(name: &str, values: &[f64]) -> TableReader {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.parquet");
    let specs = [ColumnSpec::new(name, ColumnKind::Number)];
    let mut table = TableWriter::create(Target::File(path.clone()), Format::Parquet, &specs).unwrap();
    table.write(&[Column::Number(values.iter().copied().map(Some).collect())]).unwrap();
    table.finish().unwrap();
    TableReader::parquet(std::fs::read(path).unwrap(), "b.parquet").unwrap()
}

#[test]
fn columns_name_label_and_category() {
    let expected = [[0.5, 0.3, 0.2, 0.4, 0.6]];
    assert_eq!(
        rows("alarm=no,alarm=yes,hands=low,hands=high,hands=centered\n0.6,0.4,0.2,0.5,0.3\n"),
        expected
    );
}

#[test]
fn a_yes_no_label_gives_the_probability_of_yes() {
    assert_eq!(rows("alarm\n0.25\n")[0][3..], [0.25, 0.75]);
    assert_eq!(rows("alarm,alarm=no\n0.25,0.75\n")[0][3..], [0.25, 0.75]);
}

#[test]
fn a_unique_category_needs_no_label() {
    assert_eq!(rows("high,centered,low\n0.5,0.3,0.2\n")[0][..3], [0.5, 0.3, 0.2]);
    assert_eq!(rows("no\n0.25\n")[0][3..], [0.75, 0.25]);
}

#[test]
fn a_category_of_two_labels_needs_its_label() {
    let model = Model::parse("label a: x, y\nlabel b: x, z").unwrap();
    for options in [STRICT, IGNORE_EXTRA] {
        let error = read(&model, csv("x\n0.5\n"), options).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`b.csv`: column `x` can mean category `x` of label `a` or category `x` of label `b`; \
             write `label=category`, or rename one of them"
        );
    }
}

#[test]
fn a_label_comes_before_a_category_of_the_same_name() {
    let model = Model::builder().label("a", ["b", "c"]).binary_label("b").build().unwrap();
    assert_eq!(read(&model, csv("b\n0.25\n"), STRICT).unwrap(), [[0.5, 0.5, 0.25, 0.75]]);
}

#[test]
fn names_may_contain_equals_signs() {
    let model = Model::builder().label("a=b", ["c=d", "e"]).binary_label("=").build().unwrap();
    assert_eq!(read(&model, csv("a=b=c=d,==no\n0.25,0.5\n"), STRICT).unwrap(), [[0.25, 0.75, 0.5, 0.5]]);
    let model = Model::builder().label("a", ["b=c", "d"]).label("a=b", ["c", "e"]).build().unwrap();
    let error = read(&model, csv("a=b=c\n0.5\n"), STRICT).unwrap_err().to_string();
    assert_eq!(
        error,
        "`b.csv`: column `a=b=c` can mean category `b=c` of label `a` or category `c` of label `a=b`; \
         write `label=category`, or rename one of them"
    );
}

#[test]
fn a_column_named_like_a_label_gives_observed_categories() {
    assert_eq!(rows("hands\nlow\n\nhigh\n"), [[0.0, 0.0, 1.0, 0.1, 0.9], [1.0, 0.0, 0.0, 0.1, 0.9]]);
}

#[test]
fn a_yes_no_column_is_read_cell_by_cell() {
    let alarm: Vec<_> = rows("alarm,hands\n0.25,\nyes,\nno,\n1,\n,low\n").iter().map(|row| row[3]).collect();
    assert_eq!(alarm, [0.25, 1.0, 0.0, 1.0, 0.1]);
}

#[test]
fn numbers_are_no_observed_categories() {
    let expected = "row 1, column `hands`: `0.5` is not a category of label `hands`, \
                    expected `high`, `centered`, `low`";
    assert_eq!(message("hands\n0.5\n"), format!("`b.csv`, {expected}"));
    let error = read(&model(), parquet("hands", &[0.5]), STRICT).unwrap_err().to_string();
    assert_eq!(error, format!("`b.parquet`, {expected}"));
}

#[test]
fn numbers_may_be_names_of_categories() {
    let model = Model::builder().label("stars", ["1", "2", "3"]).build().unwrap();
    assert_eq!(read(&model, csv("stars\n2\n"), STRICT).unwrap(), [[0.0, 1.0, 0.0]]);
    assert_eq!(read(&model, parquet("stars", &[2.0]), STRICT).unwrap(), [[0.0, 1.0, 0.0]]);
}

#[test]
fn unknown_columns_are_listed_with_suggestions() {
    let table = "id,handz=high,alarm,xyzzy,hihg\n1,0.5,0.5,2,0.5\n";
    assert_eq!(
        message(table),
        "`b.csv`: the model does not know columns `id`, `handz=high` (did you mean `hands=high`?), `xyzzy`, \
         `hihg` (did you mean `high`?); correct the names, or ask to ignore extra columns"
    );
    assert_eq!(
        message("id,alarm\n1,0.5\n"),
        "`b.csv`: the model does not know column `id`; correct the names, or ask to ignore extra columns"
    );
    assert_eq!(
        read(&model(), csv(table), IGNORE_EXTRA).unwrap(),
        [[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 0.5, 0.5, 0.5, 0.5]]
    );
}

#[test]
fn columns_that_mean_the_same_are_refused() {
    for (first, second) in
        [("alarm", "alarm=yes"), ("high", "hands=high"), ("yes", "alarm"), ("alarm=no", "no")]
    {
        assert_eq!(
            message(&format!("{first},{second}\n0.5,0.5\n")),
            format!("`b.csv`: columns `{first}` and `{second}` mean the same; keep one of them")
        );
    }
}

#[test]
fn a_label_is_observed_or_believed_but_not_both() {
    assert_eq!(
        rows("hands,hands=high,alarm,alarm=no\nlow,,yes,\n,0.5,,0.25\n"),
        [[0.0, 0.0, 1.0, 1.0, 0.0], [0.5, 0.25, 0.25, 0.75, 0.25]]
    );
    assert_eq!(
        message("hands,hands=high\nlow,\nlow,0.5\n"),
        "`b.csv`, row 2: column `hands` gives an observed category of label `hands` and column `hands=high` a belief; \
         leave one of them empty"
    );
    let expected = "`b.csv`, row 1: column `alarm` gives an observed category of label `alarm` and column `no` a belief; \
                    leave one of them empty";
    assert_eq!(message("no,alarm\n0,yes\n"), expected);
    assert_eq!(message("alarm,no\nyes,0\n"), expected);
}

#[test]
fn latent_labels_can_be_observed_but_not_believed() {
    assert_eq!(read(&model(), csv("side\nright\n"), STRICT).unwrap()[0][5..], [0.0, 1.0]);
    assert_eq!(read(&model(), csv("side=left,alarm\n,0.5\n"), STRICT).unwrap()[0][5..], [0.5, 0.5]);
    let latent = "label `side` is latent and takes no beliefs; remove `latent` from its declaration, \
                  or give an observed category";
    assert_eq!(message("side=left\n0.5\n"), format!("`b.csv`, row 1, column `side=left`: {latent}"));
    let model = Model::builder().add_label(Label::binary("b").latent()).build().unwrap();
    assert_eq!(read(&model, csv("b\nno\n"), STRICT).unwrap(), [[0.0, 1.0]]);
    assert!(read(&model, csv("b\n0.5\n"), STRICT).unwrap_err().to_string().contains("is latent"));
}

#[test]
fn empty_cells_share_the_remaining_probability() {
    assert_eq!(
        rows("hands=high,hands=low\n0.5,\n0.5,0.25\n")[..],
        [[0.5, 0.25, 0.25, 0.1, 0.9], [0.5, 0.25, 0.25, 0.1, 0.9]]
    );
    assert_eq!(rows("high,centered,low\n1,,\n")[0][..3], [1.0, 0.0, 0.0]);
}

#[test]
fn a_label_that_is_not_given_takes_its_prior() {
    assert_eq!(rows("hands=high,alarm\n,\n"), [[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 0.1, 0.9]]);
}

#[test]
fn beliefs_sum_to_one_or_are_normalized() {
    let table = "high,centered,low\n1,1,2\n";
    assert_eq!(
        message(table).split(';').next(),
        Some("`b.csv`, row 1: belief for label `hands` sums to 4, expected 1 within 1e-6")
    );
    assert_eq!(read(&model(), csv(table), NORMALIZE).unwrap()[0][..3], [0.25, 0.25, 0.5]);
    assert!(
        message("high,low\n0.7,0.7\n").starts_with("`b.csv`, row 1: belief for label `hands` sums to 1.4,")
    );
    assert!(rows("alarm=yes,alarm=no\n0.5,0.5000005\n")[0][3] < 0.5);
}

#[test]
fn invalid_beliefs_are_always_refused() {
    for options in [STRICT, NORMALIZE] {
        let refused = |text: &str| read(&model(), csv(text), options).unwrap_err().to_string();
        assert_eq!(
            refused("alarm,high\n0.5,\n0.5,-0.1\n"),
            "`b.csv`, row 2, column `high`: a belief of -0.1, expected a number from 0 to 1"
        );
        let advice = "; if it stands for a missing value, leave the cell empty or list it as such";
        for text in ["nan", "NaN", "inf", "-inf", "1e999", "yes", "0x1"] {
            let advice = if text.eq_ignore_ascii_case("nan") { advice } else { "" };
            assert_eq!(
                refused(&format!("high\n{text}\n")),
                format!("`b.csv`, row 1, column `high`: `{text}` is not a number{advice}")
            );
        }
        assert_eq!(
            refused("alarm\nnan\n"),
            format!(
                "`b.csv`, row 1, column `alarm`: `nan` is not a category of label `alarm`, \
                 expected `yes`, `no` or the probability of `yes`{advice}"
            )
        );
        assert_eq!(
            refused("alarm\nYes\n"),
            "`b.csv`, row 1, column `alarm`: `Yes` is not a category of label `alarm`, \
             expected `yes`, `no` or the probability of `yes`; did you mean `yes`?"
        );
        assert_eq!(
            refused("yes,no\n0,0\n"),
            "`b.csv`, row 1: belief for label `alarm` is 0 in every category; leave all of them empty if nothing is known"
        );
        for (value, shown) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
            for column in ["high", "alarm"] {
                let error = read(&model(), parquet(column, &[0.5, value]), options).unwrap_err().to_string();
                let advice = if value.is_nan() { advice } else { "" };
                let expected =
                    format!("`b.parquet`, row 2, column `{column}`: {shown} is not a finite number{advice}");
                assert_eq!(error, expected);
            }
        }
    }
}

#[test]
fn errors_name_the_row_in_later_chunks() {
    let table = format!("alarm\n{}x\n", "0.5\n".repeat(6));
    assert!(message(&table).starts_with("`b.csv`, row 7, column `alarm`: "));
}

#[test]
fn rows_equal_those_of_the_library() {
    let mut expected = BeliefMatrix::new(&model());
    expected.push(&[Some(0.5), None, None, Some(0.2), None, None, None], prsl::Normalize::Never).unwrap();
    assert_eq!(read(&model(), csv("high,alarm\n0.5,0.2\n"), STRICT).unwrap()[0], *expected.row(0));
}

fn truths(text: &str, options: TruthOptions) -> Result<Vec<prsl::Truth>, Error> {
    let mut reader = TruthReader::new(&model(), csv(text), options)?;
    let mut rows = Vec::new();
    while let Some(chunk) = reader.next_chunk(2)? {
        rows.extend(chunk);
    }
    Ok(rows)
}

fn truth_message(text: &str) -> String {
    truths(text, TruthOptions::default()).expect_err("this table is wrong").to_string()
}

#[test]
fn truths_are_names_of_categories() {
    assert_eq!(
        truths("side,hands\nright,low\n,high\nleft,\n", TruthOptions::default()).unwrap(),
        [[Some(2), None, Some(1)], [Some(0), None, None], [None, None, Some(0)]]
    );
}

#[test]
fn yes_and_no_have_other_spellings() {
    let rows = truths("alarm\nyes\n1\ntrue\nTRUE\n1.0\nno\n0\nFalse\n", TruthOptions::default()).unwrap();
    let alarm: Vec<_> = rows.iter().map(|row| row.indices()[1].unwrap()).collect();
    assert_eq!(alarm, [0, 0, 0, 0, 0, 1, 1, 1]);
    let mut reader =
        TruthReader::new(&model(), parquet("alarm", &[1.0, 0.0]), TruthOptions::default()).unwrap();
    assert_eq!(reader.next_chunk(10).unwrap().unwrap(), [[None, Some(0), None], [None, Some(1), None]]);
}

#[test]
fn other_truths_are_refused() {
    assert_eq!(
        truth_message("hands,alarm\nlow,1\nhihg,0\n"),
        "`b.csv`, row 2, column `hands`: `hihg` is not a category of label `hands`, \
         expected `high`, `centered`, `low`; did you mean `high`?"
    );
    assert_eq!(
        truth_message("alarm\n0.5\n"),
        "`b.csv`, row 1, column `alarm`: `0.5` is not a category of label `alarm`, \
         expected `yes`, `no`, 1 or 0, true or false"
    );
    assert!(truth_message("hands\ntrue\n").contains("`true` is not a category"));
}

#[test]
fn truths_need_labels_as_columns() {
    assert_eq!(
        truth_message("hand,id,alarm\nlow,1,yes\n"),
        "`b.csv`: the model does not know columns `hand` (did you mean `hands`?), `id`; \
         correct the names, or ask to ignore extra columns"
    );
    let rows = truths("id,alarm,hands=high\n1,yes,0.5\n", TruthOptions { ignore_extra: true }).unwrap();
    assert_eq!(rows, [[None, Some(0), None]]);
}

/// With and without normalization, from tables and from evidence.
#[test]
fn percent_values_became_1_without_an_error() {
    for options in [STRICT, NORMALIZE] {
        let error = |text: &str| read(&model(), csv(text), options).unwrap_err().to_string();
        assert_eq!(
            error("alarm\n0.5\n85\n"),
            "`b.csv`, row 2: belief for `alarm=yes` is 85, expected a number from 0 to 1; divide it by 100 if it is in percent"
        );
        assert!(error("hands=low\n30\n").contains("belief for `hands=low` is 30"));
        assert!(
            error("alarm=no\n850\n").ends_with("belief for `alarm=no` is 850, expected a number from 0 to 1")
        );
    }
    let evidence = Evidence::new().belief("alarm", [85.0]);
    assert!(model().row(&evidence).unwrap_err().to_string().contains("in percent"));
    // Complete and rounded beliefs are still accepted.
    let read = |text: &str| read(&model(), csv(text), NORMALIZE).unwrap();
    assert_eq!(read("alarm=yes,alarm=no\n75,25\n")[0][3..5], [0.75, 0.25]);
    assert_eq!(read("alarm\n1.0000001\n")[0][3..5], [1.0, 0.0]);
}

#[test]
fn a_table_without_any_known_column_was_answered_from_priors() {
    for options in [STRICT, IGNORE_EXTRA] {
        let error = read(&model(), csv("id,alram\n1,0.5\n"), options).unwrap_err().to_string();
        assert_eq!(
            error,
            "`b.csv`: the model knows none of the columns, which are `id`, `alram` (did you mean `alarm`?); \
             correct their names, or take another table"
        );
    }
    let error = truths("id\n1\n", TruthOptions { ignore_extra: true }).unwrap_err().to_string();
    assert!(error.contains("the model knows none of the columns, which are `id`;"), "{error}");
    // A column of weights is not a known label.
    let options = TruthOptions { ignore_extra: true };
    let error = TruthReader::with_columns(
        &model(),
        csv("id,weight\n1,1\n"),
        options,
        RowColumns::new(Some("weight"), None),
    )
    .unwrap_err();
    assert!(error.to_string().contains("none of the columns"), "{error}");
    let many: Vec<String> = (0..1000).map(|column| format!("column{column}")).collect();
    let error = read(&model(), csv(&format!("{}\n", many.join(","))), STRICT).unwrap_err().to_string();
    assert!(error.contains("`column19` and 980 more;"), "{error}");
}

#[test]
fn a_missing_value_code_suggested_a_category() {
    for code in ["NA", "NaN", "null", "?", "n/a", "-", "None"] {
        let advice = "; if it stands for a missing value, leave the cell empty or list it as such";
        assert_eq!(
            truth_message(&format!("alarm\n{code}\n")),
            format!(
                "`b.csv`, row 1, column `alarm`: `{code}` is not a category of label `alarm`, \
                 expected `yes`, `no`, 1 or 0, true or false{advice}"
            )
        );
        assert_eq!(
            message(&format!("hands=low\n{code}\n")),
            format!("`b.csv`, row 1, column `hands=low`: `{code}` is not a number{advice}")
        );
    }
}

#[test]
fn listed_codes_are_missing_values() {
    let table = |text: &str| csv(text).with_missing(["NA", "?", " -999 "]);
    let found = read(&model(), table("hands,alarm\nNA,0.3\nlow,?\n,-999\n"), STRICT).unwrap();
    assert_eq!(found[0][3..5], [0.3, 0.7]);
    assert_eq!(found[1][..5], [0.0, 0.0, 1.0, 0.1, 0.9]);
    assert_eq!(found[2][3..5], [0.1, 0.9]);
    let mut reader =
        TruthReader::new(&model(), table("hands,alarm\nNA,1\nlow,?\n"), TruthOptions::default()).unwrap();
    assert_eq!(reader.next_chunk(10).unwrap().unwrap(), [[None, Some(0), None], [Some(2), None, None]]);
    // Codes that are not listed are not missing values.
    assert!(read(&model(), table("alarm\nna\n"), STRICT).is_err());
    // Numbers in Parquet files are compared by their spelling.
    let table = parquet("alarm", &[0.5, -999.0, f64::NAN]).with_missing(["NaN", "-999"]);
    let alarm: Vec<_> = read(&model(), table, STRICT).unwrap().iter().map(|row| row[3]).collect();
    assert_eq!(alarm, [0.5, 0.1, 0.1]);
}

#[test]
fn a_category_cannot_stand_for_a_missing_value() {
    let expected = "`b.csv`: `no` cannot stand for a missing value, as it is a category of label `alarm`; \
                    rename the category, or leave such cells empty";
    let error = read(&model(), csv("alarm\n0.5\n").with_missing(["NA", "no"]), STRICT).unwrap_err();
    assert_eq!(error.to_string(), expected);
    let table = csv("alarm\nyes\n").with_missing(["no"]);
    assert_eq!(TruthReader::new(&model(), table, TruthOptions::default()).unwrap_err().to_string(), expected);
}

#[test]
fn readers_can_move_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<BeliefReader>();
    is_send::<TruthReader>();
    is_send::<TableWriter>();
    is_send::<prsl_data::MulanDataset>();
    is_send::<Error>();
}

#[test]
fn tables_and_evidence_are_calibrated_alike() {
    let model = Model::parse(
        "label hands: high, centered, low\nlabel alarm prior 0.1\nlabel fire\n\
         calibrate hands dirichlet [1.1 0.2 0; 0 0.9 0; 0.3 0 1] [0.1 0 -0.2]\ncalibrate alarm platt 1.3 -0.4\n\
         calibrate fire isotonic [0:0.05 0.4:0.3 1:0.95; 0:0.05 0.6:0.7 1:0.95]\n",
    )
    .expect("a model");
    let text = "hands=high,hands=centered,hands=low,alarm,fire\n0.2,0.3,0.5,0.7,0.1\n0.6,,,,yes\n1,0,0,1.0,0\n,,,no,\n";
    let table = TableReader::csv(text.as_bytes(), "beliefs.csv").expect("a table");
    let mut reader = BeliefReader::new(&model, table, BeliefOptions::default()).expect("beliefs");
    let rows = reader.next_chunk(10).expect("valid").expect("rows");
    let new = Evidence::new;
    let evidence = [
        new().belief("hands", [0.2, 0.3, 0.5]).belief("alarm", [0.7]).belief("fire", [0.1]),
        new().partial_belief("hands", [Some(0.6), None, None]).observe("fire", "yes"),
        new().belief("hands", [1.0, 0.0, 0.0]).belief("alarm", [1.0]).belief("fire", [0.0]),
        new().observe("alarm", "no"),
    ];
    assert_eq!(rows.n_rows(), evidence.len());
    for (row, evidence) in evidence.iter().enumerate() {
        assert_eq!(rows.row(row), model.row(evidence).expect("valid"));
    }
    let raw = model.without_calibrators();
    assert_ne!(rows.row(0)[..], raw.row(&evidence[0]).expect("valid")[..]);
    assert_eq!(rows.row(3)[..], raw.row(&evidence[3]).expect("valid")[..]);
}
