//! The JSON schema of the file, made from the types and the table of defaults.

use crate::config::defaults;
use crate::config::raw::RawFile;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use std::sync::LazyLock;

/// Where the schema lives, for editors.
const ID: &str = "mirror.schema.json";

/// The schema, made once.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(generate);
    &SCHEMA
}

/// The text of `schemas/mirror.schema.json`.
pub fn text() -> String {
    let mut text = serde_json::to_string_pretty(schema()).unwrap_or_default();
    text.push('\n');
    text
}

fn generate() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<RawFile>().to_value();
    if let Value::Object(root) = &mut schema {
        root.insert("$id".to_owned(), Value::String(ID.to_owned()));
    }
    insert_defaults(&mut schema, "", &defaults::of_file());
    for name in ["RawRoute", "RawDefaults"] {
        insert_defaults(
            &mut schema,
            &format!("/$defs/{name}"),
            &defaults::of_route(),
        );
    }
    insert_defaults(&mut schema, "/$defs/RawCluster", &defaults::of_cluster());
    insert_defaults(&mut schema, "/$defs/RawTls", &defaults::of_tls());
    schema
}

/// Writes each default at the property that it is the default of.
fn insert_defaults(schema: &mut Value, object: &str, table: &Value) {
    let Value::Object(table) = table else {
        return;
    };
    for (name, default) in table {
        let at = format!("{object}/properties/{name}");
        let Some(Value::Object(property)) = schema.pointer_mut(&at) else {
            continue;
        };
        let target = property.get("$ref").and_then(Value::as_str);
        let target = target.map(|t| t.trim_start_matches('#').to_owned());
        match (default, target) {
            (Value::Object(_), Some(target)) => insert_defaults(schema, &target, default),
            _ => {
                property.insert("default".to_owned(), default.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schema_is_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/mirror.schema.json");
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(path, text()).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == text(),
            "run `mirror schema > schemas/mirror.schema.json`, or this test with UPDATE_SCHEMA=1"
        );
    }

    #[test]
    fn every_default_is_in_the_schema() {
        let schema = schema();
        for (name, default) in defaults::of_route().as_object().unwrap() {
            let at = format!("/$defs/RawRoute/properties/{name}");
            let property = schema.pointer(&at).unwrap_or_else(|| panic!("no {name}"));
            if !default.is_object() {
                assert_eq!(&property["default"], default, "{name}");
            }
        }
        assert_eq!(
            schema["$defs"]["RawQueue"]["properties"]["bytes"]["default"],
            "32MiB"
        );
    }

    #[test]
    fn every_property_is_described_and_none_takes_null() {
        let ours = schema()["$defs"].as_object().unwrap().iter();
        let ours = ours.filter(|(name, _)| name.starts_with("Raw"));
        let root = ("RawFile".to_owned(), schema().clone());
        for (object, value) in ours.chain([(&root.0, &root.1)]) {
            for (name, property) in value["properties"].as_object().into_iter().flatten() {
                let documented = property.get("description").is_some();
                assert!(documented, "{object}.{name} has no description");
                let types = property.get("type").map(Value::to_string);
                let null = types.is_some_and(|t| t.contains("null"));
                assert!(!null, "{object}.{name} takes null");
            }
        }
    }
}
