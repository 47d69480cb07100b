//! `prsl learn`.

use std::process::{Command, Stdio};
use std::time::Duration;

use prsl::Model;
use quick_xml::Reader;
use quick_xml::events::Event;

use crate::runner::{BELIEFS, Folder, WAREHOUSE};

/// Two yes/no labels that are always equal, of which one is believed in a little.
fn twins(n_rows: usize) -> Folder {
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

fn write(folder: &Folder, name: &str, text: &str) {
    std::fs::write(folder.path(name), text).expect("a file");
}

fn refused(folder: &Folder, arguments: &str, complaint: &str) {
    let run = folder.prsl(arguments);
    assert_ne!(run.code, 0, "{run}");
    assert!(run.stderr.contains(complaint), "{run}");
}

#[test]
fn a_new_model_takes_its_labels_from_the_beliefs() {
    let folder = twins(200);
    let run =
        folder.prsl("learn beliefs.csv truth.csv --steps 200 --learning-rate 0.02 -o learned.prsl").done();
    assert!(run.stdout.starts_with("learned from 180 rows, validated on 20, in "), "{run}");
    assert!(run.stdout.ends_with("written to learned.prsl\n"), "{run}");
    let text = folder.read("learned.prsl");
    assert!(text.starts_with("label left\nlabel right\n"), "{text}");
    // Whatever else is said, the second label is now told by the first.
    let run = folder.prsl("predict learned.prsl beliefs.csv --query mpe").done();
    assert!(run.stdout.lines().nth(1).is_some_and(|line| line.contains("yes,yes")), "{run}");
    folder.prsl("check learned.prsl").done();
    folder.prsl("evaluate learned.prsl beliefs.csv truth.csv").done();
}

#[test]
fn the_same_model_for_any_number_of_threads() {
    let folder = twins(100);
    folder.prsl("learn beliefs.csv truth.csv --steps 100 --threads 1 -o one.prsl").done();
    folder.prsl("learn beliefs.csv truth.csv --steps 100 --threads 2 -o two.prsl").done();
    assert_eq!(folder.read("one.prsl"), folder.read("two.prsl"));
}

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let folder = twins(400);
    let arguments = "learn beliefs.csv truth.csv --steps 3000 --width 1 --rules 1 --seed 4";
    folder.prsl(&format!("{arguments} -o whole.prsl")).done();
    let mut child = Command::new(env!("CARGO_BIN_EXE_prsl"))
        .args(format!("{arguments} --checkpoint run -o killed.prsl").split(' '))
        .current_dir(folder.path(""))
        .stdout(Stdio::null())
        .spawn()
        .expect("the command starts");
    let checkpoint = folder.path("run/progress.json");
    for _ in 0..6000 {
        if checkpoint.exists() || child.try_wait().expect("a child of ours").is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("a child of ours");
    child.wait().expect("a child of ours");
    folder.prsl(&format!("{arguments} --checkpoint run --resume -o resumed.prsl")).done();
    assert_eq!(folder.read("resumed.prsl"), folder.read("whole.prsl"));
}

#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let folder = twins(40);
    let run = "learn beliefs.csv truth.csv --checkpoint run --steps 40 -o out.prsl --rules";
    folder.prsl(&format!("{run} 1 --max-seconds 0")).done();
    let complaint = "of other rows, another model or other settings; begin anew";
    refused(&folder, &format!("{run} 2 --resume"), complaint);
    refused(&folder, &format!("{run} 1 --resume --seed 2"), complaint);
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
    let run = "learn beliefs.csv truth.csv --steps 40";
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
    let run = folder.prsl("learn beliefs.csv truth.csv --steps 40 -o -");
    assert_eq!(run.code, 0, "{run}");
    assert!(Model::parse(&run.stdout).is_ok(), "{run}");
    assert!(run.stderr.contains("written to standard output"), "{run}");
}

#[test]
fn groups_of_one_label_and_no_rules_are_what_they_say() {
    let folder = twins(60);
    let run = "learn beliefs.csv truth.csv --steps 60 --no-typical -o out.prsl";
    let alone = folder.prsl(&format!("{run} --width 0 --wide 0")).done();
    assert!(alone.stdout.contains("size before pruning: 1 rule about each group of 1 label\n"), "{alone}");
    let model = Model::parse(&folder.read("out.prsl")).unwrap();
    assert!(model.rules().iter().all(|rule| rule.scope().len() == 1), "{model}");
    let none = folder.prsl(&format!("{run} --rules 0")).done();
    assert!(
        none.stdout.contains(": 0 rules, ") && none.stdout.contains("size before pruning: no new rules"),
        "{none}"
    );
}

