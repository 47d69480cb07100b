//! Tables in the documentation. The place of a table is `<!-- table: NAME -->`, the lines that are replaced, and
//! `<!-- end -->`. A table may have places in several pages.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

const END: &str = "<!-- end -->";

/// A table with its name and its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The name of its places.
    pub name: String,
    /// Caption, note and table as Markdown.
    pub text: String,
}

/// Replaces the tables in `README.md` and `docs/*.md` below `root`. Returns the changed pages.
pub fn publish(root: &Path, tables: &[Published]) -> Result<Vec<PathBuf>> {
    let mut changed = Vec::new();
    let mut texts = Vec::new();
    for page in pages(root)? {
        let text =
            std::fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
        texts.push((page, text));
    }
    for table in tables {
        if !texts.iter().any(|(_, text)| text.contains(&opening(&table.name))) {
            bail!("no page has a place `{}`", opening(&table.name));
        }
    }
    for (page, old) in texts {
        let mut new = old.clone();
        for table in tables {
            new = filled(&new, table).with_context(|| format!("in {}", page.display()))?;
        }
        if new != old {
            std::fs::write(&page, new).with_context(|| format!("cannot write {}", page.display()))?;
            changed.push(page);
        }
    }
    Ok(changed)
}

/// The sentence about the origin of a table: command, commit, machine and date.
pub fn origin(command: &str) -> String {
    let head = output("git", &["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let status = ["status", "--porcelain", "--", ":/", ":(exclude,top)docs", ":(exclude,top)*.md"];
    let mark = if output("git", &status).is_some() { "-dirty" } else { "" };
    let n_cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let date = output("date", &["+%Y-%m-%d"]).unwrap_or_else(|| "unknown date".to_owned());
    format!("Made by `{command}`, commit {head}{mark}, {}, {n_cores} cores, {date}.", processor())
}

fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let docs = root.join("docs");
    let entries = std::fs::read_dir(&docs).with_context(|| format!("cannot read {}", docs.display()))?;
    let mut pages: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages.extend(Some(root.join("README.md")).filter(|page| page.is_file()));
    Ok(pages)
}

fn opening(name: &str) -> String {
    format!("<!-- table: {name} -->\n")
}

/// The page with the table in all of its places.
fn filled(page: &str, table: &Published) -> Result<String> {
    let opening = opening(&table.name);
    let mut parts = page.split(&opening);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (old, rest) = part.split_once(END).unwrap_or((part, ""));
        if rest.is_empty() && !part.ends_with(END) || old.contains("<!-- table: ") {
            bail!("the place of `{}` has no `{END}`", table.name);
        }
        text += &format!("{opening}{}\n{END}{rest}", table.text.trim_end());
    }
    Ok(text)
}

/// The standard output of a command; `None` if it fails or is empty.
fn output(command: &str, arguments: &[&str]) -> Option<String> {
    let found = Command::new(command).args(arguments).output().ok().filter(|found| found.status.success())?;
    Some(String::from_utf8_lossy(&found.stdout).trim().to_owned()).filter(|text| !text.is_empty())
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name =
        info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    name.unwrap_or("unknown processor").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str) -> Published {
        Published { name: name.to_owned(), text: "caption\n\n| a |\n".to_owned() }
    }

    #[test]
    fn a_table_replaces_what_is_between_its_markers() {
        let page = "x\n<!-- table: one -->\nold\n<!-- end -->\ny\n<!-- table: two -->\nkept\n<!-- end -->\n";
        let new = filled(page, &table("one")).unwrap();
        assert_eq!(
            new,
            "x\n<!-- table: one -->\ncaption\n\n| a |\n<!-- end -->\ny\n<!-- table: two -->\nkept\n<!-- end -->\n"
        );
        assert_eq!(filled(&new, &table("one")).unwrap(), new);
        assert_eq!(filled(page, &table("three")).unwrap(), page);
    }

    #[test]
    fn a_place_without_an_end_is_an_error() {
        for page in
            ["<!-- table: one -->\nold\n", "<!-- table: one -->\n<!-- table: two -->\nold\n<!-- end -->\n"]
        {
            assert!(filled(page, &table("one")).is_err(), "{page}");
        }
    }

    #[test]
    fn an_origin_names_command_commit_machine_and_date() {
        let origin = origin("make study");
        assert!(origin.starts_with("Made by `make study`, commit "), "{origin}");
        assert!(origin.contains(" cores, "), "{origin}");
    }
}
