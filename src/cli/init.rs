//! `mirror init`: a first configuration, with the words that explain it.

use super::{InitArgs, text};
use crate::exit::Exit;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Writes the file, or prints it. What is there already stays.
pub(super) fn init(args: &InitArgs) -> Exit {
    let configuration = configuration(args);
    if args.stdout {
        text::out(&configuration);
        return Exit::Done;
    }
    let path = &args.file;
    match write(path, &configuration) {
        Ok(()) => {
            text::err(&format!(
                "wrote {}\n{}",
                path.display(),
                next(path).trim_end()
            ));
            Exit::Done
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let name = path.display();
            let message = format!(
                "{name} is there already and stays as it is\n\
                 name another file (`mirror init FILE`), or look at one first (`mirror init --stdout`)"
            );
            text::fail(&message, Exit::No)
        }
        Err(error) => text::fail(&format!("{}: {error}", path.display()), Exit::No),
    }
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    File::create_new(path)?.write_all(text.as_bytes())
}

fn next(path: &Path) -> String {
    let file = match path.to_string_lossy().as_ref() {
        "mirror.yaml" => String::new(),
        other => format!(" {other}"),
    };
    let mut text = String::from("next:\n");
    for (command, what) in [
        ("check", "what is missing or wrong, offline"),
        ("run", "copy; Ctrl-C drains and stops"),
    ] {
        let _ = writeln!(text, "  {:<28}# {what}", format!("mirror {command}{file}"));
    }
    let status = match file.as_str() {
        "" => "mirror status".to_owned(),
        file => format!("mirror status -c{file}"),
    };
    let _ = writeln!(text, "  {status:<28}# from another terminal: how far it is");
    text
}

/// The file's text.
fn configuration(args: &InitArgs) -> String {
    let end = |given: &[String], variable: &str, what: &str| match given {
        [] => {
            let ask = format!(
                "'${{{variable}:?host:port of the cluster to copy {what}; put it here, or into this variable}}'"
            );
            format!("[{ask}]")
        }
        given => {
            let quoted: Vec<String> = given.iter().map(|server| format!("'{server}'")).collect();
            format!("[{}]", quoted.join(", "))
        }
    };
    let topics: Vec<String> = args
        .topics
        .iter()
        .map(|pattern| format!("'{}'", pattern.replace('\'', "''")))
        .collect();
    TEMPLATE
        .replace("<from>", &end(&args.from, "MIRROR_FROM", "from"))
        .replace("<to>", &end(&args.to, "MIRROR_TO", "to"))
        .replace("<topics>", &topics.join(", "))
}

/// The file, with places for what the options say. A line that is commented out may be taken into use as
/// it stands.
const TEMPLATE: &str = include_str!("init.yaml");

/// `host:port`, several parted by commas, as they may stand in quotes.
///
/// # Errors
/// What is no address.
pub(super) fn server(text: &str) -> Result<String, String> {
    let host_and_port = text.rsplit_once(':');
    let legal = |c: char| c.is_ascii_alphanumeric() || ".-_[]:".contains(c);
    match host_and_port {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|p| p > 0) => {
            match text.chars().all(legal) {
                true => Ok(text.to_owned()),
                false => Err("a host has letters, digits, `.`, `-` and `_`".to_owned()),
            }
        }
        _ => Err("write `host:port`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config_tests::{lines, load_text};
    use crate::config::render::Colour;

    fn args(from: &[&str], to: &[&str]) -> InitArgs {
        let all = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
        InitArgs {
            file: "mirror.yaml".into(),
            from: all(from),
            to: all(to),
            topics: all(&[".+"]),
            stdout: false,
        }
    }

    #[test]
    fn with_addresses_it_passes_without_a_warning() {
        let text = configuration(&args(&["a:9092", "b:9092"], &["c:9092"]));
        let loaded = load_text(&text)
            .map_err(|r| r.render(Colour::Never))
            .unwrap();
        assert!(
            loaded.warnings.is_empty(),
            "{}",
            loaded.render(Colour::Never)
        );
        assert_eq!(loaded.spec.routes.len(), 1);
        assert!(!text.contains(['<', '>']), "{text}");
    }

    #[test]
    fn without_addresses_the_errors_ask_for_them() {
        let rejected = load_text(&configuration(&args(&[], &[]))).unwrap_err();
        let said = lines(&rejected.diagnostics);
        assert_eq!(said.len(), 2, "{said:#?}");
        assert!(
            said[0].contains("E0202") && said[0].contains("host:port"),
            "{said:#?}"
        );
        assert!(said[1].contains("copy to"), "{said:#?}");
    }

    #[test]
    fn one_address_for_both_is_found_by_check() {
        let rejected = load_text(&configuration(&args(&["a:9092"], &["a:9092"]))).unwrap_err();
        assert!(
            rejected.first_error().contains("E0410"),
            "{}",
            rejected.first_error()
        );
    }

    #[test]
    fn every_setting_that_is_commented_out_may_be_taken_into_use() {
        let text = configuration(&args(&["a:9092"], &["c:9092"]));
        let (head, settings) = text.split_once("version: 1").unwrap();
        let is_setting = |line: &&str| line.trim_start().starts_with("# ");
        assert!(settings.lines().filter(is_setting).count() >= 8);
        let mut all = format!("{head}version: 1");
        for line in settings.lines() {
            all += &match is_setting(&line) {
                true => line.replacen("# ", "", 1),
                false => line.to_owned(),
            };
            all += "\n";
        }
        let loaded = load_text(&all);
        let words = loaded.err().map(|r| r.render(Colour::Never));
        assert!(words.is_none(), "{}", words.unwrap_or_default());
    }

    #[test]
    fn patterns_are_quoted_and_addresses_looked_at() {
        let mut asked = args(&["a:9092"], &["c:9092"]);
        asked.topics = vec!["it's".to_owned(), r"a\.b".to_owned()];
        assert!(configuration(&asked).contains(r"include: ['it''s', 'a\.b']"));
        for bad in ["a", "a:0", ":1", "a b:1", "a':1", "http://a:1"] {
            assert!(server(bad).is_err(), "{bad}");
        }
        assert!(server("[::1]:9092").is_ok());
    }
}
