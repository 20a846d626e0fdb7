//! Text for people: columns, numbers, durations, and where it is written.

use super::ColorChoice;
use crate::exit::Exit;
use crate::logging::Colour;
use crate::redact;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Writes a result to standard output. A reader that has gone away (`| head`) is no error.
pub(super) fn out(text: &str) {
    let mut stdout = redact::Clean(io::stdout().lock());
    let _ = stdout.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = stdout.write_all(b"\n");
    }
    let _ = stdout.flush();
}

/// Writes an error to standard error and gives `exit` back.
pub(super) fn fail(message: &str, exit: Exit) -> Exit {
    err(&format!("mirror: {message}"));
    exit
}

/// Writes a line, or several, to standard error.
pub(super) fn err(text: &str) {
    let mut stderr = redact::Clean(io::stderr().lock());
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.write_all(b"\n");
}

/// Whether standard output may be coloured.
pub(super) fn colour_of_stdout(choice: ColorChoice) -> Colour {
    colour(choice, io::stdout().is_terminal())
}

/// Whether standard error may be coloured.
pub(super) fn colour_of_stderr(choice: ColorChoice) -> Colour {
    colour(choice, io::stderr().is_terminal())
}

fn colour(choice: ColorChoice, terminal: bool) -> Colour {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match choice {
        ColorChoice::Always => Colour::On,
        ColorChoice::Auto if terminal && !refused => Colour::On,
        ColorChoice::Auto | ColorChoice::Never => Colour::Off,
    }
}

/// Columns of the terminal that text may take: `COLUMNS` where it is set, at most 100.
fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    columns.unwrap_or(100).clamp(20, 100)
}

/// One paragraph in lines that fit the terminal.
pub(super) fn wrap(paragraph: &str) -> String {
    let mut lines = vec![String::new()];
    for word in paragraph.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if shown_width(line) + 1 + shown_width(word) <= width() => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// Rows of cells as columns; the last cell of a row is as long as it likes.
pub(super) fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| shown_width(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - shown_width(cell) + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Characters that are seen: a colour code (`ESC … m`) has no width.
fn shown_width(cell: &str) -> usize {
    let mut width = 0;
    let mut in_code = None;
    for character in cell.chars() {
        match (character, in_code) {
            ('\x1b', _) => in_code = Some(()),
            ('m', Some(())) => in_code = None,
            (_, Some(())) => {}
            (_, None) => width += 1,
        }
    }
    width
}

/// `1234567` as `1.23M`.
pub(super) fn count(n: f64) -> String {
    let (value, unit) = match n {
        n if n >= 1e9 => (n / 1e9, "G"),
        n if n >= 1e6 => (n / 1e6, "M"),
        n if n >= 1e4 => (n / 1e3, "k"),
        n => return format!("{n:.0}"),
    };
    match value {
        v if v >= 100.0 => format!("{v:.0}{unit}"),
        v if v >= 10.0 => format!("{v:.1}{unit}"),
        v => format!("{v:.2}{unit}"),
    }
}

/// `3661 s` as `1h1m`.
pub(super) fn duration(of: Duration) -> String {
    let seconds = of.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// JSON as YAML; what is not JSON stays as it is.
pub(super) fn as_yaml(json: &str) -> String {
    let parsed = serde_json::from_str::<serde_json::Value>(json).ok();
    parsed
        .and_then(|value| serde_yaml::to_string(&value).ok())
        .unwrap_or_else(|| json.to_owned())
}

/// Prints the client settings that `--no-data-loss` stands on, to standard error. They hold without
/// it as well: it adds that the file may give up on no record.
pub(super) fn show_enforced() {
    err("no data loss: these client settings are enforced, and nothing may give up on a record:");
    for (client, setting, value) in crate::client::settings::enforced() {
        err(&format!("  {client:<9} {setting} = {value}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 9999.0, 12_345.0, 1.5e6, 42.4e6, 7.77e11].map(count);
        assert_eq!(shown, ["0", "9999", "12.3k", "1.50M", "42.4M", "777G"]);
        let spans = [5, 65, 3661, 90_000].map(|s| duration(Duration::from_secs(s)));
        assert_eq!(spans, ["5s", "1m5s", "1h1m", "1d1h"]);
    }

    #[test]
    fn columns_line_up_without_trailing_blanks() {
        let rows = [
            vec!["a".into(), "bb".into()],
            vec!["ccc".into(), "d".into()],
        ];
        assert_eq!(columns(&rows), "a    bb\nccc  d\n");
    }
}
