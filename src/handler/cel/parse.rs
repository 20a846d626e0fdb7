//! Text → syntax tree, and where each part of it stands in the text.

use cel::Env;
use cel::common::ast::{EntryExpr, Expr, IdedExpr, SourceInfo};
use std::ops::Range;

/// A mistake in an expression.
#[derive(Debug)]
pub(super) struct Mistake {
    /// Where, in bytes of the text.
    pub(super) bytes: Range<usize>,
    /// What is wrong.
    pub(super) message: String,
    /// What to do.
    pub(super) help: Option<String>,
}

impl Mistake {
    pub(super) fn new(bytes: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            bytes,
            message: message.into(),
            help: None,
        }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// A parsed expression.
pub(super) struct Parsed<'t> {
    text: &'t str,
    root: IdedExpr,
    places: SourceInfo,
}

impl<'t> Parsed<'t> {
    /// Parses `text`. Macros stay the calls that they are written as.
    pub(super) fn of(text: &'t str) -> Result<Self, Mistake> {
        let parser = Env::default()
            .with_optional_support(false)
            .parser()
            .enable_ident_escape_syntax(true);
        match parser.parse_with_source_info(text) {
            Ok((root, places)) => Ok(Self { text, root, places }),
            Err(errors) => Err(match errors.errors.first() {
                Some(error) => mistake(text, error.pos, &error.msg),
                None => Mistake::new(0..text.len(), "this is no expression"),
            }),
        }
    }

    pub(super) fn root(&self) -> &IdedExpr {
        &self.root
    }

    /// The token that `expr` is known by: a name, a literal, an operator, the bracket of a call.
    pub(super) fn token(&self, expr: &IdedExpr) -> Range<usize> {
        match self.places.offset_for(expr.id) {
            Some((start, last)) => start as usize..(last as usize + 1).min(self.text.len()),
            None => 0..self.text.len(),
        }
    }

    /// How the token of `expr` is spelled.
    pub(super) fn spelled(&self, expr: &IdedExpr) -> &'t str {
        self.text.get(self.token(expr)).unwrap_or_default()
    }

    /// The name of the function that `call` calls: it stands before the bracket.
    pub(super) fn function(&self, call: &IdedExpr, name: &str) -> Range<usize> {
        let bracket = self.token(call).start;
        let before = self.text.get(..bracket).unwrap_or_default().trim_end();
        before.len().saturating_sub(name.len())..before.len()
    }

    /// The bytes `part` of a `text` that is spelled out at `place`; where it is spelled with escapes, all of it.
    pub(super) fn part(&self, place: Range<usize>, text: &str, part: Range<usize>) -> Range<usize> {
        let spelled = self.text.get(place.clone()).unwrap_or_default();
        match spelled.find(text) {
            Some(at) => place.start + at + part.start..place.start + at + part.end,
            None => place,
        }
    }

    /// All of `expr`, up to its last token; a closing bracket is not one.
    pub(super) fn whole(&self, expr: &IdedExpr) -> Range<usize> {
        let mut span = self.token(expr);
        let mut widen = |part: &IdedExpr| {
            let part = self.whole(part);
            span = span.start.min(part.start)..span.end.max(part.end);
        };
        match &expr.expr {
            Expr::Call(call) => {
                call.target.iter().for_each(|target| widen(target));
                call.args.iter().for_each(widen);
                if call.target.is_none() && self.spelled(expr) == "(" {
                    span.start = span.start.min(self.function(expr, &call.func_name).start);
                }
            }
            Expr::Select(select) => {
                widen(&select.operand);
                let field = self.text.get(span.end..).unwrap_or_default();
                if field.starts_with(&select.field) {
                    span.end += select.field.len();
                }
            }
            Expr::List(list) => list.elements.iter().for_each(widen),
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        widen(&entry.key);
                        widen(&entry.value);
                    }
                }
            }
            _ => {}
        }
        span
    }
}

/// The last bracket that is opened and not closed, outside of texts.
fn unclosed(text: &str) -> Option<(usize, char)> {
    let mut open = Vec::new();
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(mark), _) if mark == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => open.push((at, c)),
            (None, ')' | ']' | '}') => {
                open.pop();
            }
            (None, _) => {}
        }
    }
    open.pop()
}

/// The parser's error in our words. It counts lines and columns in characters, from 1.
fn mistake(text: &str, (line, column): (isize, isize), message: &str) -> Mistake {
    let at = byte_of(text, line, column);
    let rest = &text[at..];
    let first = rest.chars().next().unwrap_or(' ');
    let here = at..at + first.len_utf8().min(rest.len());
    if rest.trim().is_empty() {
        if let Some((at, bracket)) = unclosed(text) {
            let mistake = Mistake::new(at..at + 1, format!("the `{bracket}` is not closed"));
            return mistake.help("write the bracket that closes it");
        }
        let end = text.trim_end().len();
        return Mistake::new(end..end, "the expression ends too early")
            .help("something is missing behind its last word");
    }
    if message.starts_with("invalid int literal") || message.starts_with("invalid uint literal") {
        let digits = rest.find(|c: char| !c.is_ascii_alphanumeric());
        let digits = digits.unwrap_or(rest.len());
        return Mistake::new(at..at + digits, "the integer does not fit 64 bits")
            .help("write it as a decimal (`….0`): numbers are compared by value");
    }
    if message.starts_with("Syntax error: ") {
        if first == '=' {
            return Mistake::new(here, "`=` is not expected here").help("`==` compares");
        }
        if first == '\'' || first == '"' {
            return Mistake::new(here, "the text does not end")
                .help(format!("write `{first}` behind its last character"));
        }
        if !first.is_ascii() {
            return Mistake::new(here, format!("`{first}` is not expected here"))
                .help("a name with other letters is written in brackets: `value[\"…\"]`");
        }
        let token = token_of(rest);
        let mistake = Mistake::new(
            at..at + token.len(),
            format!("`{token}` is not expected here"),
        );
        return match text[..at].ends_with('.') {
            true => mistake.help(format!(
                "a word of the language is written in brackets: `[\"{token}\"]`"
            )),
            false => mistake,
        };
    }
    Mistake::new(here, message.to_owned())
}

/// The word, or the one character, that `text` begins with.
fn token_of(text: &str) -> &str {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let word = text.find(|c| !is_word(c)).unwrap_or(text.len());
    let first = text.chars().next().map_or(0, char::len_utf8);
    &text[..word.max(first)]
}

fn byte_of(text: &str, line: isize, column: isize) -> usize {
    let line = usize::try_from(line - 1).unwrap_or(0);
    let column = usize::try_from(column - 1).unwrap_or(0);
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let mut characters = text[start..].char_indices();
    characters
        .nth(column)
        .map_or(text.len(), |(at, _)| start + at)
}
