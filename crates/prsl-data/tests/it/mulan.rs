//! Label files, and their match with ARFF files.

use prsl_data::{ArffReader, ArffValue, Error, MulanDataset, MulanLabels, parse_mulan_labels};

fn xml_message(xml: &str) -> String {
    parse_mulan_labels(xml.as_bytes()).expect_err("this label file is wrong").to_string()
}

fn dataset(arff: &'static str, xml: &'static str) -> Result<MulanDataset, Error> {
    MulanDataset::new(
        ArffReader::new(arff.as_bytes(), "t.arff")?,
        &MulanLabels::new(xml.as_bytes(), "t.xml")?,
    )
}

#[test]
fn nested_labels_keep_their_parent() {
    let xml = "\u{FEFF}<?xml version=\"1.0\"?>\n<!-- hello -->\n<labels xmlns=\"http://mulan.sourceforge.net/labels\">\
        <label name=\"a\"><label name='b'><label name=\"c &lt; &#100;\"/></label></label><label name=\"e\"></label></labels>";
    let labels = parse_mulan_labels(xml.as_bytes()).unwrap();
    let found: Vec<_> = labels.labels().iter().map(|label| (label.name.as_str(), label.parent)).collect();
    assert_eq!(found, [("a", None), ("b", Some(0)), ("c < d", Some(1)), ("e", None)]);
}

#[test]
fn malformed_label_files_are_refused() {
    assert_eq!(
        xml_message(""),
        "`xml`, line 1, column 1: no label found, expected `labels` with `label` elements in it"
    );
    assert_eq!(
        xml_message("<labels/>"),
        "`xml`, line 1, column 10: no label found, expected `labels` with `label` elements in it"
    );
    assert_eq!(
        xml_message("<labels>\n<label/></labels>"),
        "`xml`, line 2, column 1: a `label` without the attribute `name`"
    );
    assert_eq!(
        xml_message("<labels>\n<label name='a'/>\n<label name='a'/></labels>"),
        "`xml`, line 3, column 1: label `a` is given twice"
    );
    assert_eq!(
        xml_message("<things/>"),
        "`xml`, line 1, column 1: unexpected element `things`, expected `labels` with `label` elements in it"
    );
    assert_eq!(
        xml_message("<labels>a</labels>"),
        "`xml`, line 1, column 9: unexpected text `a` between the labels"
    );
    assert_eq!(
        xml_message("<labels><label name='a'/>"),
        "`xml`, line 1, column 26: the file ends before its elements are closed"
    );
    assert!(xml_message("<labels>\n\n</label>").starts_with("`xml`, line 3, column 1: "));
}

#[test]
fn entities_do_not_expand() {
    let bomb = "<!DOCTYPE labels [<!ENTITY a \"aaaa\">]><labels><label name=\"&a;\"/></labels>";
    assert_eq!(xml_message(bomb), "`xml`, line 1, column 1: a label file has no document type");
    assert!(parse_mulan_labels(b"<labels><label name=\"&a;\"/></labels>").is_err());
}

#[test]
fn deep_nesting_needs_no_stack() {
    let mut xml = "<labels>".to_owned();
    for index in 0..50_000 {
        xml.push_str(&format!("<label name=\"{index}\">"));
    }
    xml.push_str(&"</label>".repeat(50_000));
    xml.push_str("</labels>");
    assert_eq!(parse_mulan_labels(xml.as_bytes()).unwrap().labels().len(), 50_000);
}

#[test]
fn labels_come_in_the_order_of_the_attributes() {
    let arff =
        "@attribute b {1,0}\n@attribute x real\n@attribute a numeric\n@data\n1,2,0\n0,?,1\n?,3,?\n{}\n";
    let mut dataset = dataset(arff, "<labels><label name='a'><label name='b'/></label></labels>").unwrap();
    let labels: Vec<_> = dataset.labels().iter().map(|label| (label.name.as_str(), label.parent)).collect();
    assert_eq!(labels, [("b", Some(1)), ("a", None)]);
    assert_eq!(dataset.label_columns(), [0, 2]);
    assert_eq!(dataset.features().map(|feature| feature.name.as_str()).collect::<Vec<_>>(), ["x"]);
    let mut rows = Vec::new();
    while let Some(row) = dataset.next_row().unwrap() {
        rows.push((row.features, row.labels));
    }
    assert_eq!(rows[0], (vec![ArffValue::Number(2.0)], vec![Some(true), Some(false)]));
    assert_eq!(rows[1], (vec![ArffValue::Missing], vec![Some(false), Some(true)]));
    assert_eq!(rows[2], (vec![ArffValue::Number(3.0)], vec![None, None]));
    assert_eq!(rows[3], (vec![ArffValue::Number(0.0)], vec![Some(true), Some(false)]));
}

#[test]
fn labels_that_do_not_fit_are_refused() {
    let refused = |arff, xml| dataset(arff, xml).unwrap_err().to_string();
    assert_eq!(
        refused("@attribute rain {0,1}\n@data\n", "<labels><label name='rian'/></labels>"),
        "`t.arff`: no attribute for label `rian`; did you mean `rain`?"
    );
    assert_eq!(
        refused("@attribute rain string\n@data\n", "<labels><label name='rain'/></labels>"),
        "`t.arff`: label `rain` is of type string, expected numeric or {0,1}"
    );
    let mut dataset =
        dataset("@attribute a real\n@data\n1\n0.5\n", "<labels><label name='a'/></labels>").unwrap();
    dataset.next_row().unwrap();
    assert_eq!(
        dataset.next_row().unwrap_err().to_string(),
        "`t.arff`: row 2, label `a`: 0.5 is neither 0 nor 1"
    );
}
