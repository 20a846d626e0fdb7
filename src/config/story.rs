//! The long story of a code, as `mirror explain E0105` tells it.
//!
//! A story is a page of Markdown: a title, what it means and why, and two sections of examples,
//! `## Wrong` and `## Right`. The examples are whole configurations, and are tested: each wrong one
//! is refused with that code, each right one passes.

/// A code's story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// In a few words.
    pub title: &'static str,
    /// What it means, and what to do.
    pub text: &'static str,
    /// A configuration to which it happens.
    pub wrong: Vec<Example>,
    /// The same without it.
    pub right: Vec<Example>,
}

/// One file of an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// Its name, `mirror.yaml` for the first.
    pub file: &'static str,
    /// What stands in it.
    pub text: &'static str,
    /// Where the mistake is seen.
    pub seen: Seen,
}

/// Where the mistake of an example is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// In the file.
    Offline,
    /// Only by asking the clusters, or the machine (a fence of `yaml online`).
    Online,
}

impl Story {
    /// Reads a page.
    pub fn of(page: &'static str) -> Self {
        let (head, examples) = page.split_once("\n## Wrong\n").unwrap_or((page, ""));
        let (wrong, right) = examples
            .split_once("\n## Right\n")
            .unwrap_or((examples, ""));
        let (title, text) = head.split_once('\n').unwrap_or((head, ""));
        Self {
            title: title.trim_start_matches('#').trim(),
            text: text.trim(),
            wrong: fences(wrong),
            right: fences(right),
        }
    }

    /// The paragraphs of the text.
    pub fn paragraphs(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.text.split("\n\n")
    }

    /// The examples as text for a terminal: indented, each behind the name of its file where there
    /// are several.
    pub fn examples_text(&self) -> String {
        let mut text = String::new();
        for (heading, examples) in [("Wrong", &self.wrong), ("Right", &self.right)] {
            text += &format!("\n{heading}:\n");
            for example in examples {
                text += "\n";
                if examples.len() > 1 {
                    text += &format!("  {}\n", example.file);
                }
                for line in example.text.lines() {
                    text += format!("    {line}").trim_end();
                    text += "\n";
                }
            }
        }
        text
    }
}

/// The fenced blocks of a section. The fence says the language, then the name of the file.
fn fences(section: &'static str) -> Vec<Example> {
    let mut examples = Vec::new();
    let mut rest = section;
    while let Some((_, fence)) = rest.split_once("```") {
        let Some((info, body)) = fence.split_once('\n') else {
            break;
        };
        let Some((text, after)) = body.split_once("```") else {
            break;
        };
        let mut words = info.split_whitespace().skip(1).peekable();
        let seen = match words.next_if_eq(&"online") {
            Some(_) => Seen::Online,
            None => Seen::Offline,
        };
        let file = words.next().unwrap_or("mirror.yaml");
        examples.push(Example { file, text, seen });
        rest = after;
    }
    examples
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config_tests::load_with;
    use crate::config::diagnostic::{Code, Diagnostic, Severity};
    use crate::config::interpolate::{Unset, Variables};
    use crate::config::loss;

    /// What is said about an example, as `mirror check` says it, with the option that the story is
    /// about.
    fn said(code: Code, examples: &[Example]) -> Vec<Diagnostic> {
        let folder = tempfile::tempdir().unwrap();
        for example in examples {
            let path = folder.path().join(example.file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, example.text).unwrap();
        }
        let variables = Variables {
            unset: match code {
                Code::UnsetVariable => Unset::Empty,
                _ => Unset::Refused,
            },
            ..Variables::default()
        };
        match load_with(&[folder.path().join("mirror.yaml")], &variables) {
            Err(rejected) => rejected.diagnostics,
            Ok(loaded) if code == Code::DataLoss => loss::no_data_loss(&loaded),
            Ok(loaded) => loaded.warnings,
        }
    }

    #[test]
    fn every_story_has_its_title_text_and_examples() {
        for code in Code::ALL {
            let story = code.story();
            let name = code.as_str();
            assert!(
                !story.title.is_empty() && !story.title.ends_with('.'),
                "{name}"
            );
            assert!(story.text.len() > 60, "{name} says too little");
            assert!(!story.wrong.is_empty() && !story.right.is_empty(), "{name}");
        }
    }

    #[test]
    fn every_wrong_example_is_wrong_in_that_way_only() {
        for code in Code::ALL {
            let story = code.story();
            let said = said(*code, &story.wrong);
            if story.wrong.iter().any(|e| e.seen == Seen::Online) {
                assert!(said.is_empty(), "{}: {said:#?}", code.as_str());
                continue;
            }
            assert!(
                said.iter().any(|d| d.code == *code),
                "{}: {said:#?}",
                code.as_str()
            );
            let errors = said.iter().filter(|d| d.severity() == Severity::Error);
            let mut others = errors.filter(|d| d.code != *code);
            assert_eq!(others.next(), None, "{}", code.as_str());
        }
    }

    #[test]
    fn every_right_example_passes() {
        for code in Code::ALL {
            let said = said(*code, &code.story().right);
            assert_eq!(said, [], "{}", code.as_str());
        }
    }

    #[test]
    fn pages_are_taken_apart() {
        let story = Story::of(
            "# A title\n\nText.\n\n## Wrong\n\n```yaml\na: 1\n```\n\n## Right\n\n```yaml mirror.yaml\nb: 2\n```\n\n```text s/t\nx\n```\n",
        );
        assert_eq!((story.title, story.text), ("A title", "Text."));
        assert_eq!(story.wrong[0].text, "a: 1\n");
        assert_eq!(story.right[1].file, "s/t");
        assert_eq!(
            story.examples_text(),
            "\nWrong:\n\n    a: 1\n\nRight:\n\n  mirror.yaml\n    b: 2\n\n  s/t\n    x\n"
        );
    }
}
