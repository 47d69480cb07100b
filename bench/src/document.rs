//! Reports that are written as Markdown and as a self-contained page.

use std::fmt::Write as _;

use crate::Table;
use crate::boxplot::BoxPlot;

/// A part of a report. The only markup in texts is `code` in backticks.
#[derive(Clone, Debug)]
pub enum Block {
    /// The title of the report.
    Title(String),
    /// The heading of a section.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A list.
    List(Vec<String>),
    /// A table and the sentence above it.
    Table(String, Table),
    /// A figure, which is omitted in Markdown.
    Figure(BoxPlot),
}

/// The blocks as Markdown, without figures.
pub fn to_markdown(blocks: &[Block]) -> String {
    let mut text = String::new();
    for block in blocks {
        let part = match block {
            Block::Title(title) => format!("# {title}\n"),
            Block::Heading(heading) => format!("## {heading}\n"),
            Block::Text(paragraph) => format!("{paragraph}\n"),
            Block::List(points) => points.iter().map(|point| format!("- {point}\n")).collect(),
            Block::Table(caption, table) => format!("{caption}\n\n{table}"),
            Block::Figure(_) => continue,
        };
        text.push_str(&part);
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// The blocks as a self-contained page.
pub fn to_html(blocks: &[Block]) -> String {
    let title = blocks.iter().find_map(|block| match block {
        Block::Title(title) => Some(title.as_str()),
        _ => None,
    });
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n",
        escape(title.unwrap_or("Report")),
        include_str!("document.css")
    );
    for block in blocks {
        block_to_html(&mut page, block).expect("text can be written to");
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn block_to_html(page: &mut String, block: &Block) -> std::fmt::Result {
    match block {
        Block::Title(title) => writeln!(page, "<h1>{}</h1>", inline(title)),
        Block::Heading(heading) => writeln!(page, "<h2>{}</h2>", inline(heading)),
        Block::Text(paragraph) => writeln!(page, "<p>{}</p>", inline(paragraph)),
        Block::List(points) => {
            let points: String = points.iter().map(|point| format!("<li>{}</li>\n", inline(point))).collect();
            writeln!(page, "<ul>\n{points}</ul>")
        }
        Block::Table(caption, table) => table_to_html(page, caption, table),
        Block::Figure(plot) => {
            writeln!(
                page,
                "<figure>\n<figcaption>{}</figcaption>\n{}</figure>",
                inline(&plot.title),
                plot.to_svg()
            )
        }
    }
}

fn table_to_html(page: &mut String, caption: &str, table: &Table) -> std::fmt::Result {
    writeln!(page, "<div class=\"wide\"><table>\n<caption>{}</caption>", inline(caption))?;
    let (heads, rows) = table.rows().split_first().expect("a table has heads");
    let heads: String = heads.iter().map(|head| format!("<th scope=\"col\">{}</th>", inline(head))).collect();
    writeln!(page, "<thead><tr>{heads}</tr></thead>\n<tbody>")?;
    for row in rows {
        let cells: String = row.iter().map(|cell| format!("<td>{}</td>", inline(cell))).collect();
        writeln!(page, "<tr>{cells}</tr>")?;
    }
    writeln!(page, "</tbody>\n</table></div>")
}

/// Text with `code` in backticks as HTML. A number and its percent sign stay on one line.
fn inline(text: &str) -> String {
    let part = |(index, part): (usize, &str)| match index % 2 {
        0 => escape(part).replace(" %", "\u{a0}%"),
        _ => format!("<code>{}</code>", escape(part)),
    };
    text.split('`').enumerate().map(part).collect()
}

/// Text escaped for HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Vec<Block> {
        let mut table = Table::new(["labels", "error"]);
        table.push(["5", "< 0.1"]);
        vec![
            Block::Title("A & B".to_owned()),
            Block::Heading("Part".to_owned()),
            Block::Text("Run `make study`.".to_owned()),
            Block::List(vec!["one".to_owned(), "two".to_owned()]),
            Block::Table("Errors".to_owned(), table),
        ]
    }

    #[test]
    fn markdown_reads_as_written() {
        let expected = "# A & B\n\n## Part\n\nRun `make study`.\n\n- one\n- two\n\nErrors\n\n\
                        | labels | error |\n|-------:|------:|\n|      5 | < 0.1 |\n";
        assert_eq!(to_markdown(&blocks()), expected);
    }

    #[test]
    fn pages_escape_and_need_nothing_from_elsewhere() {
        let page = to_html(&blocks());
        for part in
            ["<title>A &amp; B</title>", "<code>make study</code>", "<td>&lt; 0.1</td>", "<li>two</li>"]
        {
            assert!(page.contains(part), "{part} is missing in {page}");
        }
        assert!(!page.contains("http") && !page.contains("<script") && !page.contains("<link"));
        assert!(page.contains("prefers-color-scheme: dark"));
    }
}
