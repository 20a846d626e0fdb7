use super::*;
use serde_json::json;

fn read(text: &str) -> (Option<Tree>, Vec<Diagnostic>, Sources) {
    let mut sources = Sources::default();
    let file = sources.add("m.yaml".into(), text.to_owned());
    let mut found = Vec::new();
    let tree = parse(&sources, file, &mut found);
    (tree, found, sources)
}

fn first_line(text: &str) -> String {
    let (_, found, _) = read(text);
    found.first().map(Diagnostic::one_line).unwrap_or_default()
}

#[test]
fn spans_are_those_of_keys_and_values() {
    let (tree, found, sources) = read("a:\n  b: [x, 'y z']\nc: {d: 1}\n");
    let tree = tree.unwrap();
    assert!(found.is_empty());
    assert_eq!(tree.value, json!({"a": {"b": ["x", "y z"]}, "c": {"d": 1}}));
    let text = |p: &str| sources.slice(tree.spots.get(p).unwrap().value);
    assert_eq!(text("/a/b"), "[x, 'y z']");
    assert_eq!(text("/a/b/1"), "'y z'");
    assert_eq!(text("/c/d"), "1");
    assert_eq!(
        sources.slice(tree.spots.get("/c/d").unwrap().key.unwrap()),
        "d"
    );
}

#[test]
fn merges_follow_precedence_and_keep_the_anchors_place() {
    let (tree, found, sources) =
        read("x: &x {a: 1, b: 2}\ny: &y {b: 3, c: 4}\nz:\n  <<: [*x, *y]\n  a: 9\nw: *x\n");
    let tree = tree.unwrap();
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(tree.value["z"], json!({"a": 9, "b": 2, "c": 4}));
    assert_eq!(tree.value["w"], json!({"a": 1, "b": 2}));
    assert_eq!(
        sources
            .place(tree.spots.get("/z/c").unwrap().value)
            .to_string(),
        "m.yaml:2:17"
    );
}

#[test]
fn duplicate_keys_are_all_found_with_the_first_place() {
    let (tree, found, _) = read("a: 1\nb: {c: 1, c: 2}\na: 2\n");
    assert_eq!(tree.unwrap().value, json!({"a": 1, "b": {"c": 1}}));
    let lines: Vec<_> = found.iter().map(Diagnostic::one_line).collect();
    assert_eq!(
        lines,
        [
            "m.yaml:2:11: error[E0105]: `c` stands twice in one map",
            "m.yaml:3:1: error[E0105]: `a` stands twice in one map",
        ]
    );
    assert_eq!(found[1].related[0].0.to_string(), "m.yaml:1:1");
}

/// Found by the fuzzer: each place was counted from the start of the file.
#[test]
fn a_file_of_mistakes_is_read_in_a_time_that_grows_with_it() {
    let (_, found, sources) = read(&"a: 1\n".repeat(50_000));
    assert_eq!(found.len(), 49_999);
    assert_eq!(found[49_998].place.to_string(), "m.yaml:50000:1");
    let shown =
        crate::config::render::render(&found, &sources, crate::config::render::Colour::Never);
    assert!(shown.ends_with("and 49499 more, which `--format json` lists\n\n"));
}

#[test]
fn nothing_is_no_configuration() {
    for text in ["", "# words\n", "---\n", "~\n", "\u{feff}"] {
        assert!(
            first_line(text).contains("error[E0103]: no configuration"),
            "{text:?}"
        );
    }
}

#[test]
fn a_second_document_is_refused() {
    assert!(first_line("a: 1\n---\nb: 2\n").starts_with("m.yaml:2:1: error[E0104]"));
}

#[test]
fn syntax_errors_stand_where_they_are() {
    let (_, found, _) = read("a: 1\ninclude: [\"orders\\.v\\d+\"]\n");
    assert_eq!(found[0].code, Code::Syntax);
    assert_eq!(found[0].place.position.as_ref().unwrap().line, 2);
    assert!(
        found[0]
            .help
            .as_ref()
            .unwrap()
            .contains("single quotes for regexes")
    );
    assert!(first_line("a:\n\tb: 1\n").starts_with("m.yaml:2:"));
    assert!(first_line("a: 'open\nb: 1\n").starts_with("m.yaml:1:4: error[E0102]"));
    assert!(first_line("a: *nobody\n").starts_with("m.yaml:1:4: error[E0102]"));
}

#[test]
fn bombs_and_cycles_are_refused() {
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for i in 1..10 {
        let before = format!("*a{}", i - 1);
        bomb += &format!("a{i}: &a{i} [{}]\n", vec![before; 9].join(","));
    }
    assert!(first_line(&bomb).contains("error[E0107]"));
    assert!(first_line(&"[".repeat(10_000)).contains("error[E0102]"));
    let deep = format!("{}x{}", "[".repeat(100), "]".repeat(100));
    assert!(first_line(&deep).contains("error[E0107]"));
    let mut merges = String::from("m0: &m0 { k: x }\n");
    for i in 1..40 {
        let before = i - 1;
        merges += &format!("m{i}: &m{i} {{ <<: [*m{before}, *m{before}] }}\n");
    }
    assert!(first_line(&merges).contains("error[E0107]"));
    assert!(first_line("a: &a [*a]\n").contains("error["));
    assert!(first_line("a: &a {<<: *a}\n").contains("error["));
}

#[test]
fn tags_and_odd_keys_are_refused() {
    assert!(first_line("a: !foo 1\n").contains("error[E0106]"));
    assert!(first_line("[a, b]: 1\n").contains("error[E0106]"));
    let (tree, _, _) = read("a: !!str 012\n");
    assert_eq!(tree.unwrap().value, json!({"a": "012"}));
}

#[test]
fn a_file_of_many_nodes_is_read_to_its_end() {
    let entry = |n: usize| format!("k{n}: {{a: [x, 'y', 'it''s'], b: \"z\\t\"}}\n");
    let entries: String = (0..1_000).map(entry).collect();
    for (before, behind, pointer) in [
        ("", "", ""),
        ("<<: {m: 1}\n", "", "/m"),
        ("!!str <<: {m: 1}\n", "", ""),
        ("x: &x {m: 1}\n", "y: *x\n", "/y/m"),
        ("x:\n  <<:\n    - {m: 1}\n", "", "/x/m"),
    ] {
        let (tree, found, sources) = read(&format!("{before}{entries}{behind}"));
        let tree = tree.unwrap();
        assert!(found.is_empty(), "{found:?}");
        let last = json!({"a": ["x", "y", "it's"], "b": "z\t"});
        assert_eq!(tree.value["k999"], last);
        let spot = tree.spots.get("/k999/a/1").unwrap();
        assert_eq!(sources.slice(spot.value), "'y'");
        if !pointer.is_empty() {
            assert_eq!(tree.value.pointer(pointer), Some(&json!(1)), "{before}");
        }
    }
}
