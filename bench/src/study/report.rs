//! The study's report.

use super::headline::{Figure, headlines};
use super::{Draw, EXACT_UP_TO, Measure, Measured, Method, SLOW_TREE, Setting, Source, Task};
use crate::boxplot::{BoxPlot, Group, Scale};
use crate::document::Block;
use crate::publish::Published;
use crate::statistics::bootstrap;
use crate::{Table, median, seconds};

/// The report about all measured models.
pub fn report(measured: &[Measured], draw: Draw) -> Vec<Block> {
    let mut blocks = introduction();
    blocks.extend(paper(measured));
    let sections = [
        (
            Source::Golden,
            "The authors' models",
            "Ten models of each size with a hundred rows each, as the authors published them.",
        ),
        (
            Source::Own,
            "Own simulations",
            "Models drawn anew by the paper's procedure, at the paper's sizes and beyond.",
        ),
    ];
    for (source, heading, text) in sections {
        let models: Vec<&Measured> = measured.iter().filter(|model| model.source == source).collect();
        if !models.is_empty() {
            blocks.push(Block::Heading(heading.to_owned()));
            blocks.push(Block::Text(text.to_owned()));
            blocks.extend(Section { models, seed: draw.seed }.blocks());
        }
    }
    blocks.extend(method(measured, draw));
    blocks
}

/// The tables of a section, in the order of its blocks.
const SECTION_TABLES: [&str; 4] = ["marginals", "assignments", "times", "assignment-times"];

/// The names of all tables in the documentation.
pub fn table_names() -> Vec<String> {
    let of_sources = ["authors", "own"]
        .iter()
        .flat_map(|source| SECTION_TABLES.iter().map(move |table| format!("study-{source}-{table}")));
    std::iter::once("study-paper".to_owned()).chain(of_sources).collect()
}

/// The tables for the documentation, each with the sentence about its origin.
pub fn published(measured: &[Measured], draw: Draw, origin: &str) -> Vec<Published> {
    let mut blocks = paper(measured);
    for source in [Source::Golden, Source::Own] {
        let models = measured.iter().filter(|model| model.source == source).collect();
        blocks.extend(Section { models, seed: draw.seed }.blocks());
    }
    let tables = blocks.iter().filter_map(|block| match block {
        Block::Table(caption, table) => {
            Some(format!("{}. {origin}\n\n{table}", caption.trim_end_matches('.')))
        }
        _ => None,
    });
    table_names().into_iter().zip(tables).map(|(name, text)| Published { name, text }).collect()
}

fn introduction() -> Vec<Block> {
    let text = |text: &str| Block::Text(text.to_owned());
    vec![
        Block::Title("Accuracy of loopy propagation: the paper's simulation study, repeated".to_owned()),
        text(
            "The pRSL paper (UAI 2021, section on approximation quality) compares loopy belief propagation with exact \
             inference on random models of noisy-or rules. It measures how well marginals agree, and how often loopy \
             propagation finds the most probable assignment. Its exact engine was limited to 30 labels for marginals \
             and 10 for assignments. This report repeats the study on the authors' models, adds the missing exact \
             answers, and continues with newly simulated models.",
        ),
        text(
            "Loopy propagation runs in two settings. The authors' setting updates all messages at once, at most 20 times, to \
             a tolerance of 1e-5. The default setting of prsl updates rule by rule, up to 200 times, to a tolerance of \
             1e-6. It merges rules over the same labels, and retries with damping if messages do not converge.",
        ),
    ]
}

fn paper(measured: &[Measured]) -> Vec<Block> {
    let heading = Block::Heading("The paper's numbers and ours".to_owned());
    let headlines = headlines(measured);
    if headlines.is_empty() {
        let text = "None of the authors' models was measured, so there is no comparison with the paper.";
        return vec![heading, Block::Text(text.to_owned())];
    }
    let mut table = Table::new([
        "in the authors' setting",
        "labels",
        "paper",
        "authors' answers",
        "prsl, their models",
        "prsl, own models",
    ]);
    for headline in headlines.iter().filter(|headline| headline.figure != Figure::SideExperiment) {
        table.push([
            headline.figure.name().to_owned(),
            headline.n_labels.to_string(),
            headline.paper.unwrap_or("–").to_owned(),
            headline.expected.unwrap_or("–").to_owned(),
            headline.measured.clone() + if headline.holds() { "" } else { " (differs)" },
            own_figure(measured, headline.n_labels, headline.figure),
        ]);
    }
    let caption =
        "As printed in the paper, as it follows from the authors' stored answers, and as prsl computes it";
    let mut blocks = vec![heading, Block::Table(caption.to_owned(), table), Block::Text(ties(measured))];
    blocks.extend(side_experiment(measured).map(Block::Text));
    blocks
}

