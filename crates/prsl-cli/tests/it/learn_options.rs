//! Options and warnings of `prsl learn`.

use prsl::Model;

use crate::learn::{refused, twins, write};
use crate::runner::Folder;

const LEARN: &str = "learn beliefs.csv truth.csv -o out.prsl";

fn model(folder: &Folder) -> Model {
    Model::parse(&folder.read("out.prsl")).expect("a model")
}

#[test]
fn removed_options_name_their_replacement() {
    let folder = twins(20);
    for (flags, complaint) in [
        ("--recipe thin", "--recipe thin was removed; use --recipe clauses"),
        ("--width 3", "--width was removed: rules are no longer about groups of labels; --parsimony"),
        ("--width auto", "--width was removed"),
        ("--wide 1", "--wide was removed: any rule may be about many labels; --rules limits"),
        ("--relearn", "--relearn was removed: --base keeps the rules of a model"),
    ] {
        refused(&folder, &format!("{LEARN} {flags}"), complaint);
        assert_eq!(folder.prsl(&format!("{LEARN} {flags}")).code, 2);
    }
    // They are not in the help.
    let help = folder.prsl("learn --help").done().stdout;
    assert!(!["thin", "--width", "--wide", "--relearn"].iter().any(|gone| help.contains(gone)), "{help}");
}

#[test]
fn options_of_the_other_recipe_are_refused() {
    let folder = twins(20);
    for flags in [
        "--valid-fraction 0.2",
        "--steps 10",
        "--batch 5",
        "--learning-rate 0.1",
        "--betas 0.9,0.99",
        "--clip 0.001",
        "--probability 0.9",
        "--j0 3",
        "--alpha 10",
        "--gamma0 0.1",
        "--gamma1 0.1",
        "--lambda 0.9",
        "--epsilon 0.1",
        "--gradients exact",
        "--literal",
    ] {
        let name = flags.split(' ').next().expect("a name");
        refused(&folder, &format!("{LEARN} {flags}"), &format!("{name} is an option of --recipe paper"));
    }
    for flags in ["--parsimony explain", "--cv 3", "--calibrate joint", "--learn-probabilities --base b.prsl"]
    {
        let complaint = "is an option of --recipe clauses";
        refused(&folder, &format!("{LEARN} --recipe paper {flags}"), complaint);
    }
}

#[test]
fn values_that_cannot_be_are_refused() {
    let folder = twins(40);
    for (flags, complaint) in [
        ("--calibrate plat", "expected joint, none, or one of auto, temperature, platt"),
        ("--parsimony=-1", "expected predict, explain, or a number of at least 0"),
        ("--parsimony inf", "expected predict, explain, or a number of at least 0"),
        ("--cv 1", "expected 0, or a number of at least 2"),
        ("--max-seconds=-1", "expected a number of seconds"),
        ("--max-seconds nan", "expected a number of seconds"),
        ("--recipe paper --learning-rate=-1", "setting `learning_rate` is -1, expected a number above 0"),
        ("--recipe paper --learning-rate nan", "setting `learning_rate` is NaN, expected a number above 0"),
        ("--recipe paper --rules 101", "setting `rules` is 101, expected 100 at most"),
        ("--recipe paper --betas 0.9", "expected two numbers, as in 0.9,0.999"),
        ("--recipe paper --betas 0.9,1", "setting `beta2` is 1, expected a number from 0 to below 1"),
        ("--recipe paper --clip 0", "setting `clip` is 0, expected a number above 0 and below 1"),
        (
            "--recipe paper --probability 1",
            "setting `probability` is 1, expected a number above 0 and below 1",
        ),
        ("--recipe paper --gamma0 0.9", "setting `gamma0` is 0.9, expected below 1"),
        ("--recipe paper --gamma1 1.5", "setting `gamma1` is 1.5, expected a probability"),
    ] {
        refused(&folder, &format!("{LEARN} {flags}"), complaint);
    }
}

