//! `mirror.yaml(5)`: the manual page of the configuration file. Each setting comes from the schema and the
//! table of settings, as in `mirror explain`; only what holds for several of them is written here.

use crate::config::explain::{self, Explanation};
use crate::config::settings::ReloadClass;
use serde_json::Value;

/// The page's name, as `man` knows it.
pub(super) const NAME: &str = "mirror.yaml";
/// A whole file that is tested as an example.
const EXAMPLE: &str = include_str!("../../examples/filtered-feed.yaml");

/// A part of the page.
struct Section {
    title: &'static str,
    /// Paragraphs, parted by empty lines.
    text: &'static str,
    /// These settings and what stands in them belong here, unless another section names them more exactly.
    settings: &'static [&'static str],
}

const SECTIONS: &[Section] = &[
    Section {
        title: "RULES",
        text: "\
Routes, clusters and chains are maps by name. A name has only `a-z`, `0-9`, `_` and `-`, and is the identity in reloads, metrics, errors \
and consumer groups (`mirror.GROUP.ROUTE.SOURCE.TARGET`).

Unknown and duplicate keys are errors. Only `true` and `false` are booleans; `no` and `on` are texts, `012` is twelve. \
Anchors, aliases and merge keys (`<<`) may be used.

A duration is written `500ms`, `10s` or `1h30m`, a size `64KiB` or `1GiB`, a part `1%`. A bare number in their place is an error.

`mirror check` reports everything that is wrong with its line; `mirror check --effective` prints the file as it is understood, with every default.",
        settings: &["version", "group"],
    },
    Section {
        title: "VARIABLES AND SECRETS",
        text: "\
`${NAME}` is the value of an environment variable, `${NAME:-default}` has a default, `${NAME:?why}` says why it must be set, \
`${file:/path}` is the content of a file without its last line end, and `$${` is a literal `${`.

They are replaced in values after the file is parsed, never in keys, so that a value cannot change the structure; what comes out has the type \
that its place wants.

What comes from a file, and from a variable with a secret's name, is shown nowhere: neither in logs nor in messages nor in answers. \
`--no-env` and `--env-allow` limit the variables that a file may take; `--allow-unset` makes one that is not set an empty text, with a warning.",
        settings: &[],
    },
    Section {
        title: "SEVERAL FILES",
        text: "\
`include:` names further files, relative to the file that includes them; `*` and `?` stand for parts of names. \
`-c` may be repeated, and a folder counts as its files. Clusters, handlers and routes come together from all of them; a name or a setting \
that two files give is an error with both places.",
        settings: &["include"],
    },
    Section {
        title: "CLUSTERS",
        text: "",
        settings: &["clusters"],
    },
    Section {
        title: "ROUTES",
        text: "\
A route copies the topics that match from each of its sources to each of its targets. What stands in `defaults:` holds for every route that does \
not say otherwise: maps are merged key by key, lists and single values replace. A setting that is given here as `routes.*.X` may stand in `defaults.X`, \
except `about`, `source`, `target`, `topics`, `was` and `accept`.

Patterns are regular expressions on the whole name of a topic, without look-around and back references. Named groups, `(?<team>[a-z]+)`, \
may be used in `rename`.",
        settings: &["defaults", "routes"],
    },
    Section {
        title: "HANDLERS",
        text: "\
A chain is a list of steps. A step is a map with one action (`filter`, `rename`, `reformat` or `use`) and, beside it, `name`, `when` and `on_error`. \
The steps run in order; each output of a step goes on alone. `handlers:` names chains for `use:`.

A path is `topic`, `partition`, `offset`, `timestamp`, `key`, `value`, `header.NAME`, or a field: `value.a.b`, `value.items[0]`, \
`value.items[*].serial`, `value[\"odd.name\"].x`, `key.a`. `[*]` may stand in `mask`, `unset`, `cast`, `decode` and `encode`.

A template is a text with `{source}`, `{target}`, `{route}`, `{topic}` (as renamed so far), `{source_topic}`, `{partition}`, `{offset}`, `{timestamp}`, \
a named group of the pattern that matched, or a path. `{{` and `}}` are braces. A name of a topic that is made of a record's content needs `allow:`.

A predicate (`keep`, `drop`, `when`) is one of the words `tombstone`, `null_key` and `empty`; a map of paths and values that must all hold, with lists for \
one of several and `{ gt: 100 }` for operators; `all:`, `any:` and `not:`; or a CEL expression over `topic`, `partition`, `offset`, `timestamp`, `key`, \
`value` and `header`. A comparison with something that is absent is false; `!=` and `not` are true.

A step that fails settles the input record as `on_error` says: `stop` halts its partition, `skip` leaves it out, `dead_letter` sends it aside as it was read, \
`pass` lets it go on as it was before the step.",
        settings: &["handlers", "routes.*.handlers"],
    },
    Section {
        title: "TESTS",
        text: "\
`mirror test` runs them through the route's own handlers and partition policy, without Kafka. They may stand in files of their own, `*.test.yaml`, beside this one.

In `in` and `out` a text is its bytes; a map, list, number or boolean is compact JSON; null is null. In `out` only what is written is compared: a map compares as JSON, \
a text by its bytes, `headers` those that are named, `headers_exactly` all. `out: 3` is a count.",
        settings: &["tests"],
    },
    Section {
        title: "THE PROCESS",
        text: "",
        settings: &[""],
    },
];

