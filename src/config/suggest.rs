//! "Did you mean": the nearest of the names that exist.

/// The name nearest to `word`, if one is near enough to be what was meant.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).clamp(1, 4);
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// Help for a name that does not exist: the nearest, or all there are.
pub fn help<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.into_iter().collect();
    if let Some(name) = nearest(word, names.iter().copied()) {
        return Some(format!("did you mean `{name}`?"));
    }
    match names.len() {
        0 => None,
        1..=30 => Some(format!("there is {}", list(&names))),
        _ => None,
    }
}

/// Names as a list for people: `a`, `b` and `c`.
pub fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        assert_eq!(nearest("exlcude", ["include", "exclude"]), Some("exclude"));
        assert_eq!(nearest("lisbn", ["lisbon", "hub"]), Some("lisbon"));
        assert_eq!(nearest("tokyo", ["lisbon", "hub"]), None);
        assert_eq!(help("x", []), None);
        assert_eq!(list(&["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
