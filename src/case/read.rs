//! `tests:` raw → [`Case`]: routes and steps found, bytes decoded, every mistake at its place.

use super::compact;
use super::raw::{Payload, RawHeaders, RawInput, RawOutput, RawOutputs, RawTest};
use super::spec::{
    CLOCK_MS, Case, Content, Expected, ExpectedRecord, Extent, FAILURES, Given, Input, Order,
    Outputs, Records, Wanted, WantedHeaders,
};
use crate::config::chains::read_raw;
use crate::config::diagnostic::Code;
use crate::config::laid::Laid;
use crate::config::pointer;
use crate::config::spec::{ClusterSpec, Name, RouteSpec};
use crate::config::suggest;
use crate::config::validate::Check;
use crate::handler::FailureCode;
use crate::trial;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::sync::Arc;

/// Reads every test. One that is wrong is reported and left out.
pub fn read(routes: &[Arc<RouteSpec>], check: &mut Check<'_>) -> Vec<Case> {
    let document = check.document;
    let written = document.value.get("tests").and_then(Value::as_array);
    let mut cases = Vec::new();
    for (index, value) in written.into_iter().flatten().enumerate() {
        let at = pointer::item("/tests", index);
        if let Some(raw) = read_raw::<RawTest>(Laid::alone(value), &at, check) {
            let name = raw.name.clone();
            let name = name.unwrap_or_else(|| format!("#{}", index + 1));
            cases.extend(Reader { at, routes, check }.case(name, raw));
        }
    }
    cases
}

/// A header's name, the place of its value, and the value.
type WrittenHeader = (String, String, Value);

/// One test on its way.
struct Reader<'r, 'a> {
    at: String,
    routes: &'r [Arc<RouteSpec>],
    check: &'r mut Check<'a>,
}

impl Reader<'_, '_> {
    fn case(&mut self, name: String, raw: RawTest) -> Option<Case> {
        let route = self.route(raw.route.as_deref()?)?;
        let target = self.end("target", raw.target.as_deref(), &route.targets);
        let inputs = self.inputs(raw.input.unwrap_or_default(), &route);
        let expected = self.expected(&route, raw.out, raw.dropped, raw.failed.map(|f| f.0));
        Some(Case {
            name,
            at: self.at.clone(),
            target: target?,
            target_partitions: raw.target_partitions,
            inputs: inputs?,
            expected: expected?,
            route,
        })
    }

    fn route(&mut self, name: &str) -> Option<Arc<RouteSpec>> {
        let built = self.routes.iter().find(|r| r.name.as_str() == name);
        let defined = || self.check.section("routes").any(|(known, _)| known == name);
        if built.is_none() && !defined() {
            let names = self.check.section("routes").map(|(name, _)| name.as_str());
            let at = pointer::child(&self.at, "route");
            self.check
                .unknown(Code::UnknownRoute, ("route", &at, name), names);
        }
        built.cloned()
    }

    /// The cluster that `key` names, the first one where it is absent.
    fn end(
        &mut self,
        key: &str,
        name: Option<&str>,
        clusters: &[Arc<ClusterSpec>],
    ) -> Option<Name> {
        let Some(name) = name else {
            return clusters.first().map(|c| c.name.clone());
        };
        let found = clusters.iter().find(|c| c.name.as_str() == name);
        if found.is_none() {
            let at = pointer::child(&self.at, key);
            let names = clusters.iter().map(|c| c.name.as_str());
            let kind = format!("{key} of the route:");
            self.check
                .unknown(Code::UnknownCluster, (&kind, &at, name), names);
        }
        found.map(|c| c.name.clone())
    }

    fn inputs(&mut self, list: Vec<RawInput>, route: &RouteSpec) -> Option<Vec<Input>> {
        let at = pointer::child(&self.at, "in");
        let items = list.into_iter().enumerate().map(|(index, raw)| {
            let mut reader = Reader {
                at: pointer::item(&at, index),
                routes: self.routes,
                check: self.check,
            };
            reader.input(raw, route)
        });
        // Every item is read, so that all mistakes are found.
        items.collect::<Vec<_>>().into_iter().collect()
    }

    fn input(&mut self, raw: RawInput, route: &RouteSpec) -> Option<Input> {
        let source = self.end("source", raw.source.as_deref(), &route.sources);
        let records = match (&raw.kcat, &raw.kcat_file) {
            (None, None) => self.given(raw).map(Records::One),
            _ => self.kcat(&raw, route).map(Records::Kcat),
        };
        Some(Input {
            at: self.at.clone(),
            source: source?,
            records: records?,
        })
    }

