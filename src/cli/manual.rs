//! The manual page and completions, generated from the command line's own types.

use super::{Cli, file_manual, text};
use crate::exit::Exit;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::io::{self, Write};
use std::path::Path;

/// Prints the completion script of a shell.
pub(super) fn completions(shell: clap_complete::Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "mirror", &mut script);
    text::out(&String::from_utf8_lossy(&script));
    Exit::Done
}

/// Prints a page, or writes all of them into `folder`.
pub(super) fn man(folder: Option<&Path>, named: Option<&str>) -> Exit {
    let done = match (folder, named) {
        (Some(folder), _) => write_pages(folder),
        (None, Some(name)) => return print(name),
        (None, None) => page().map(|page| text::out(&page)),
    };
    match done {
        Ok(()) => Exit::Done,
        Err(error) => text::fail(&format!("man: {error}"), Exit::No),
    }
}

fn print(name: &str) -> Exit {
    let pages = match pages() {
        Ok(pages) => pages,
        Err(error) => return text::fail(&format!("man: {error}"), Exit::No),
    };
    let stem = |file: &str| file.rsplit_once('.').map(|(stem, _)| stem.to_owned());
    let names: Vec<String> = pages.iter().filter_map(|(file, _)| stem(file)).collect();
    let found = pages.iter().zip(&names).find(|(_, own)| *own == name);
    match found {
        Some(((_, page), _)) => {
            text::out(page);
            Exit::Done
        }
        None => {
            let message = format!("no page is called {name}; there are {}", names.join(", "));
            text::fail(&message, Exit::Usage)
        }
    }
}

/// `mirror.1`: the program, its commands in a line each, exit codes, files and signals.
///
/// # Errors
/// Never in practice: it is written into memory.
pub fn page() -> io::Result<String> {
    let command = built();
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    writeln!(page, ".SH COMMANDS")?;
    for sub in command.get_subcommands() {
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(page, ".TP\n\\fBmirror\\-{}\\fR(1)", escape(sub.get_name()))?;
        writeln!(page, "{}", escape(&about))?;
    }
    page.extend(closing().as_bytes());
    writeln!(page, ".SH \"SEE ALSO\"\n\\fBmirror.yaml\\fR(5)")?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// The command with the global options in every subcommand, as the parser sees it.
fn built() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// The page of one command, with what holds for all.
fn page_of(sub: &Command) -> io::Result<String> {
    let name = format!("mirror-{}", sub.get_name());
    let man = Man::new(sub.clone()).title(name);
    let mut page = Vec::new();
    man.render(&mut page)?;
    writeln!(page, ".SH \"EXIT STATUS\"")?;
    writeln!(
        page,
        "The codes of every command stand in \\fBmirror\\fR(1)."
    )?;
    writeln!(page, ".SH \"SEE ALSO\"")?;
    writeln!(page, "\\fBmirror\\fR(1), \\fBmirror.yaml\\fR(5)")?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// Every page with the name of its file.
fn pages() -> io::Result<Vec<(String, String)>> {
    let mut pages = vec![("mirror.1".to_owned(), page()?)];
    for sub in built().get_subcommands() {
        pages.push((format!("mirror-{}.1", sub.get_name()), page_of(sub)?));
    }
    pages.push((format!("{}.5", file_manual::NAME), file_manual::page()));
    Ok(pages)
}

/// A hyphen of an option is no dash.
fn escape(text: &str) -> String {
    text.replace('-', "\\-")
}

fn closing() -> String {
    let mut text = String::from(".SH \"EXIT STATUS\"\n");
    for exit in Exit::ALL {
        let meaning = exit.meaning().replace('-', "\\-");
        text += &format!(".TP\n\\fB{}\\fR\n{meaning}\n", exit.code());
    }
    text += ".SH SIGNALS\n\
        .TP\n\\fBSIGHUP\\fR\nload the files again\n\
        .TP\n\\fBSIGTERM\\fR, \\fBSIGINT\\fR\ndrain and stop; a second one stops at once\n\
        .TP\n\\fBSIGUSR1\\fR\nlog a snapshot of the status\n\
        .SH FILES\n\
        .TP\n\\fImirror.yaml\\fR, \\fI/etc/mirror/mirror.yaml\\fR\nthe configuration, where none is named\n\
        .TP\n\\fI$XDG_RUNTIME_DIR/mirror/GROUP.sock\\fR, \\fI/run/mirror/GROUP.sock\\fR\nthe admin socket, where none is configured\n\
        .SH ENVIRONMENT\n\
        .TP\n\\fBNO_COLOR\\fR\nturns colour off\n\
        .TP\n\\fBMIRROR_LOG\\fR\nas \\-\\-log\\-level\n";
    text
}

fn write_pages(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, page) in pages()? {
        std::fs::write(folder.join(name), page)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use clap_complete::Shell;

    #[test]
    fn the_committed_pages_are_the_generated_ones() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("man");
        let pages = pages().unwrap();
        if std::env::var_os("UPDATE_MAN").is_some() {
            write_pages(&folder).unwrap();
        }
        for (name, page) in &pages {
            let committed = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            assert!(
                committed == *page,
                "man/{name} is out of date: `mirror man man`"
            );
        }
        for entry in std::fs::read_dir(folder).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            let known = pages.iter().any(|(name, _)| *name == file);
            assert!(known, "man/{file} is no page of ours");
        }
    }

    #[test]
    fn every_command_and_option_has_its_words() {
        for sub in built().get_subcommands() {
            let page = page_of(sub).unwrap();
            for option in sub.get_opts().filter_map(|o| o.get_long()) {
                assert!(
                    page.contains(&escape(option)),
                    "{} {option}",
                    sub.get_name()
                );
            }
        }
    }

    #[test]
    fn completions_know_every_command() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "mirror", &mut script);
            let script = String::from_utf8(script).unwrap();
            for sub in Cli::command().get_subcommands() {
                assert!(
                    script.contains(sub.get_name()),
                    "{shell} {}",
                    sub.get_name()
                );
            }
        }
    }
}
