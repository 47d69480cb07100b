//! Inputs are never lost, and no incomplete output remains.

use std::fs;
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::runner::{BELIEFS, Folder, Run, WAREHOUSE};

const TRUTH: &str = "activity,feet,hands\noverhead,standing,high\n";

fn folder() -> Folder {
    Folder::new(&[("warehouse.prsl", WAREHOUSE), ("beliefs.csv", BELIEFS), ("truth.csv", TRUTH)])
}

fn refused(run: &Run, complaint: &str) {
    assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{run}");
    assert_eq!(run.stderr, format!("error: {complaint}\n"), "{run}");
}

fn same_file(output: &str, input: &str) -> String {
    format!("cannot write `{output}`: it is the same file as `{input}`, which is an input; name another file")
}

/// Commands that write, each with a placeholder for the name of its output.
const COMMANDS: [&str; 4] = [
    "export warehouse.prsl --to json -o",
    "plot warehouse.prsl --what graph -o",
    "plot warehouse.prsl beliefs.csv truth.csv --what weights -o",
    "predict warehouse.prsl beliefs.csv --format csv -o",
];

#[test]
fn an_output_that_was_the_model_destroyed_it() {
    let folder = folder();
    for command in COMMANDS {
        for name in ["warehouse.prsl", "./warehouse.prsl"] {
            refused(&folder.prsl(&format!("{command} {name}")), &same_file(name, "warehouse.prsl"));
            assert_eq!(folder.read("warehouse.prsl"), WAREHOUSE);
        }
    }
    assert_eq!(folder.files(), ["beliefs.csv", "truth.csv", "warehouse.prsl"]);
}

#[cfg(unix)]
#[test]
fn an_output_that_was_a_link_to_an_input_destroyed_it() {
    let folder = folder();
    for input in ["warehouse.prsl", "beliefs.csv", "truth.csv"] {
        fs::hard_link(folder.path(input), folder.path(&format!("hard-{input}"))).expect("a link");
        std::os::unix::fs::symlink(input, folder.path(&format!("soft-{input}"))).expect("a link");
    }
    for link in ["hard", "soft"] {
        let output = format!("{link}-warehouse.prsl");
        for command in COMMANDS {
            refused(&folder.prsl(&format!("{command} {output}")), &same_file(&output, "warehouse.prsl"));
        }
        for command in ["calibrate warehouse.prsl beliefs.csv truth.csv -o", "learn beliefs.csv truth.csv -o"]
        {
            for input in ["beliefs.csv", "truth.csv"] {
                let output = format!("{link}-{input}");
                refused(&folder.prsl(&format!("{command} {output}")), &same_file(&output, input));
            }
        }
    }
    assert_eq!(folder.read("warehouse.prsl"), WAREHOUSE);
    assert_eq!([folder.read("beliefs.csv"), folder.read("truth.csv")], [BELIEFS, TRUTH]);
}

#[cfg(unix)]
#[test]
fn figures_in_a_folder_of_inputs_destroyed_them() {
    let folder = folder();
    fs::hard_link(folder.path("warehouse.prsl"), folder.path("graph.svg")).expect("a link");
    fs::hard_link(folder.path("warehouse.prsl"), folder.path("report.html")).expect("a link");
    fs::hard_link(folder.path("warehouse.prsl"), folder.path("progress.json")).expect("a link");
    let run = folder.prsl("evaluate warehouse.prsl beliefs.csv truth.csv --plots .");
    refused(&run, &same_file("./graph.svg", "warehouse.prsl"));
    let learn = "learn beliefs.csv truth.csv --base warehouse.prsl -o learned.prsl";
    refused(&folder.prsl(&format!("{learn} --report .")), &same_file("./report.html", "warehouse.prsl"));
    let run = folder.prsl(&format!("{learn} --checkpoint . --resume"));
    refused(&run, &same_file("./progress.json", "warehouse.prsl"));
    assert_eq!(folder.read("graph.svg"), WAREHOUSE);
}