/// A number of the paper, measured on simulated models of the same size.
fn own_figure(measured: &[Measured], n_labels: usize, figure: Figure) -> String {
    let own: Vec<&Measured> =
        of_size(measured, n_labels).filter(|model| model.source == Source::Own).collect();
    let shown = figure.of(&own).map(|value| figure.shown(value));
    match (own.is_empty(), shown, figure) {
        (true, ..) | (_, None, _) => "–".to_owned(),
        (_, Some(shown), Figure::NotConverged) => {
            format!("{shown} of {}", own.iter().map(|model| model.n_rows).sum::<usize>())
        }
        (_, Some(shown), _) => shown,
    }
}

fn of_size(measured: &[Measured], n_labels: usize) -> impl Iterator<Item = &Measured> {
    measured.iter().filter(move |model| model.n_labels == n_labels)
}

/// How tied rows were counted, and the result of prsl without the authors' stored answers.
fn ties(measured: &[Measured]) -> String {
    let median_at = |n_labels: usize| {
        let golden = of_size(measured, n_labels).filter(|model| model.source == Source::Golden);
        let shares = golden
            .filter_map(|model| model.values.get(&Measure::Match(Method::Loopy(Setting::Authors))).copied());
        Some(format!("{} at {n_labels} labels", percent(median(shares)?)))
    };
    let alone: Vec<String> = [5, 10].into_iter().filter_map(median_at).collect();
    format!(
        "In some rows of the authors' models, max-product ends with a tie that their rounding decided. These rows count as \
         the authors stored them. Without the stored answers, prsl decides ties label by label, with medians of {}.",
        alone.join(" and ")
    )
}

fn side_experiment(measured: &[Measured]) -> Option<String> {
    let mean = |measure| {
        let shares: Vec<f64> =
            measured.iter().filter_map(|model| model.values.get(&measure).copied()).collect();
        crate::statistics::mean(&shares).map(percent)
    };
    Some(format!(
        "A side experiment of theirs, on other rows at 10 labels: the best category of each exact marginal is the most \
         probable assignment in {} of the rows (stored: {}), loopy max-product finds it in {} (stored: {}).",
        mean(Measure::Side(false))?,
        mean(Measure::SideStored(false))?,
        mean(Measure::Side(true))?,
        mean(Measure::SideStored(true))?
    ))
}

/// A time without trailing zeros.
fn short_seconds(value: f64) -> String {
    seconds(value).replace(".00 ", " ").replace(".0 ", " ")
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// The models of one source.
struct Section<'a> {
    models: Vec<&'a Measured>,
    seed: u64,
}

const MPE_METHODS: [(Method, &str); 4] = [
    (Method::Loopy(Setting::Authors), "loopy, authors' setting"),
    (Method::Loopy(Setting::Default), "loopy, default setting"),
    (Method::Marginals, "best of each loopy marginal"),
    (Method::BranchAndBound, "branch and bound"),
];

/// Settings come first in every figure, so that a color has the same meaning in all of them.
const MARGINAL_TASKS: [(Task, &str); 3] = [
    (Task::LoopyMarginals(Setting::Authors), "loopy, authors' setting"),
    (Task::LoopyMarginals(Setting::Default), "loopy, default setting"),
    (Task::Marginals, "junction tree (exact)"),
];

const MPE_TASKS: [(Task, &str); 4] = [
    (Task::LoopyBest(Setting::Authors), "loopy, authors' setting"),
    (Task::LoopyBest(Setting::Default), "loopy, default setting"),
    (Task::Tree, "max-product tree (exact)"),
    (Task::BranchAndBound, "branch and bound (exact)"),
];

