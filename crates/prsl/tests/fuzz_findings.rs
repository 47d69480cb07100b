//! What the fuzz targets found, one test each.

use prsl::{Error, Model};

#[test]
fn a_bare_label_whose_categories_could_not_be_read_is_reported() {
    let Err(Error::Text(diagnostics)) = Model::parse("label a: ~, y\nlabel b\nrule 1: b -> a\n") else {
        panic!("the declaration has an error");
    };
    let messages: Vec<&str> = diagnostics.list().iter().map(|d| d.message.as_str()).collect();
    assert_eq!(messages, ["expected a category, found `~`", "`a` is a label without categories"]);
}
