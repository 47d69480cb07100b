//! Writes SVG: basic shapes, positions with one decimal, and escaped text.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

/// Number of series with a color of their own.
pub(crate) const COLORS: usize = 5;
/// Approximate width of a letter in pixels.
const LETTER: f64 = 7.0;

/// Alignment of a text relative to its position.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A figure under construction.
pub(crate) struct Svg {
    body: String,
    title: String,
    description: String,
}

impl Svg {
    pub(crate) fn new(title: &str, description: &str) -> Self {
        Self { body: String::new(), title: title.to_owned(), description: description.to_owned() }
    }

    /// The complete figure, with this view box.
    pub(crate) fn finish(self, [left, top, width, height]: [f64; 4]) -> String {
        let frame = [left, top, width, height].map(number).join(" ");
        let [left, top, width, height] = [left, top, width, height].map(number);
        let (title, description) = (escape(&self.title), escape(&self.description));
        format!(
            "<svg class=\"prsl-plot\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{frame}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\">\n\
             <title>{title}</title>\n<desc>{description}</desc>\n\
             <style>\n{}</style>\n\
             <rect class=\"page\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/>\n{}</svg>\n",
            include_str!("style.css"),
            self.body
        )
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64), width: f64) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(number);
        let width = number(width);
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke-width=\"{width}\"/>"
        ));
    }

    pub(crate) fn curve(&mut self, class: &str, points: &[(f64, f64)]) {
        let point = |&(x, y): &(f64, f64)| format!("{},{}", number(x), number(y));
        let points: Vec<String> = points.iter().map(point).collect();
        self.put(format_args!("<polyline class=\"curve {class}\" points=\"{}\"/>", points.join(" ")));
    }

    /// A rectangle with a tooltip.
    pub(crate) fn rectangle(&mut self, class: &str, corner: (f64, f64), size: (f64, f64), tooltip: &str) {
        let [x, y, width, height] = [corner.0, corner.1, size.0, size.1].map(number);
        let tooltip = escape(tooltip);
        self.put(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"2\"><title>{tooltip}</title></rect>"
        ));
    }

    pub(crate) fn circle(&mut self, class: &str, center: (f64, f64), radius: f64, tooltip: &str) {
        let [x, y, r] = [center.0, center.1, radius].map(number);
        let tooltip = escape(tooltip);
        self.put(format_args!(
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{r}\"><title>{tooltip}</title></circle>"
        ));
    }

    pub(crate) fn text(&mut self, class: &str, anchor: Anchor, position: (f64, f64), text: &str) {
        let [x, y] = [position.0, position.1].map(number);
        let (anchor, text) = (anchor.name(), escape(text));
        self.put(format_args!(
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x}\" y=\"{y}\">{text}</text>"
        ));
    }

    /// Text that runs upwards, centered on its position.
    pub(crate) fn upward_text(&mut self, class: &str, position: (f64, f64), text: &str) {
        let [x, y] = [position.0, position.1].map(number);
        let text = escape(text);
        self.put(format_args!(
            "<text class=\"{class}\" text-anchor=\"middle\" transform=\"translate({x} {y}) rotate(-90)\">{text}</text>"
        ));
    }

    /// The names of series with their colors, in one line.
    pub(crate) fn legend(&mut self, (mut x, y): (f64, f64), names: &[&str]) {
        for (index, name) in names.iter().enumerate() {
            self.rectangle(&format!("bar {}", series(index)), (x, y - 10.0), (12.0, 12.0), name);
            self.text("", Anchor::Start, (x + 18.0, y), name);
            x += 44.0 + width(name);
        }
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        writeln!(self.body, "{text}").expect("text can be written to");
    }
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// The class with the color of a series.
pub(crate) fn series(index: usize) -> String {
    format!("series-{}", index % COLORS)
}

/// Approximate width of a text in pixels.
pub(crate) fn width(text: &str) -> f64 {
    LETTER * text.width() as f64
}

/// The text in lines of at most this many columns, broken between words. Further lines are indented.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("    {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The text with its numbers rounded to three decimals.
pub(crate) fn rounded(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let is_name = rest[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
        let number = &rest[start..];
        let end = number.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(number.len());
        let (number, after) = number.split_at(end);
        shown.push_str(&rest[..start]);
        match number.parse::<f64>() {
            Ok(value)
                if !is_name && !after.starts_with(['e', 'E']) && number.len() > 5 && number.contains('.') =>
            {
                shown.push_str(&format!("{value:.3}"));
            }
            _ => shown.push_str(number),
        }
        rest = after;
    }
    shown + rest
}

/// Text escaped for XML and HTML; characters that XML does not allow are replaced.
///
/// ```
/// assert_eq!(prsl_plot::escape("a < b & c"), "a &lt; b &amp; c");
/// ```
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            letter if letter.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&letter) => {
                escaped.push('\u{fffd}');
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// A position with at most one decimal. Values that are not finite become 0, because they would break the figure.
fn number(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    if rounded.is_finite() && rounded != 0.0 { format!("{rounded}") } else { "0".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_short_and_finite() {
        assert_eq!(
            [1.0, 1.25, -0.01, f64::NAN, f64::INFINITY, 1e3].map(number),
            ["1", "1.3", "0", "0", "0", "1000"]
        );
    }

    #[test]
    fn long_numbers_are_rounded() {
        assert_eq!(
            rounded("L1_0 0.5830654900898435, rain 0.5, x1.2345678"),
            "L1_0 0.583, rain 0.5, x1.2345678"
        );
        assert_eq!(
            rounded("at_most 2 of {a, b}; 1.2.3.4.5.6; 0.123456e-7"),
            "at_most 2 of {a, b}; 1.2.3.4.5.6; 0.123456e-7"
        );
    }

    #[test]
    fn texts_are_escaped_and_wrapped() {
        assert_eq!(escape("a < b & \"c\"\u{1}\n"), "a &lt; b &amp; &quot;c&quot;\u{fffd} ");
        assert_eq!(wrapped("short", 5), ["short"]);
        assert_eq!(wrapped("a long name of it", 11), ["a long name", "    of it"]);
        assert_eq!(wrapped("漢字 漢字", 5), ["漢字", "    漢字"]);
    }
}