    fn given(&mut self, raw: RawInput) -> Option<Given> {
        if raw.topic.is_none() {
            let message = "the record has no `topic`".to_owned();
            let at = self.at.clone();
            self.check.say(Code::MissingKey, &at, message);
        }
        let key = self.content(&[("key_hex", &raw.key_hex)], ("key", &raw.key));
        let value = self.value(
            [&raw.value_hex, &raw.value_base64, &raw.value_file],
            &raw.value,
        );
        let headers = match &raw.headers {
            Some(headers) => self.headers("headers", headers),
            None => Some((Order::Any, Vec::new())),
        };
        let headers = headers?.1.into_iter().map(|(name, at, value)| {
            let bytes = match &value {
                Value::Null => None,
                Value::String(text) => Some(text.clone().into_bytes()),
                json => Some(compact::text(json, &at, self.check.document).into_bytes()),
            };
            (name.into_bytes(), bytes)
        });
        let headers = headers.collect();
        let at = raw.at.as_ref();
        Some(Given {
            topic: raw.topic?,
            partition: at.and_then(|a| a.partition).unwrap_or(0),
            offset: at.and_then(|a| a.offset),
            timestamp: raw.timestamp.unwrap_or(CLOCK_MS),
            key: key?.unwrap_or(Content::Null),
            value: value?.unwrap_or(Content::Null),
            headers,
        })
    }

    /// Lines of kcat. Those in the test are looked at now, those in a file when the test runs.
    fn kcat(&mut self, raw: &RawInput, route: &RouteSpec) -> Option<Content> {
        let members = self.check.document.value.pointer(&self.at)?.as_object()?;
        let apart = |name: &&String| !["source", "kcat", "kcat_file"].contains(&name.as_str());
        if let Some(other) = members.keys().find(apart).cloned() {
            return self.conflict(&other, "`kcat` says everything of its records");
        }
        match (&raw.kcat, &raw.kcat_file) {
            (Some(_), Some(_)) => self.conflict("kcat_file", "`kcat` stands beside it"),
            (Some(lines), _) => self.lines(lines, route),
            (_, Some(file)) => Some(self.file("kcat_file", file)),
            (None, None) => None,
        }
    }

    fn lines(&mut self, lines: &str, route: &RouteSpec) -> Option<Content> {
        let source = &route.sources.first()?.name;
        let numbered = lines
            .lines()
            .enumerate()
            .filter(|(_, l)| !l.trim().is_empty());
        for (index, line) in numbered {
            if let Err(error) = trial::parse_line(line, source) {
                let at = pointer::child(&self.at, "kcat");
                let message = format!("line {}: {error}", index + 1);
                self.check.say(Code::BadBytes, &at, message);
                return None;
            }
        }
        Some(Content::Bytes(lines.as_bytes().to_vec()))
    }

    fn value(
        &mut self,
        [hex, base64, file]: [&Option<String>; 3],
        plain: &Option<Payload>,
    ) -> Option<Option<Content>> {
        let others = [
            ("value_hex", hex),
            ("value_base64", base64),
            ("value_file", file),
        ];
        self.content(&others, ("value", plain))
    }

    /// The bytes that exactly one of several keys gives; `Some(None)` if none of them is written.
    fn content(
        &mut self,
        others: &[(&str, &Option<String>)],
        (key, plain): (&str, &Option<Payload>),
    ) -> Option<Option<Content>> {
        let mut written = others
            .iter()
            .filter_map(|(k, v)| v.as_ref().map(|v| (*k, v)));
        let plain = plain.as_ref().map(|Payload(value)| {
            let at = pointer::child(&self.at, key);
            compact::content(value, &at, self.check.document)
        });
        let Some((first, text)) = written.next() else {
            return Some(plain);
        };
        let second = plain.map(|_| key).or_else(|| written.next().map(|w| w.0));
        if let Some(second) = second {
            return self.conflict(second, &format!("`{first}` stands beside it"));
        }
        let at = pointer::child(&self.at, first);
        if first.ends_with("_file") {
            return Some(Some(self.file(first, text)));
        }
        let decoded = match first.ends_with("_hex") {
            true => hex::decode(text.replace(' ', "")).map_err(|e| format!("not hexadecimal: {e}")),
            false => STANDARD
                .decode(text.trim())
                .map_err(|e| format!("not base64: {e}")),
        };
        match decoded {
            Ok(bytes) => Some(Some(Content::Bytes(bytes))),
            Err(message) => {
                self.check.say(Code::BadBytes, &at, message.to_lowercase());
                None
            }
        }
    }

    fn conflict<T>(&mut self, key: &str, why: &str) -> Option<T> {
        let at = pointer::child(&self.at, key);
        let message = format!("`{key}` cannot stand here: {why}");
        self.check.say_of_key(Code::Conflict, &at, message);
        None
    }

    fn file(&self, key: &str, file: &str) -> Content {
        let at = pointer::child(&self.at, key);
        Content::File {
            path: self.check.document.folder(&at).join(file),
            at,
        }
    }

    /// Names with the places and values of headers.
    fn headers(
        &mut self,
        key: &str,
        RawHeaders(value): &RawHeaders,
    ) -> Option<(Order, Vec<WrittenHeader>)> {
        let at = pointer::child(&self.at, key);
        match value {
            Value::Object(map) => {
                let of = |(name, value): (&String, &Value)| {
                    (name.clone(), pointer::child(&at, name), value.clone())
                };
                Some((Order::Any, map.iter().map(of).collect()))
            }
            Value::Array(list) => {
                let pairs = list.iter().enumerate().map(|(index, pair)| {
                    let at = pointer::item(&at, index);
                    match pair.as_array().map(Vec::as_slice) {
                        Some([Value::String(name), value]) => {
                            Some((name.clone(), pointer::item(&at, 1), value.clone()))
                        }
                        _ => {
                            let message = "a header is `[name, value]`, and its name is a text";
                            self.check.say(Code::WrongType, &at, message);
                            None
                        }
                    }
                });
                let pairs: Option<Vec<_>> = pairs.collect();
                pairs.map(|pairs| (Order::AsWritten, pairs))
            }
            _ => None,
        }
    }