#[test]
fn the_papers_recipe_has_settings_of_its_own() {
    let folder = twins(200);
    let run = format!("{LEARN} --recipe paper --steps 200 --learning-rate 0.02 --rules 3");
    let done = folder.prsl(&format!("{run} --j0 2 --lambda 0.9 --calibrate platt")).done();
    assert!(done.stdout.starts_with("learned from 180 rows, validated on 20, in "), "{done}");
    assert!(done.stdout.contains(" (K = 3), 0 typical combinations, 2 calibrators\n"), "{done}");
    let text = folder.read("out.prsl");
    assert!(text.contains("calibrate left platt") && text.contains("noisy_or 0.999: "), "{text}");
    folder
        .prsl(&format!("{run} --literal --epsilon 0.001 --betas 0.8,0.99 --clip 0.1 --probability 0.9"))
        .done();
    assert!(folder.read("out.prsl").contains("noisy_or 0.9: "), "{}", folder.read("out.prsl"));
    let loopy = folder.prsl(&format!("{run} --gradients loopy"));
    assert_eq!(loopy.code, 0, "{loopy}");
    assert!(loopy.stderr.contains("warning: gradients by loopy propagation"), "{loopy}");
}

#[test]
fn rules_have_a_price_and_a_maximum_number() {
    let folder = twins(200);
    folder.prsl(&format!("{LEARN} --cv 0")).done();
    let n_rules = model(&folder).rules().len();
    assert!(n_rules >= 2, "{n_rules}");
    let run = folder.prsl(&format!("{LEARN} --cv 0 --rules 1")).done();
    assert!(run.stdout.contains(": 1 rule ("), "{run}");
    assert_eq!(model(&folder).rules().len(), 1);
    let run = folder.prsl(&format!("{LEARN} --cv 0 --no-typical --rules 0")).done();
    assert!(run.stdout.contains(": 0 rules, 0 typical combinations, 2 calibrators\n"), "{run}");
    // The names stand for numbers.
    for (name, number) in [("predict", "0.25"), ("explain", "1")] {
        folder.prsl(&format!("{LEARN} --cv 0 --parsimony {name}")).done();
        let named = folder.read("out.prsl");
        folder.prsl(&format!("{LEARN} --cv 0 --parsimony {number}")).done();
        assert_eq!(folder.read("out.prsl"), named, "{name}");
    }
    folder.prsl(&format!("{LEARN} --cv 0 --parsimony 1000")).done();
    assert_eq!(model(&folder).rules().len(), 0);
}

#[test]
fn beliefs_are_calibrated_as_asked() {
    let folder = twins(100);
    for (method, has_calibrators) in [("none", false), ("joint", true), ("platt", true)] {
        folder.prsl(&format!("{LEARN} --cv 0 --calibrate {method}")).done();
        let text = folder.read("out.prsl");
        assert_eq!(text.contains("calibrate left platt"), has_calibrators, "{text}");
    }
}

#[test]
fn cross_validation_is_told_with_its_error_and_does_not_change_the_model() {
    let folder = twins(200);
    let run = folder.prsl(&format!("{LEARN} --cv 0")).done();
    assert!(!run.stdout.contains("cross-validation"), "{run}");
    let before = folder.read("out.prsl");
    let run = folder.prsl(&format!("{LEARN} --cv 3")).done();
    let line = run.stdout.lines().find(|line| line.contains("3-fold cross-validation: ")).expect("a line");
    assert!(
        line.contains("log-likelihood -0.") && line.contains(" ± ") && line.contains("joint accuracy "),
        "{line}"
    );
    assert_eq!(folder.read("out.prsl"), before);
    let few = twins(9);
    let run = few.prsl(LEARN);
    let note = "cross-validation was skipped: 5 folds are too many for 9 rows with known truths";
    assert!(run.code == 0 && run.stdout.contains(note), "{run}");
}

