//! `prsl learn`.

use std::process::{Command, Stdio};
use std::time::Duration;

use prsl::Model;

use crate::runner::{BELIEFS, Folder, WAREHOUSE};

/// Two yes/no labels that are always equal, of which one is believed in a little.
pub fn twins(n_rows: usize) -> Folder {
    let (mut beliefs, mut truth) = ("left,right\n".to_owned(), "right,left\n".to_owned());
    for row in 0..n_rows {
        let yes = row % 2 == 0;
        beliefs += if yes { "0.7,0.5\n" } else { "0.3,0.5\n" };
        // Every fifth truth of one label is not known.
        let known = if row % 5 == 0 {
            ""
        } else if yes {
            "1"
        } else {
            "no"
        };
        truth += &format!("{known},{}\n", if yes { "yes" } else { "0" });
    }
    Folder::new(&[("beliefs.csv", &beliefs), ("truth.csv", &truth)])
}

pub fn write(folder: &Folder, name: &str, text: &str) {
    std::fs::write(folder.path(name), text).expect("a file");
}

pub fn refused(folder: &Folder, arguments: &str, complaint: &str) {
    let run = folder.prsl(arguments);
    assert_ne!(run.code, 0, "{run}");
    assert!(run.stderr.contains(complaint), "{run}");
}

#[test]
fn a_new_model_takes_its_labels_from_the_beliefs() {
    let folder = twins(200);
    let run = folder.prsl("learn beliefs.csv truth.csv -o learned.prsl").done();
    assert!(run.stdout.starts_with("learned from 200 rows in "), "{run}");
    assert!(run.stdout.ends_with("written to learned.prsl\n"), "{run}");
    let text = folder.read("learned.prsl");
    assert!(text.starts_with("label left prior 0.5\nlabel right prior 0.5\n"), "{text}");
    assert!(text.contains("# learned: gain "), "{text}");
    // Whatever else is said, the second label is now told by the first.
    let run = folder.prsl("predict learned.prsl beliefs.csv --query mpe").done();
    assert!(run.stdout.lines().nth(1).is_some_and(|line| line.contains("yes,yes")), "{run}");
    folder.prsl("check learned.prsl").done();
    folder.prsl("evaluate learned.prsl beliefs.csv truth.csv").done();
}

#[test]
fn the_same_model_for_any_number_of_threads() {
    let folder = twins(100);
    folder.prsl("learn beliefs.csv truth.csv --cv 0 --threads 1 -o one.prsl").done();
    folder.prsl("learn beliefs.csv truth.csv --cv 0 --threads 2 -o two.prsl").done();
    assert_eq!(folder.read("one.prsl"), folder.read("two.prsl"));
}

/// Labels in a row, of which each is mostly the same as the one before: several rules, added one after the other.
fn chain(n_labels: usize, n_rows: usize) -> Folder {
    let names: Vec<String> = (0..n_labels).map(|label| format!("l{label}")).collect();
    let (mut beliefs, mut truth) = (names.join(",") + "\n", names.join(",") + "\n");
    let mut state = 1u64;
    let mut draw = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for _ in 0..n_rows {
        let mut is_yes = draw(2) == 0;
        let (mut believed, mut known) = (Vec::new(), Vec::new());
        for _ in 0..n_labels {
            is_yes = is_yes == (draw(10) > 0);
            believed.push(if is_yes == (draw(3) > 0) { "0.6" } else { "0.4" });
            known.push(if is_yes { "1" } else { "0" });
        }
        beliefs += &(believed.join(",") + "\n");
        truth += &(known.join(",") + "\n");
    }
    Folder::new(&[("beliefs.csv", &beliefs), ("truth.csv", &truth)])
}

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let folder = chain(8, 600);
    let arguments = "learn beliefs.csv truth.csv --cv 0 --seed 4";
    folder.prsl(&format!("{arguments} -o whole.prsl")).done();
    let mut child = Command::new(env!("CARGO_BIN_EXE_prsl"))
        .args(format!("{arguments} --checkpoint run -o killed.prsl").split(' '))
        .current_dir(folder.path(""))
        .stdout(Stdio::null())
        .spawn()
        .expect("the command starts");
    let has_rules = || {
        let text = std::fs::read_to_string(folder.path("run/progress.json")).unwrap_or_default();
        text.contains("\"path\":[{")
    };
    for _ in 0..6000 {
        if has_rules() || child.try_wait().expect("a child of ours").is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("a child of ours");
    child.wait().expect("a child of ours");
    assert!(has_rules(), "a checkpoint is written when a rule is added");
    folder.prsl(&format!("{arguments} --checkpoint run --resume -o resumed.prsl")).done();
    assert_eq!(folder.read("resumed.prsl"), folder.read("whole.prsl"));
}