    fn expected(
        &mut self,
        route: &RouteSpec,
        out: Option<RawOutputs>,
        dropped: Option<String>,
        failed: Option<String>,
    ) -> Option<Expected> {
        let nothing = out.is_none() && dropped.is_none() && failed.is_none();
        if nothing && !self.check.is_wrong_below(&self.at) {
            let message = "the test expects nothing".to_owned();
            let at = self.at.clone();
            self.check.say_of_key(Code::MissingKey, &at, message).help =
                Some("say what comes out: `out`, `dropped` or `failed`".to_owned());
        }
        if dropped.is_some() && failed.is_some() {
            return self.conflict("failed", "the last record was `dropped`");
        }
        let dropped = match dropped {
            Some(word) => Some(self.dropped(word, route)?),
            None => None,
        };
        let out = match out {
            Some(RawOutputs::Count(count)) => Some(Outputs::Count(count)),
            Some(RawOutputs::Records(list)) => Some(Outputs::Records(self.outputs(list)?)),
            None => None,
        };
        let of = |code: String| FAILURES.into_iter().find(|f| f.as_str() == code);
        let failed: Option<FailureCode> = failed.and_then(of);
        (!nothing).then_some(Expected {
            out,
            dropped,
            failed,
        })
    }

    /// What can drop a record: an action, a step by its name, the selection of topics.
    fn dropped(&mut self, word: String, route: &RouteSpec) -> Option<String> {
        let steps = route.chain.specs();
        let names = steps.filter_map(|step| step.name.as_deref());
        let known = ["filter", "reformat", "use", "topics"]
            .into_iter()
            .chain(names);
        let known: Vec<&str> = known.collect();
        if known.contains(&word.as_str()) {
            return Some(word);
        }
        let at = pointer::child(&self.at, "dropped");
        let message = format!("no step is {}", self.check.quoted(&at, &word));
        let help = suggest::help(&word, known.iter().copied());
        self.check.say(Code::UnknownStep, &at, message).help =
            help.or_else(|| Some(format!("it takes {}", suggest::list(&known))));
        None
    }

    fn outputs(&mut self, list: Vec<RawOutput>) -> Option<Vec<ExpectedRecord>> {
        let at = pointer::child(&self.at, "out");
        let items = list.into_iter().enumerate().map(|(index, raw)| {
            let mut reader = Reader {
                at: pointer::item(&at, index),
                routes: self.routes,
                check: self.check,
            };
            reader.output(raw)
        });
        items.collect::<Vec<_>>().into_iter().collect()
    }

    fn output(&mut self, raw: RawOutput) -> Option<ExpectedRecord> {
        let key = self.content(&[("key_hex", &raw.key_hex)], ("key", &raw.key));
        let value = self.value(
            [&raw.value_hex, &raw.value_base64, &raw.value_file],
            &raw.value,
        );
        let lists = [
            ("headers", Extent::Named, &raw.headers),
            ("headers_exactly", Extent::All, &raw.headers_exactly),
        ];
        let mut headers = Vec::new();
        for (key, extent, written) in lists {
            if let Some(written) = written {
                headers.push(self.wanted_headers(key, extent, written));
            }
        }
        let wanted = |content: Option<Content>, plain: &Option<Payload>| {
            content.map(|content| wanted(content, plain.as_ref().map(|p| &p.0)))
        };
        Some(ExpectedRecord {
            topic: raw.topic,
            partition: raw.target_partition,
            key: wanted(key?, &raw.key),
            value: wanted(value?, &raw.value),
            headers: headers.into_iter().collect::<Option<_>>()?,
            timestamp: raw.timestamp,
        })
    }

    fn wanted_headers(
        &mut self,
        key: &str,
        extent: Extent,
        written: &RawHeaders,
    ) -> Option<WantedHeaders> {
        let (order, list) = self.headers(key, written)?;
        let of = |(name, at, value): WrittenHeader| {
            let content = compact::content(&value, &at, self.check.document);
            (name, wanted(content, Some(&value)))
        };
        Some(WantedHeaders {
            extent,
            order,
            list: list.into_iter().map(of).collect(),
        })
    }
}

/// A map, list, number or boolean is compared as JSON; anything else byte by byte.
fn wanted(content: Content, plain: Option<&Value>) -> Wanted {
    match (content, plain) {
        (Content::Bytes(json), Some(value)) if !value.is_string() => {
            Wanted::Json(String::from_utf8_lossy(&json).into_owned())
        }
        (content, _) => Wanted::Exactly(content),
    }
}
