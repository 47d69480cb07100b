//! Rule strings of the R package.

use std::collections::HashMap;
use std::io::Read;

use prsl::model::Atom;
use prsl::{CategoryId, Formula, Label, LabelId, Model};

use super::{Place, text_of};
use crate::error::{Error, ImportProblem, Result, nearest};

/// Reads rule strings of the R package: one rule per line, `A, B <- !C, D`, which means `!C & D -> A | B`. Either side may be
/// empty. A line may begin with a probability, as in `0.9: A <- B`; all others get `probability`. `#` begins a comment, and
/// rules may be in quotes, as they are in R code.
///
/// With a base, the names are those of its labels and categories, and the rules are added to its own. Otherwise each name
/// becomes a yes/no label.
///
/// ```
/// use prsl::Model;
/// use prsl_data::import;
///
/// let base = Model::parse("label feet: gait, standing\nlabel hands: high, low")?;
/// let rules = "0.8: gait <- !high\n<- gait, high # never both\n";
/// let model = import::r(rules.as_bytes(), "rules.txt", Some(&base), 1.0)?;
/// assert_eq!(model.rule_text(prsl::RuleId::new(0)), "!high -> gait");
/// assert_eq!(model.rule_text(prsl::RuleId::new(1)), "!(gait & high)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn r(
    reader: impl Read + Send + 'static,
    name: &str,
    base: Option<&Model>,
    probability: f64,
) -> Result<Model> {
    let text = text_of(reader, name)?;
    let mut names = Names::new(base);
    let mut rules = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let rule = rule(line, &mut names, probability);
        rules.extend(rule.map_err(|(part, problem)| Place::of(number, line, part).error(name, problem))?);
    }
    let builder = base.map_or_else(Model::builder, Model::edit);
    let labels = names.new_labels.into_iter().map(Label::binary);
    let builder = labels.fold(builder, |builder, label| builder.add_label(label));
    let rules = rules.into_iter().map(|(p, formula)| prsl::Rule::new(p, prsl::Body::Formula(formula)));
    let builder = rules.fold(builder, |builder, rule| builder.add_rule(rule));
    builder.build().map_err(|cause| Error::Model { file: name.to_owned(), cause: Box::new(cause) })
}

/// A problem, and the part of the line that it is about.
type Parsed<'l, T> = std::result::Result<T, (&'l str, ImportProblem)>;

/// `[P:] [LITERAL, ...] <- [LITERAL, ...]`, or nothing.
fn rule<'l>(line: &'l str, names: &mut Names<'_>, probability: f64) -> Parsed<'l, Option<(f64, Formula)>> {
    let (text, after) = unquoted(line)?;
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let probability = match after {
        Some(after) => parse_probability(after)?,
        None => probability,
    };
    // Names may have colons, too.
    let (probability, text) = match text.split_once(':') {
        Some((before, rule)) if before.trim().parse::<f64>().is_ok() => (parse_probability(before)?, rule),
        _ => (probability, text),
    };
    let Some((then, condition)) = text.split_once("<-") else { return Err((text, ImportProblem::NoArrow)) };
    if let Some((before, _)) = condition.split_once("<-") {
        return Err((&condition[before.len()..], ImportProblem::SecondArrow));
    }
    let (then, condition) = (literals(then, names)?, literals(condition, names)?);
    let formula = match (then.is_empty(), condition.is_empty()) {
        (true, true) => return Err((text, ImportProblem::EmptyRule)),
        (true, false) => Formula::and(condition).not(),
        (false, true) => Formula::or(then),
        (false, false) => Formula::and(condition).implies(Formula::or(then)),
    };
    Ok(Some((probability, formula)))
}

/// The rule of a line without quotes and comments, and a probability that follows a quoted rule.
fn unquoted(line: &str) -> Parsed<'_, (&str, Option<&str>)> {
    let start = line.trim_start();
    let Some(quote) = start.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        return Ok((line.split('#').next().unwrap_or_default(), None));
    };
    let Some((rule, rest)) = start[1..].split_once(quote) else {
        return Err((start, ImportProblem::OpenQuote));
    };
    let rest = rest.split('#').next().unwrap_or_default().trim();
    let rest = rest.strip_prefix(',').unwrap_or(rest).trim_matches([' ', '\t', ',']);
    Ok((rule, (!rest.is_empty()).then_some(rest)))
}

fn parse_probability(text: &str) -> Parsed<'_, f64> {
    let text = text.trim();
    let probability = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    probability.ok_or_else(|| (text, ImportProblem::NotAProbability { text: text.to_owned() }))
}

/// `LITERAL, ...`, or nothing.
fn literals<'l>(text: &'l str, names: &mut Names<'_>) -> Parsed<'l, Vec<Formula>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let literal = |part: &'l str| {
        let literal = part.trim();
        let name = literal.trim_start_matches(|c: char| c == '!' || c.is_whitespace());
        if name.is_empty() {
            return Err((part, ImportProblem::NoName));
        }
        let atom = Formula::atom(names.find(name).map_err(|problem| (name, problem))?);
        let n_negations = literal[..literal.len() - name.len()].matches('!').count();
        Ok(if n_negations.is_multiple_of(2) { atom } else { atom.not() })
    };
    text.split(',').map(literal).collect()
}

/// The names of labels and categories.
struct Names<'b> {
    base: Option<&'b Model>,
    /// The meanings of each name.
    meanings: HashMap<String, Vec<Atom>>,
    new_labels: Vec<String>,
}

impl<'b> Names<'b> {
    fn new(base: Option<&'b Model>) -> Self {
        let mut meanings: HashMap<String, Vec<Atom>> = HashMap::new();
        for id in base.into_iter().flat_map(Model::label_ids) {
            let label = base.expect("it has this label").label(id);
            if label.is_binary() {
                meanings.entry(label.name().to_owned()).or_default().push(Atom::new(id, CategoryId::new(0)));
            }
            for (index, category) in label.categories().iter().enumerate() {
                let atom = Atom::new(id, CategoryId::new(index));
                meanings.entry(category.clone()).or_default().push(atom.clone());
                meanings.entry(format!("{}={category}", label.name())).or_default().push(atom);
            }
        }
        Self { base, meanings, new_labels: Vec::new() }
    }

    /// The category of a name. Without a base, an unknown name is a new label.
    fn find(&mut self, name: &str) -> std::result::Result<Atom, ImportProblem> {
        match (self.meanings.get(name).map(Vec::as_slice), self.base) {
            (Some([atom]), _) => Ok(atom.clone()),
            (Some(atoms), Some(base)) => {
                let spelled = atoms.iter().map(|atom| base.atom_text(atom)).collect();
                Err(ImportProblem::Ambiguous { name: name.to_owned(), meanings: spelled })
            }
            (_, Some(_)) => {
                let suggestion = nearest(name, self.meanings.keys().map(String::as_str)).map(str::to_owned);
                Err(ImportProblem::UnknownName { name: name.to_owned(), suggestion })
            }
            (_, None) => {
                let atom = Atom::new(LabelId::new(self.new_labels.len()), CategoryId::new(0));
                self.new_labels.push(name.to_owned());
                self.meanings.insert(name.to_owned(), vec![atom.clone()]);
                Ok(atom)
            }
        }
    }
}