#[test]
fn a_stopped_run_is_resumed_with_either_recipe() {
    let folder = twins(100);
    for recipe in ["--cv 0", "--recipe paper --steps 100"] {
        let run = format!("learn beliefs.csv truth.csv {recipe}");
        folder.prsl(&format!("{run} -o whole.prsl")).done();
        let stopped = folder.prsl(&format!("{run} --checkpoint run --max-seconds 0 -o stopped.prsl")).done();
        assert!(stopped.stdout.contains("stopped early, as requested"), "{stopped}");
        folder.prsl(&format!("{run} --checkpoint run --resume -o resumed.prsl")).done();
        assert_eq!(folder.read("resumed.prsl"), folder.read("whole.prsl"), "{recipe}");
        std::fs::remove_dir_all(folder.path("run")).expect("a folder");
    }
}

#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let folder = twins(40);
    let run = "learn beliefs.csv truth.csv --cv 0 --checkpoint run -o out.prsl --rules";
    folder.prsl(&format!("{run} 1 --max-seconds 0")).done();
    let complaint = "belongs to other rows, another base or other settings; start again without it";
    refused(&folder, &format!("{run} 2 --resume"), complaint);
    refused(&folder, &format!("{run} 1 --resume --seed 2"), complaint);
    let complaint_of_recipe = "is a checkpoint of --recipe clauses; name another folder";
    refused(
        &folder,
        &run.replace("--cv 0", "--recipe paper --resume").replace("--rules", ""),
        complaint_of_recipe,
    );
    refused(&folder, &format!("{run} 1"), "continue it with --resume, or name another folder");
    // One truth is another one.
    let truth = folder.read("truth.csv");
    let (other, last) = truth.trim_end().rsplit_once('\n').expect("a row");
    let turned = last.replace('0', "x").replace('1', "0").replace('x', "1");
    assert_ne!(turned, last);
    write(&folder, "truth.csv", &format!("{other}\n{turned}\n"));
    refused(&folder, &format!("{run} 1 --resume"), complaint);
    write(&folder, "truth.csv", &truth);
    folder.prsl(&format!("{run} 1 --resume")).done();
}

#[test]
fn what_cannot_be_written_is_told_before_learning() {
    let folder = twins(40);
    let beliefs = folder.read("beliefs.csv");
    let run = "learn beliefs.csv truth.csv --cv 0";
    // The truths are not even read.
    write(&folder, "odd.csv", "left,right\nmaybe,maybe\n");
    let message = "there is no folder";
    refused(&folder, "learn beliefs.csv odd.csv -o nowhere/out.prsl", message);
    refused(&folder, &format!("{run} -o beliefs.csv"), "which is an input; name another file");
    refused(&folder, &format!("{run} -o ./truth.csv"), "which is an input; name another file");
    assert_eq!(folder.read("beliefs.csv"), beliefs);
    refused(&folder, &format!("{run} -o out.prsl --checkpoint truth.csv"), "cannot make folder `truth.csv`");
}

#[test]
fn a_model_on_standard_output_is_nothing_but_a_model() {
    let folder = twins(40);
    let run = folder.prsl("learn beliefs.csv truth.csv --cv 0 -o -");
    assert_eq!(run.code, 0, "{run}");
    assert!(Model::parse(&run.stdout).is_ok(), "{run}");
    assert!(run.stderr.contains("written to standard output"), "{run}");
}

