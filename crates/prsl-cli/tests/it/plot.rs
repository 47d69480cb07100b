//! `prsl plot`.

use crate::runner::{Folder, WAREHOUSE};

const BELIEFS: &str =
    "activity=walking,activity=normal,feet=gait,hands=high\n0.1,0.4,0.05,0.5\n0.6,0.3,0.4,0.2\n";
const TRUTH: &str = "activity,feet,hands\noverhead,standing,high\nwalking,gait,\n";

fn folder() -> Folder {
    Folder::new(&[("warehouse.prsl", WAREHOUSE), ("beliefs.csv", BELIEFS), ("truth.csv", TRUTH)])
}

const FIGURES: [(&str, &str, &str); 4] = [
    ("graph", "", "overhead_work"),
    ("influence", "beliefs.csv", "gait_is_walking: walking if and only if gait"),
    ("reliability", "beliefs.csv truth.csv", "beliefs as given"),
    ("weights", "beliefs.csv truth.csv", "gait_is_walking: walking if and only if gait"),
];

#[test]
fn every_figure_is_drawn_the_same_by_both_commands() {
    let folder = folder();
    folder.prsl("evaluate warehouse.prsl beliefs.csv truth.csv --plots figures").done();
    for (what, tables, expected) in FIGURES {
        folder.prsl(&format!("plot warehouse.prsl {tables} --what {what} -o {what}.svg")).done();
        let svg = folder.read(&format!("{what}.svg"));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains(expected), "{svg}");
        assert_eq!(svg, folder.read(&format!("figures/{what}.svg")));
        let printed = folder.prsl(&format!("plot warehouse.prsl {tables} --what {what} -o -")).done();
        assert_eq!(printed.stdout, svg);
        // Tables that a figure does not need are ignored.
        let with_all =
            folder.prsl(&format!("plot warehouse.prsl beliefs.csv truth.csv --what {what} -o -")).done();
        assert_eq!(with_all.stdout, svg);
    }
}

#[test]
fn costly_figures_are_omitted_or_refused() {
    let folder = folder();
    let run = folder.prsl("evaluate warehouse.prsl beliefs.csv truth.csv --memory 1 --plots figures");
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.contains("influence and weights of rules are not drawn"), "{run}");
    assert!(folder.path("figures/reliability.svg").exists() && !folder.path("figures/weights.svg").exists());
    insta::assert_snapshot!(
        folder.prsl("plot warehouse.prsl beliefs.csv --what influence --memory 1 -o i.svg")
    );
}

#[test]
fn wrong_uses() {
    let folder = folder();
    let told = |name: &str, arguments: &str| {
        let run = folder.prsl(&format!("plot {arguments}"));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
        insta::assert_snapshot!(name, run);
    };
    told("plot_without_beliefs", "warehouse.prsl --what influence -o i.svg");
    told("plot_without_truth", "warehouse.prsl beliefs.csv --what weights -o w.svg");
    told("plot_of_what", "warehouse.prsl -o g.svg");
    told("plot_to_where", "warehouse.prsl --what graph");
    told("plot_standard_input_twice", "- - truth.csv --what reliability -o r.svg");
    assert_eq!(folder.files(), ["beliefs.csv", "truth.csv", "warehouse.prsl"]);
}
