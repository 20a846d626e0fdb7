//! Where the sandbox writes: lines that stay, and below them a block that is redrawn in place.

use crate::logging::Colour;
use crate::redact;
use std::io::{self, IsTerminal, Write};

/// What is written on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// A terminal: a block can be drawn over.
    Terminal,
    /// A file or a pipe: lines only.
    Lines,
}

/// Standard output, and how many lines at its end will be drawn over.
pub struct Screen {
    surface: Surface,
    colour: Colour,
    drawn: usize,
}

/// How a piece of text is shown. Colour never alone carries meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Headings.
    Bold,
    /// What may be skipped.
    Dim,
    /// All is well.
    Green,
    /// Look at this.
    Yellow,
    /// This is wrong.
    Red,
}

impl Screen {
    /// Standard output as it is; a terminal that cannot move its cursor gets lines.
    pub fn stdout(colour: Colour) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let surface = if io::stdout().is_terminal() && !dumb {
            Surface::Terminal
        } else {
            Surface::Lines
        };
        Self {
            surface,
            colour,
            drawn: 0,
        }
    }

    /// What it writes on.
    pub fn surface(&self) -> Surface {
        self.surface
    }

    /// Columns of the terminal, 80 where there is none.
    pub fn width(&self) -> usize {
        terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0))
    }

    /// `text` in `ink`.
    pub fn ink(&self, ink: Ink, text: &str) -> String {
        let code = match (self.colour, ink) {
            (Colour::Off, _) => return text.to_owned(),
            (_, Ink::Bold) => "1",
            (_, Ink::Dim) => "2",
            (_, Ink::Green) => "32",
            (_, Ink::Yellow) => "33",
            (_, Ink::Red) => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Writes lines that stay, above the block.
    pub fn say(&mut self, text: &str) {
        let mut out = self.rewound();
        for line in text.split('\n') {
            out.push_str(line);
            out.push('\n');
        }
        self.write(&out);
    }

    /// Draws the block anew. On a terminal only.
    pub fn draw(&mut self, block: &[String]) {
        if self.surface == Surface::Lines {
            return;
        }
        // Without the cursor, which would jump about.
        let mut out = "\x1b[?25l".to_owned();
        out.push_str(&self.rewound());
        for line in block {
            out.push_str(line);
            out.push('\n');
        }
        self.drawn = block.len();
        self.write(&out);
    }

    /// The last block becomes text that stays, and the cursor is seen again.
    pub fn settle(&mut self) {
        if self.surface == Surface::Terminal {
            self.drawn = 0;
            self.write("\x1b[?25h");
        }
    }

    /// Takes the block away.
    pub fn clear(&mut self) {
        let out = self.rewound();
        self.write(&out);
        self.settle();
    }

    /// Moves to where the block begins, and wipes it.
    fn rewound(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r\x1b[J"),
        }
    }

    /// A reader that has gone away is no error.
    fn write(&self, text: &str) {
        let mut stdout = redact::Clean(io::stdout().lock());
        let _ = stdout.write_all(text.as_bytes());
        let _ = stdout.flush();
    }
}

/// Whatever ends the story, the terminal gets its cursor back.
impl Drop for Screen {
    fn drop(&mut self) {
        self.settle();
    }
}