#[test]
fn rows_count_as_much_as_their_weights_say() {
    // The second half contradicts the first, and counts nothing.
    let (mut beliefs, mut truth) = ("left,right\n".to_owned(), "right,weight,left\n".to_owned());
    for row in 0..200 {
        let (left, right) = if row < 100 { ("1", "1") } else { ("1", "0") };
        beliefs += "0.6,0.5\n";
        truth += &format!("{right},{},{left}\n", if row < 100 { "1" } else { "0" });
    }
    let folder = Folder::new(&[("beliefs.csv", &beliefs), ("truth.csv", &truth)]);
    let run = "learn beliefs.csv truth.csv --cv 0 -o out.prsl";
    assert_eq!(folder.prsl(&format!("{run} --weights weight")).code, 0);
    let run_predict = folder.prsl("predict out.prsl beliefs.csv --query mpe").done();
    assert!(run_predict.stdout.lines().nth(1).is_some_and(|line| line.contains("yes,yes")), "{run_predict}");
    refused(&folder, run, "the model does not know");
    refused(&folder, &format!("{run} --weights wight"), "there is no column `wight` with weights");
    write(&folder, "truth.csv", "right,weight,left\n1,-2,1\n");
    refused(&folder, &format!("{run} --weights weight"), "a weight of -2, expected a number of 0 or more");
    write(&folder, "truth.csv", "right,weight,left\n1,,1\n");
    refused(
        &folder,
        &format!("{run} --weights weight"),
        "a weight of nothing, expected a number of 0 or more",
    );
}

#[test]
fn with_keys_the_order_of_rows_does_not_matter() {
    let rows: Vec<(String, String)> = (0..150_u64)
        .map(|row| {
            // A fixed stream of numbers in [0, 1).
            let number = |k: u64| (row * 3 + k).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) % 1000;
            let (left, right) = (number(0), number(1));
            let is_left = number(2) < left;
            let truth = format!("{},{row},{}", u8::from(is_left), u8::from(is_left || right > 800));
            (format!("0.{left:03},0.{right:03}"), truth)
        })
        .collect();
    let table = |order: &[usize]| {
        let (mut beliefs, mut truth) = ("left,right\n".to_owned(), "left,id,right\n".to_owned());
        for &row in order {
            beliefs += &format!("{}\n", rows[row].0);
            truth += &format!("{}\n", rows[row].1);
        }
        [beliefs, truth]
    };
    let ascending: Vec<usize> = (0..150).collect();
    let scattered: Vec<usize> = (0..150).map(|row| row * 37 % 150).collect();
    let models = [ascending, scattered].map(|order| {
        let [beliefs, truth] = table(&order);
        let folder = Folder::new(&[("beliefs.csv", &beliefs), ("truth.csv", &truth)]);
        folder.prsl("learn beliefs.csv truth.csv --key id --cv 0 -o out.prsl").done();
        std::fs::read_to_string(folder.path("out.prsl")).unwrap()
    });
    assert_eq!(models[0], models[1]);
    assert!(models[0].contains("rule"), "{}", models[0]);

    let run = "learn beliefs.csv truth.csv --key id -o out.prsl";
    let folder = Folder::new(&[("beliefs.csv", "left\n0.2\n0.3\n"), ("truth.csv", "left,id\n1,b\n0,b\n")]);
    refused(&folder, run, "rows 1 and 2 have the key `b`; each row needs a key of its own");
    write(&folder, "truth.csv", "left,id\n1,b\n0,\n");
    refused(&folder, run, "no key; each row needs a number or a text of its own");
    write(&folder, "truth.csv", "left\n1\n0\n");
    refused(&folder, run, "there is no column `id` with keys");
}

#[test]
fn no_time_is_enough_for_a_model() {
    let folder = twins(50);
    folder.prsl("learn beliefs.csv truth.csv --max-seconds 0 -o learned.prsl").done();
    assert!(folder.read("learned.prsl").starts_with("label left "));
}

