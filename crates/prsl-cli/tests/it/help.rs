//! Snapshots of every help text.

use crate::runner::Folder;

fn help(name: &str, arguments: &str) {
    let run = Folder::new(&[]).prsl(arguments).done();
    insta::assert_snapshot!(name, run);
}

#[test]
fn all_help_texts() {
    help("help", "--help");
    help("help_short", "-h");
    for subcommand in [
        "check",
        "fmt",
        "predict",
        "explain",
        "evaluate",
        "compare",
        "calibrate",
        "learn",
        "plot",
        "export",
        "import",
        "demo",
        "simulate",
        "serve",
        "lsp",
        "schema",
        "completions",
    ] {
        help(&format!("help_{subcommand}"), &format!("{subcommand} --help"));
    }
}

#[test]
fn the_version() {
    let run = Folder::new(&[]).prsl("--version").done();
    assert_eq!(run.stdout, format!("prsl {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn schema_and_completions_are_printed() {
    let folder = Folder::new(&[]);
    assert_eq!(folder.prsl("schema").done().stdout, prsl::Model::json_schema());
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(folder.prsl(&format!("completions {shell}")).done().stdout.contains("ignore-extra"));
    }
}
