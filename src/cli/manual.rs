//! The manual page and completions, generated from the command line's own types.

use super::{Cli, text};
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

/// Prints the page, or writes one page per command into `folder`.
pub(super) fn man(folder: Option<&Path>) -> Exit {
    let done = match folder {
        None => page().map(|page| text::out(&page)),
        Some(folder) => write_pages(folder),
    };
    match done {
        Ok(()) => Exit::Done,
        Err(error) => text::fail(&format!("man: {error}"), Exit::No),
    }
}

/// `mirror.1`: the program, every command with its options, exit codes, files and signals.
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
        page.extend(command_section(sub)?);
    }
    page.extend(closing().as_bytes());
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// The command with the global options in every subcommand, as the parser sees it.
fn built() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

fn command_section(sub: &Command) -> io::Result<Vec<u8>> {
    let man = Man::new(sub.clone());
    let mut section = Vec::new();
    let name = sub
        .get_display_name()
        .unwrap_or(sub.get_name())
        .replace('-', " ");
    writeln!(section, ".SS {name}")?;
    let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
    writeln!(section, "{}.", about.replace('-', "\\-"))?;
    let mut options = Vec::new();
    man.render_options_section(&mut options)?;
    // Inside a section of their own the options need no heading.
    let options = String::from_utf8_lossy(&options).into_owned();
    section.extend(
        options
            .lines()
            .filter(|line| !line.starts_with(".SH"))
            .flat_map(|line| line.bytes().chain([b'\n'])),
    );
    Ok(section)
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
    std::fs::write(folder.join("mirror.1"), page()?)?;
    for sub in built().get_subcommands() {
        let mut page = Vec::new();
        Man::new(sub.clone()).render(&mut page)?;
        std::fs::write(folder.join(format!("mirror-{}.1", sub.get_name())), page)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_page_is_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/man/mirror.1");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        let generated = super::page().unwrap();
        assert!(
            committed == generated,
            "man/mirror.1 is out of date: `mirror man > man/mirror.1`"
        );
    }
}