#[test]
fn validation_rows_are_scored_and_do_not_change_the_model() {
    let folder = twins(100);
    let other = twins(30);
    write(&folder, "vb.csv", &other.read("beliefs.csv"));
    write(&folder, "vt.csv", &other.read("truth.csv"));
    folder.prsl(&format!("{LEARN} --cv 0")).done();
    let before = folder.read("out.prsl");
    let run = folder.prsl(&format!("{LEARN} --cv 0 --valid-beliefs vb.csv --valid-truth vt.csv")).done();
    assert_eq!(folder.read("out.prsl"), before);
    let shown: Vec<&str> =
        run.stdout.lines().skip_while(|line| !line.contains("log-likelihood")).take(4).collect();
    assert!(shown[0].ends_with("training  validation"), "{run}");
    // The second number of each line is that of `prsl evaluate`.
    let scores = folder.prsl("evaluate out.prsl vb.csv vt.csv --format json").done();
    let scores: serde_json::Value = serde_json::from_str(&scores.stdout).expect("an object");
    let score = scores["mean_joint_log_likelihood"].as_f64().expect("a number");
    assert!(shown[3].starts_with("  learned ") && shown[3].ends_with(&format!("{score:.4}")), "{run}");
}

/// 100 rows where it rains, of which 31 are dry.
fn rain() -> Folder {
    let (mut beliefs, mut truth) = ("rain,wet\n".to_owned(), "rain,wet\n".to_owned());
    for row in 0..200 {
        beliefs += "0.5,0.5\n";
        truth += match row {
            0..69 => "1,1\n",
            69..100 => "1,0\n",
            _ => "0,0\n",
        };
    }
    Folder::new(&[("beliefs.csv", &beliefs), ("truth.csv", &truth)])
}

#[test]
fn rules_that_the_rows_contradict_are_told() {
    let folder = rain();
    write(&folder, "base.prsl", "label rain\nlabel wet\nrule 0.95: rain -> wet\nrule 0.1: rain | !wet\n");
    let run = folder.prsl(&format!("{LEARN} --cv 0 --base base.prsl"));
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(
        run.stderr,
        "warning: rule \"rain -> wet\" is violated in 31 % of the 100 rows where its condition holds; the data would say 0.69\n\
         warning: rule \"rain | !wet\" holds in 100 % of the 200 rows where its labels are known; the data would say 1.00\n"
    );
    write(&folder, "base.prsl", "label rain\nlabel wet\nrule 0.7: rain -> wet\n");
    folder.prsl(&format!("{LEARN} --cv 0 --base base.prsl")).done();
}

#[test]
fn rows_that_rules_exclude_are_told() {
    let folder = rain();
    write(&folder, "base.prsl", "label rain\nlabel wet\nrule 1: rain -> wet\n");
    let run = folder.prsl(&format!("{LEARN} --cv 0 --base base.prsl"));
    assert_eq!(run.code, 0, "{run}");
    let warning = "warning: 31 rows are excluded by rules of probability 0 or 1, and were not learned from\n";
    assert!(run.stderr.ends_with(warning), "{run}");
}

#[test]
fn expectations_that_fail_in_the_learned_model_are_told() {
    let folder = rain();
    let base = "label rain\nlabel wet\nrule 0.7: rain -> wet\n";
    let expectations = "expect rain => wet > 0.5\nexpect !rain => wet > 0.4\n";
    let expectations = expectations.replace("!rain", "rain=no");
    write(&folder, "base.prsl", &format!("{base}{expectations}"));
    let run = folder.prsl(&format!("{LEARN} --cv 0 --base base.prsl"));
    assert_eq!(run.code, 0, "{run}");
    let warning =
        "warning: `expect rain=no => wet > 0.4` fails in the learned model: expected `wet` > 0.4, found ";
    assert!(run.stderr.starts_with(warning) && run.stderr.lines().count() == 1, "{run}");
}

#[test]
fn probabilities_of_the_base_are_learned_if_asked_for() {
    let folder = rain();
    write(&folder, "base.prsl", "label rain\nlabel wet\nrule 0.7: rain -> wet\n");
    folder.prsl(&format!("{LEARN} --cv 0 --base base.prsl")).done();
    assert!(folder.read("out.prsl").contains("rule 0.7: rain -> wet\n"));
    folder.prsl(&format!("{LEARN} --cv 0 --base base.prsl --learn-probabilities")).done();
    assert!(!folder.read("out.prsl").contains("rule 0.7: rain -> wet\n"));
}