impl Section<'_> {
    fn blocks(&self) -> Vec<Block> {
        let settings = Setting::ALL.map(Setting::name);
        let by_setting = |measure: fn(Setting) -> Measure| Setting::ALL.map(measure).to_vec();
        let matches = MPE_METHODS.map(|(method, _)| Measure::Match(method));
        let tasks = |tasks: &[(Task, &str)]| {
            tasks.iter().map(|&(task, _)| Measure::Seconds(task)).collect::<Vec<_>>()
        };
        let unit = Scale::Linear { from: 0.0, to: 1.0 };
        vec![
            self.marginals(),
            self.figure(
                "Correlation of loopy and exact marginals",
                "correlation",
                ONE,
                |v| format!("{v:.3}"),
                &settings,
                by_setting(Measure::Correlation),
            ),
            self.figure(
                "Largest error of a loopy marginal in each model",
                "largest absolute error",
                unit,
                |v| format!("{v:.1}"),
                &settings,
                by_setting(Measure::WorstError),
            ),
            self.matches(),
            self.figure(
                "Rows whose most probable assignment is found",
                "share of rows",
                unit,
                |v| format!("{:.0} %", 100.0 * v),
                &MPE_METHODS.map(|method| method.1),
                matches.to_vec(),
            ),
            self.times("Marginals: CPU time per row, median over models", &MARGINAL_TASKS),
            self.figure(
                "Marginals: CPU time per row",
                "time per row",
                Scale::Log,
                short_seconds,
                &MARGINAL_TASKS.map(|task| task.1),
                tasks(&MARGINAL_TASKS),
            ),
            self.times("Most probable assignment: CPU time per row, median over models", &MPE_TASKS),
            self.figure(
                "Most probable assignment: CPU time per row",
                "time per row",
                Scale::Log,
                short_seconds,
                &MPE_TASKS.map(|task| task.1),
                tasks(&MPE_TASKS),
            ),
        ]
    }

    fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = self.models.iter().map(|model| model.n_labels).collect();
        sizes.sort();
        sizes.dedup();
        sizes
    }

    fn of_size(&self, n_labels: usize) -> impl Iterator<Item = &Measured> {
        self.models.iter().copied().filter(move |model| model.n_labels == n_labels)
    }

    fn values(&self, n_labels: usize, measure: Measure) -> Vec<f64> {
        self.of_size(n_labels).filter_map(|model| model.values.get(&measure).copied()).collect()
    }

    /// The mean over models with its interval.
    fn estimate(&self, n_labels: usize, measure: Measure, show: fn(f64) -> String) -> String {
        bootstrap(&self.values(n_labels, measure), self.seed).map_or("–".to_owned(), |estimate| {
            let [mean, low, high] = [estimate.mean, estimate.low, estimate.high].map(show);
            let bare = |end: String| end.trim_end_matches(" %").to_owned();
            if low == high { mean } else { format!("{mean} [{}, {}]", bare(low), bare(high)) }
        })
    }

    fn marginals(&self) -> Block {
        let mut table = Table::new([
            "labels",
            "setting",
            "models compared",
            "rows compared",
            "correlation",
            "mean error",
            "largest error",
            "of all",
            "converged",
        ]);
        for n_labels in self.sizes() {
            for setting in Setting::ALL {
                let worst = self.values(n_labels, Measure::WorstError(setting)).into_iter().reduce(f64::max);
                table.push([
                    n_labels.to_string(),
                    setting.name().trim_end_matches(" setting").to_owned(),
                    self.values(n_labels, Measure::Correlation(setting)).len().to_string(),
                    self.of_size(n_labels).map(|model| model.n_exact_rows).sum::<usize>().to_string(),
                    self.estimate(n_labels, Measure::Correlation(setting), |v| format!("{v:.4}")),
                    self.estimate(n_labels, Measure::MeanError(setting), |v| format!("{v:.4}")),
                    self.estimate(n_labels, Measure::WorstError(setting), |v| format!("{v:.2}")),
                    worst.map_or("–".to_owned(), |worst| format!("{worst:.3}")),
                    self.estimate(n_labels, Measure::Converged(setting), percent),
                ]);
            }
        }
        let caption = "Loopy marginals beside exact ones: means over models with 95 % intervals, the largest error of each \
                       model and of all, and rows that converged";
        Block::Table(caption.to_owned(), table)
    }

    fn matches(&self) -> Block {
        let heads =
            ["labels", "models"].into_iter().chain(MPE_METHODS.map(|method| method.1)).chain(["proven"]);
        let mut table = Table::new(heads);
        for n_labels in self.sizes() {
            let shares =
                MPE_METHODS.map(|(method, _)| self.estimate(n_labels, Measure::Match(method), percent));
            let mut row = vec![n_labels.to_string(), self.of_size(n_labels).count().to_string()];
            row.extend(shares);
            row.push(self.estimate(n_labels, Measure::Proven, percent));
            table.push(row);
        }
        let caption = "Rows whose most probable assignment is found: means over models with 95 % intervals; branch and bound \
                       beside the max-product tree where that fits, and the rows it has proven";
        Block::Table(caption.to_owned(), table)
    }

    fn times(&self, caption: &str, tasks: &[(Task, &str)]) -> Block {
        let mut table = Table::new(["labels"].into_iter().chain(tasks.iter().map(|task| task.1)));
        for n_labels in self.sizes() {
            let time = |&(task, _): &(Task, &str)| median(self.values(n_labels, Measure::Seconds(task)));
            let times = tasks.iter().map(|task| time(task).map_or("–".to_owned(), seconds));
            table.push([n_labels.to_string()].into_iter().chain(times));
        }
        Block::Table(caption.to_owned(), table)
    }

    fn figure(
        &self,
        title: &str,
        y_label: &str,
        scale: Scale,
        format: fn(f64) -> String,
        series: &[&str],
        measures: Vec<Measure>,
    ) -> Block {
        let group = |n_labels: usize| Group {
            name: n_labels.to_string(),
            values: measures.iter().map(|&measure| self.values(n_labels, measure)).collect(),
        };
        let groups = self.sizes().into_iter().map(group);
        Block::Figure(BoxPlot {
            title: title.to_owned(),
            x_label: "labels, and as many rules".to_owned(),
            y_label: y_label.to_owned(),
            scale,
            format,
            series: series.iter().map(|&name| name.to_owned()).collect(),
            groups: groups.filter(|group| group.values.iter().any(|values| !values.is_empty())).collect(),
        })
    }
}