#[test]
fn an_output_that_was_standard_input_destroyed_it() {
    let folder = folder();
    let beliefs = fs::File::open(folder.path("beliefs.csv")).expect("a file");
    let mut command = folder.command("predict warehouse.prsl - -o beliefs.csv");
    let output = command.stdin(beliefs).output().expect("the command runs");
    let complaint = same_file("beliefs.csv", "standard input");
    assert_eq!(String::from_utf8_lossy(&output.stderr), format!("error: {complaint}\n"));
    assert_eq!(folder.read("beliefs.csv"), BELIEFS);
}

#[test]
fn a_model_may_be_replaced_by_itself_calibrated() {
    let folder = folder();
    let run = folder.prsl("calibrate warehouse.prsl beliefs.csv truth.csv -o warehouse.prsl");
    assert_eq!(run.code, 0, "{run}");
}

#[cfg(unix)]
#[test]
fn formatting_broke_hard_links() {
    let untidy = "label   a\n";
    let folder = Folder::new(&[("m.prsl", untidy)]);
    fs::hard_link(folder.path("m.prsl"), folder.path("link.prsl")).expect("a link");
    insta::assert_snapshot!(folder.prsl("fmt --write m.prsl"));
    assert_eq!([folder.read("m.prsl"), folder.read("link.prsl")], [untidy, untidy]);
    assert_eq!(folder.files(), ["link.prsl", "m.prsl"]);
    folder.prsl("fmt m.prsl").done();
}

#[cfg(unix)]
#[test]
fn formatting_changed_the_owner() {
    use std::os::unix::fs::{MetadataExt, chown};
    let untidy = "label   a\n";
    let folder = Folder::new(&[("m.prsl", untidy), ("group.prsl", untidy)]);
    if chown(folder.path("m.prsl"), Some(12_345), None).is_err() {
        eprintln!("skipped: only the system's administrator can give a file away");
        return;
    }
    let run = folder.prsl("fmt --write m.prsl");
    let complaint = "cannot write `m.prsl`: it belongs to user 12345, and would belong to user";
    assert!(run.code == 3 && run.stderr.contains(complaint), "{run}");
    assert_eq!(folder.read("m.prsl"), untidy);
    assert_eq!(fs::metadata(folder.path("m.prsl")).expect("a file").uid(), 12_345);
    // A group can be preserved.
    chown(folder.path("group.prsl"), None, Some(12_345)).expect("as before");
    folder.prsl("fmt --write group.prsl").done();
    assert_eq!(fs::metadata(folder.path("group.prsl")).expect("a file").gid(), 12_345);
    assert_eq!(folder.read("group.prsl"), "label a\n");
}

/// A run in the middle of writing `out.csv`.
fn writing(folder: &Folder) -> Child {
    let mut command = folder.command("predict warehouse.prsl - -o out.csv");
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the command starts");
    let (header, row) = BELIEFS.split_once('\n').expect("a header");
    let input = child.stdin.as_mut().expect("piped");
    input.write_all(format!("{header}\n{}", row.repeat(20_000)).as_bytes()).expect("it listens");
    while parts(folder).is_empty() {
        assert!(child.try_wait().expect("a child of ours").is_none(), "it waits for more");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn parts(folder: &Folder) -> Vec<String> {
    folder.files().into_iter().filter(|name| name.ends_with(".part")).collect()
}

#[test]
fn a_killed_run_left_part_files_for_good() {
    let folder = folder();
    let mut child = writing(&folder);
    child.kill().expect("a child of ours");
    child.wait().expect("a child of ours");
    assert_eq!(parts(&folder).len(), 1);
    // Files of other programs stay.
    fs::create_dir(folder.path(".prsl-folder.part")).expect("a folder");
    folder.prsl("export warehouse.prsl --to json -o model.json").done();
    assert_eq!(parts(&folder), [".prsl-folder.part"]);
    assert!(!folder.path("out.csv").exists());
}

#[test]
fn a_part_file_that_is_being_written_is_left_alone() {
    let folder = folder();
    let mut child = writing(&folder);
    folder.prsl("export warehouse.prsl --to json -o model.json").done();
    assert_eq!(parts(&folder).len(), 1);
    drop(child.stdin.take());
    assert!(child.wait().expect("a child of ours").success());
    assert_eq!(folder.read("out.csv").lines().count(), 20_001);
    assert!(parts(&folder).is_empty());
}