#[test]
fn the_papers_recipe_has_settings_of_its_own() {
    let folder = twins(200);
    let run = "learn beliefs.csv truth.csv --steps 200 --learning-rate 0.02 -o out.prsl";
    let done =
        folder.prsl(&format!("{run} --recipe paper --rules 3 --j0 2 --lambda 0.9 --calibrate platt")).done();
    assert!(done.stdout.contains("size before pruning: 3 rules\n"), "{done}");
    let text = folder.read("out.prsl");
    assert!(text.contains("calibrate left platt"), "{text}");
    assert!(!text.contains("typical"), "{text}");
    let loopy = folder.prsl(&format!("{run} --recipe paper --rules 3 --gradients loopy"));
    assert_eq!(loopy.code, 0, "{loopy}");
    assert!(loopy.stderr.contains("warning: gradients by loopy propagation"), "{loopy}");
    for (flags, complaint) in [
        ("--recipe paper --width 2", "--j0 says how many labels a rule has at most"),
        ("--recipe paper --wide 1", "--wide is for --recipe thin"),
        ("--gradients loopy", "--gradients loopy is for --recipe paper; a thin tree is always exact"),
        ("--calibrate plat", "expected joint, none, or one of auto, temperature, platt"),
        ("--wide 11", "a number from 0 to 10 or `auto` is needed"),
        ("--max-seconds=-1", "expected a number of seconds"),
        ("--max-seconds nan", "expected a number of seconds"),
        ("--learning-rate=-1", "setting `learning_rate` is -1, expected a number above 0"),
        ("--learning-rate nan", "setting `learning_rate` is NaN, expected a number above 0"),
        ("--rules 101", "setting `rules` is 101, expected 100 at most"),
    ] {
        let given = if flags.contains("learning-rate") {
            run.replace("--learning-rate 0.02", "")
        } else {
            run.to_owned()
        };
        refused(&folder, &format!("{given} {flags}"), complaint);
    }
    refused(
        &folder,
        &format!("{run} --recipe paper --gamma0 0.9"),
        "setting `gamma0` is 0.9, expected below 1",
    );
    refused(
        &folder,
        &format!("{run} --recipe paper --gamma1 1.5"),
        "setting `gamma1` is 1.5, expected a probability",
    );
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
    let run = "learn beliefs.csv truth.csv --steps 100 -o out.prsl";
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
fn what_was_learned_is_learned_anew_but_for_what_is_fixed() {
    let folder = twins(200);
    let base = "label left\nlabel right\nfixed noisy_or 0.9 kept: left=no 0.5, right 0.5\nnoisy_or 0.9 rough: left 0.6, right=no 0.6\n";
    write(&folder, "base.prsl", base);
    let run = "learn beliefs.csv truth.csv --base base.prsl --steps 200 --learning-rate 0.02 --width 1 --rules 1 -o out.prsl";
    folder.prsl(run).done();
    assert!(folder.read("out.prsl").contains("rough: left 0.6, right=no 0.6"), "{}", folder.read("out.prsl"));
    folder.prsl(&format!("{run} --relearn")).done();
    let model = Model::parse(&folder.read("out.prsl")).unwrap();
    let named = |name: &str| model.rules().iter().find(|rule| rule.name() == Some(name)).cloned();
    let before = Model::parse(&folder.read("base.prsl")).unwrap();
    assert_eq!(named("kept").as_ref(), Some(&before.rules()[0]));
    assert_ne!(named("rough").as_ref(), Some(&before.rules()[1]));
}

#[test]
fn no_time_is_enough_for_a_model() {
    let folder = twins(50);
    folder.prsl("learn beliefs.csv truth.csv --max-seconds 0 -o learned.prsl").done();
    assert!(folder.read("learned.prsl").starts_with("label left\n"));
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
        "learn beliefs.csv truth.csv --valid-fraction 1 -o m.prsl",
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
    let run = folder.prsl("learn b.csv t.csv --base warehouse.prsl --steps 40 -o learned.prsl");
    assert_eq!(run.code, 0, "{run}");
    insta::assert_snapshot!(run.stderr);
    let text = folder.read("learned.prsl");
    assert!(text.contains("rule 0.8 overhead_work: high & standing -> overhead\n"), "{text}");
}

/// The names of all elements of a page that is well-formed and needs nothing from elsewhere.
fn elements(page: &str) -> Vec<String> {
    let mut reader = Reader::from_str(page);
    let mut names = Vec::new();
    loop {
        match reader.read_event().expect("well-formed") {
            Event::Start(tag) | Event::Empty(tag) => {
                assert!(tag.attributes().all(|attribute| attribute.is_ok()), "{tag:?}");
                names.push(tag.name().as_ref().to_owned());
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let outside = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    assert!(!outside.contains("http") && !outside.contains("url(") && !outside.contains("@import"));
    assert!(!names.iter().any(|name| ["script", "img", "link"].contains(&name.as_str())));
    names
}

#[test]
fn a_report_tells_what_was_learned_in_words() {
    let folder = twins(200);
    let run = folder.prsl(
        "learn beliefs.csv truth.csv --rules 1 --steps 200 --learning-rate 0.02 --report out/told -o learned.prsl",
    );
    assert!(
        run.stdout.ends_with("written to learned.prsl, with a report in out/told/report.html\n"),
        "{run}"
    );
    let page = folder.read("out/told/report.html");
    let names = elements(&page);
    assert_eq!(names.iter().filter(|name| *name == "svg").count(), 2);
    let model = Model::read(&folder.read("learned.prsl")).expect("a model");
    assert!(!model.rules().is_empty(), "{model}");
    for rule in model.rule_ids() {
        let sentence = model.rule_sentence(rule);
        assert!(page.contains(&sentence) && run.stdout.contains(&sentence), "{sentence}\n{page}");
        assert!(page.contains(&model.rule_text(rule)), "{page}");
    }
    for combination in model.typical() {
        assert!(page.contains(&model.combination_sentence(combination)), "{page}");
    }
    for figure in ["learning", "reliability"] {
        let svg = folder.read(&format!("out/told/{figure}.svg"));
        assert!(page.contains(&svg), "{figure}");
    }
    assert!(!page.contains("NaN") && !page.contains("your model"), "{page}");
}

#[test]
fn a_report_names_the_rules_of_the_base_and_escapes_what_is_named() {
    let base = "label \"<b>&left\"\nlabel right\n\nfixed rule 0.9 \"a < b\": \"<b>&left\" -> right\n";
    let folder = twins(60);
    for file in ["beliefs.csv", "truth.csv"] {
        let text = folder.read(file).replace("left", "<b>&left");
        std::fs::write(folder.path(file), text).expect("a file");
    }
    std::fs::write(folder.path("base.prsl"), base).expect("a file");
    folder
        .prsl("learn beliefs.csv truth.csv --base base.prsl --steps 40 --report told -o learned.prsl")
        .done();
    let page = folder.read("told/report.html");
    assert!(!elements(&page).iter().any(|name| name == "b"));
    assert!(page.contains("if &quot;&lt;b&gt;&amp;left&quot; then right, 0.9"), "{page}");
    assert!(page.contains("fixed rule 0.9 &quot;a &lt; b&quot;:"), "{page}");
    assert!(page.contains("your model"), "{page}");
}

/// Calibrated rows were refused as rows of another model.
#[test]
fn the_report_of_a_calibrated_model_was_refused() {
    let folder = twins(60);
    folder
        .prsl("learn beliefs.csv truth.csv --steps 20 --calibrate platt --report told -o learned.prsl")
        .done();
    assert!(folder.read("learned.prsl").contains("calibrate left platt"));
    assert!(folder.read("told/report.html").contains("2 calibrators"));
}

#[test]
fn a_report_without_a_folder_is_refused_before_learning() {
    let folder = twins(20);
    let run = folder.prsl("learn beliefs.csv truth.csv --report truth.csv/told -o learned.prsl");
    assert_ne!(run.code, 0, "{run}");
    insta::assert_snapshot!(run);
    assert!(!folder.path("learned.prsl").exists());
}

/// Long before any step is taken: that the groups of so many labels are looked for is counted work, not time.
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
    let run =
        folder.prsl("learn beliefs.csv truth.csv --rules 1 --width 2 --max-seconds 0 -o out.prsl").done();
    assert!(
        run.stdout.contains(": 0 rules, ") && run.stdout.contains("size before pruning: no new rules"),
        "{run}"
    );
    assert!(
        run.stdout.contains(
            "stopped before all candidates were tried, as requested: this is the best model so far"
        ),
        "{run}"
    );
    let model = Model::parse(&folder.read("out.prsl")).unwrap();
    assert_eq!((model.labels().len(), model.rules().len()), (500, 0));
}

#[test]
fn steps_beyond_all_numbers_panicked() {
    let folder = twins(40);
    folder
        .prsl("learn beliefs.csv truth.csv --steps 18446744073709551615 --max-seconds 0 -o out.prsl")
        .done();
}