const ONE: Scale = Scale::Linear { from: 1.0, to: 1.0 };

fn method(measured: &[Measured], draw: Draw) -> Vec<Block> {
    let mut points = vec![
        format!("Own simulations: {} models of each size with {} rows each, seed {}.", draw.replications, draw.rows, draw.seed),
        format!(
            "Exact marginals: junction tree, 4 GiB of memory, up to {EXACT_UP_TO} labels. A max-product tree that takes more than \
             {:.0} million multiply-adds a row runs on the first {} rows of its model only.",
            SLOW_TREE.0 / 1e6,
            SLOW_TREE.1
        ),
        "Most probable assignments: max-product tree where it fits into 4 GiB, else branch and bound with proof, up to a minute a row. A \
         guess counts if it is as probable as the exact one."
            .to_owned(),
        "Correlation is Pearson's, over all categories of all rows of a model. Intervals: bootstrap over models, 2000 resamples, \
         95 %. Boxes: quartiles and median; whiskers within 1.5 times the box; dots beyond."
            .to_owned(),
        "Times: CPU time of one thread per row in a batch, without compilation.".to_owned(),
    ];
    points.extend(left_aside(measured));
    vec![Block::Heading("How it was done".to_owned()), Block::List(points)]
}

/// The names of models that could not be measured.
fn left_aside(measured: &[Measured]) -> Vec<String> {
    let reasons = |model: &Measured| -> Vec<String> {
        model.refused.iter().map(|reason| format!("{}: {reason}.", model.name)).collect()
    };
    let mut points: Vec<String> = measured.iter().flat_map(reasons).collect();
    if points.is_empty() {
        points.push("Every requested plan fitted.".to_owned());
    }
    let count = |of: fn(&Measured) -> usize, what: &str| {
        let models = measured.iter().filter(|model| of(model) > 0);
        let names: Vec<String> = models.map(|model| format!("{} ({})", model.name, of(model))).collect();
        if names.is_empty() { format!("No {what}.") } else { format!("Some {what}: {}.", names.join("; ")) }
    };
    points.push(count(|model| model.n_imprecise, "rows were left out because exact marginals lost digits"));
    points.push(count(|model| model.n_unproven, "rows were left out because no assignment was proven"));
    points
}