/// The page.
pub(super) fn page() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(
        ".TH {NAME} 5 \"\" \"mirror {version}\"\n.ad l\n.nh\n\
         .SH NAME\n{NAME} \\- the configuration file of mirror(1)\n\
         .SH DESCRIPTION\n"
    );
    page += &paragraphs(
        "One YAML file declares clusters and routes; one process runs every route, and follows changes of the file. \
         `mirror init` writes a first one. The settings below are told as `mirror explain SETTING` tells them; `*` stands for any name, and for each item of a list.",
    );
    let paths = parents_first(explain::paths());
    for section in SECTIONS {
        page += &format!(".SH {}\n", quoted(section.title));
        page += &paragraphs(section.text);
        for path in paths.iter().filter(|path| section.owns(path)) {
            page += &setting(path);
        }
    }
    page += &reloads();
    page += &format!(".SH EXAMPLE\n.EX\n{}.EE\n", verbatim(EXAMPLE));
    page + ".SH \"SEE ALSO\"\n\\fBmirror\\fR(1), \\fBmirror\\-check\\fR(1), \\fBmirror\\-explain\\fR(1), \\fBmirror\\-init\\fR(1), \\fBmirror\\-test\\fR(1)\n"
}

impl Section {
    /// How closely it names the setting.
    fn closeness(&self, path: &str) -> Option<usize> {
        let within = |root: &&&str| {
            let below = path.strip_prefix(**root);
            root.is_empty() || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.settings
            .iter()
            .filter(within)
            .map(|root| root.len())
            .max()
    }

    fn owns(&self, path: &str) -> bool {
        let closest = SECTIONS
            .iter()
            .filter_map(|other| other.closeness(path))
            .max();
        self.closeness(path) == closest
    }
}

/// Every setting behind the one that it stands in.
fn parents_first(paths: Vec<String>) -> Vec<String> {
    let mut ordered: Vec<String> = Vec::new();
    for path in &paths {
        let ends = path
            .match_indices('.')
            .map(|(at, _)| at)
            .chain([path.len()]);
        for above in ends.map(|end| &path[..end]) {
            let is_setting = paths.iter().any(|known| known == above);
            if is_setting && !ordered.iter().any(|known| known == above) {
                ordered.push(above.to_owned());
            }
        }
    }
    ordered
}

fn setting(path: &str) -> String {
    let explain::Answer::One(told) = explain::explain(path) else {
        return String::new();
    };
    let mut text = format!(".TP\n\\fB{}\\fR\n{}\n", escape(path), prose(&told.about));
    text += &format!(".br\n{}\n", prose(&facts(&told)));
    for (word, meaning) in &told.words {
        let meaning = match meaning.as_str() {
            "" => String::new(),
            meaning => format!(": {}", prose(meaning)),
        };
        text += &format!(".br\n\\fB{}\\fR{meaning}\n", escape(word));
    }
    let name = path.rsplit('.').find(|step| *step != "*").unwrap_or(path);
    let examples = told.examples.iter();
    let examples: String = examples
        .map(|example| format!("{name}: {example}\n"))
        .collect();
    text + &format!(".IP\n.EX\n{}.EE\n", verbatim(&examples))
}

/// `A duration. Default: 1s. Reload: live.`
fn facts(told: &Explanation) -> String {
    let mut facts = format!("Takes {}.", told.takes);
    match (&told.default, told.presence) {
        (Some(default), _) => facts += &format!(" Default: `{}`.", in_one_line(default)),
        (None, explain::Presence::Required) => facts += " Must be there.",
        (None, explain::Presence::Optional) => {}
    }
    facts + &format!(" Reload: {}.", told.class.as_str())
}

fn in_one_line(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn reloads() -> String {
    let mut text = String::from(".SH RELOAD\n");
    text += &paragraphs(
        "A change of the file is checked as a whole, compared with what runs, and applied route by route; what does not differ is not touched. \
         What is wrong changes nothing: `mirror status` shows it. `mirror plan` shows what a file would change. What can reorder, repeat or lose records needs its word in `accept:`. \
         Each setting says what a change of it means:",
    );
    for class in ReloadClass::ALL {
        text += &format!(
            ".TP\n\\fB{}\\fR\n{}\n",
            class.as_str(),
            prose(class.meaning())
        );
    }
    text
}

fn paragraphs(text: &str) -> String {
    let paragraphs = text.split("\n\n").filter(|p| !p.is_empty());
    paragraphs.map(|p| format!(".PP\n{}\n", prose(p))).collect()
}

/// Text in which what stands between backticks is bold.
fn prose(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(number, part)| match number % 2 {
        0 => escape(part),
        _ => format!("\\fB{}\\fR", escape(part)),
    });
    guarded(&parts.collect::<String>())
}

/// Lines as they are.
fn verbatim(text: &str) -> String {
    text.lines()
        .map(|line| guarded(&escape(line)) + "\n")
        .collect()
}

/// Backslashes, hyphens, quotes and carets as they are written, and characters that are not ASCII by their number.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => escaped += "\\e",
            '-' => escaped += "\\-",
            '\'' => escaped += "\\(aq",
            '`' => escaped += "\\(ga",
            '^' => escaped += "\\(ha",
            '~' => escaped += "\\(ti",
            other if other.is_ascii() => escaped.push(other),
            other => escaped += &format!("\\[u{:04X}]", u32::from(other)),
        }
    }
    escaped
}

/// A point at the beginning of a line is no request.
fn guarded(line: &str) -> String {
    match line.starts_with('.') {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    }
}

fn quoted(title: &str) -> String {
    match title.contains(' ') {
        true => format!("\"{title}\""),
        false => title.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_one_place() {
        let page = page();
        for path in explain::paths() {
            let heading = format!(".TP\n\\fB{}\\fR\n", escape(&path));
            assert_eq!(page.matches(&heading).count(), 1, "{path}");
        }
    }

    #[test]
    fn no_line_is_taken_for_a_request() {
        assert_eq!(
            prose("`.test.yaml` and a-b"),
            "\\fB.test.yaml\\fR and a\\-b"
        );
        assert_eq!(verbatim(".x\n'a\\b'"), "\\&.x\n\\(aqa\\eb\\(aq\n");
        let requests = ["TH", "ad", "nh", "SH", "PP", "TP", "IP", "br", "EX", "EE"];
        for line in page().lines() {
            if let Some(request) = line.strip_prefix('.') {
                let request = request.split(' ').next().unwrap_or_default();
                assert!(requests.contains(&request), "{line}");
            }
            assert!(!line.starts_with('\''), "{line}");
        }
    }
}
