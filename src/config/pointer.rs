//! JSON pointers: how every stage after the parser names a place in the document.

use serde_json::Value;
use std::borrow::Cow;

/// `pointer` with one more step `name`.
pub fn child(pointer: &str, name: &str) -> String {
    let mut child = String::with_capacity(pointer.len() + 1 + name.len());
    child.push_str(pointer);
    child.push('/');
    match name.contains(['~', '/']) {
        true => child.push_str(&escape(name)),
        false => child.push_str(name),
    }
    child
}

/// `pointer` with one more step, an index.
pub fn item(pointer: &str, index: usize) -> String {
    format!("{pointer}/{index}")
}

/// The pointer without its last step, and that step; `None` at the root.
pub fn split(pointer: &str) -> Option<(&str, String)> {
    let at = pointer.rfind('/')?;
    Some((&pointer[..at], unescape(&pointer[at + 1..])))
}

/// The steps of a pointer, from the root.
pub fn steps(pointer: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let steps = pointer.split('/').skip(1);
    steps.map(|step| match step.contains('~') {
        true => Cow::Owned(unescape(step)),
        false => Cow::Borrowed(step),
    })
}

/// A step as the index of an item, if it may be one.
pub fn index(step: &str) -> Option<u32> {
    let is_spelled_so = step == "0" || step.starts_with(|c: char| matches!(c, '1'..='9'));
    step.parse().ok().filter(|_| is_spelled_so)
}

/// The last step as a word for messages; the root is "the file".
pub fn last(pointer: &str) -> String {
    split(pointer).map_or_else(|| "the file".to_owned(), |(_, last)| last)
}

/// Removes what `pointer` names. An item of a list takes the list with it, so that the indexes of
/// its neighbours stay true.
pub fn prune(value: &mut Value, pointer: &str) {
    let Some((parent, name)) = split(pointer) else {
        *value = Value::Object(serde_json::Map::new());
        return;
    };
    match value.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.shift_remove(&name);
        }
        Some(Value::Array(_)) => prune(value, parent),
        _ => {}
    }
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn steps_are_escaped_and_split() {
        let pointer = child("/a", "b/c~d");
        assert_eq!(pointer, "/a/b~1c~0d");
        assert_eq!(split(&pointer), Some(("/a", "b/c~d".to_owned())));
        assert_eq!(last(""), "the file");
    }

    #[test]
    fn pruning_an_item_takes_the_list() {
        let mut value = json!({"a": {"list": [1, 2], "b": 1}});
        prune(&mut value, "/a/list/1");
        assert_eq!(value, json!({"a": {"b": 1}}));
        prune(&mut value, "/nowhere/at/all");
        prune(&mut value, "");
        assert_eq!(value, json!({}));
    }
}