#[test]
fn what_cannot_be_learned_from_is_refused() {
    let folder = twins(20);
    let write = |name: &str, text: &str| std::fs::write(folder.path(name), text).expect("a file");
    write("short.csv", "left,right\nyes,no\n");
    write("other.csv", "left,up\nyes,no\n");
    write("odd.csv", &format!("left,right\n{}", "maybe,no\n".repeat(20)));
    write("nothing.csv", &format!("left,right\n{}", ",\n".repeat(20)));
    write("empty.csv", "left,right\n");
    write("nan.csv", &format!("left,right\n{}", "NaN,0.5\n".repeat(20)));
    write("cut.json", "{\"done\": [");
    std::fs::create_dir(folder.path("run")).expect("a folder");
    std::fs::rename(folder.path("cut.json"), folder.path("run/progress.json")).expect("a file");
    for arguments in [
        "learn beliefs.csv short.csv -o m.prsl",
        "learn beliefs.csv other.csv -o m.prsl",
        "learn beliefs.csv odd.csv -o m.prsl",
        "learn beliefs.csv nothing.csv -o m.prsl",
        "learn empty.csv empty.csv -o m.prsl",
        "learn nan.csv truth.csv -o m.prsl",
        "learn - truth.csv -o m.prsl",
        "learn beliefs.csv truth.csv --recipe paper --valid-fraction 1 -o m.prsl",
        "learn beliefs.csv truth.csv --checkpoint run --resume -o m.prsl",
        "learn beliefs.csv truth.csv --rules many -o m.prsl",
    ] {
        let run = folder.prsl(arguments);
        assert_ne!(run.code, 0, "{run}");
        insta::assert_snapshot!(arguments.replace(' ', "_").replace('/', "-"), run);
    }
    assert!(!folder.path("m.prsl").exists());
}

#[test]
fn experts_rules_stay_and_one_class_is_told() {
    let beliefs = BELIEFS.lines().next().expect("a header").to_owned()
        + "\n"
        + &"0.1,0.4,0.5,0.05,0.95,0.5,0.3,0.2\n0.5,0.3,0.2,0.8,0.2,0.1,0.1,0.8\n".repeat(20);
    let truth =
        "activity,feet,hands\n".to_owned() + &"overhead,standing,low\nnormal,standing,low\n".repeat(20);
    let folder = Folder::new(&[("warehouse.prsl", WAREHOUSE), ("b.csv", &beliefs), ("t.csv", &truth)]);
    let run = folder.prsl("learn b.csv t.csv --base warehouse.prsl --cv 0 -o learned.prsl");
    assert_eq!(run.code, 0, "{run}");
    insta::assert_snapshot!(run.stderr);
    let text = folder.read("learned.prsl");
    assert!(text.contains("rule 0.8 overhead_work: high & standing -> overhead\n"), "{text}");
}

#[test]
fn preparing_ignored_max_seconds() {
    let names: Vec<String> = (0..500).map(|label| format!("l{label}")).collect();
    let line = |cell: &dyn Fn(usize) -> String| (0..500).map(cell).collect::<Vec<_>>().join(",") + "\n";
    let (mut beliefs, mut truth) = (names.join(",") + "\n", names.join(",") + "\n");
    for row in 0..40 {
        let is_yes = |label: usize| (row * 7 + label * label).is_multiple_of(3);
        beliefs += &line(&|label| if is_yes(label) { "0.7" } else { "0.3" }.to_owned());
        truth += &line(&|label| u8::from(is_yes(label)).to_string());
    }
    let folder = Folder::new(&[("beliefs.csv", &beliefs), ("truth.csv", &truth)]);
    let run = folder.prsl("learn beliefs.csv truth.csv --max-seconds 0 -o out.prsl").done();
    assert!(run.stdout.contains(": 0 rules, "), "{run}");
    assert!(run.stdout.contains("stopped early, as requested: this is the best model so far"), "{run}");
    assert!(run.stdout.contains("cross-validation was skipped: no time was left"), "{run}");
    let model = Model::parse(&folder.read("out.prsl")).unwrap();
    assert_eq!((model.labels().len(), model.rules().len()), (500, 0));
}

#[test]
fn steps_beyond_all_numbers_panicked() {
    let folder = twins(40);
    folder
        .prsl("learn beliefs.csv truth.csv --recipe paper --steps 18446744073709551615 --max-seconds 0 -o out.prsl")
        .done();
}
