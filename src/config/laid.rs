//! What is written, laid over what holds without it, read into a type without a copy of both.

use crate::config::defaults;
use serde::de::value::MapDeserializer;
use serde::de::{Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value};

/// A value over another one, as [`defaults::lay_over`] joins them.
#[derive(Clone, Copy, Debug)]
pub struct Laid<'v> {
    below: Option<&'v Value>,
    above: &'v Value,
}

impl<'v> Laid<'v> {
    /// `above` over nothing.
    pub fn alone(above: &'v Value) -> Self {
        Self { below: None, above }
    }

    /// `above` over `below`.
    pub fn over(below: &'v Value, above: &'v Value) -> Self {
        Self {
            below: Some(below),
            above,
        }
    }

    /// The member `name`, whichever of the two has it.
    pub fn get(self, name: &str) -> Option<&'v Value> {
        let below = || self.below?.get(name);
        self.above.get(name).or_else(below)
    }

    /// The members of both, if there are two maps.
    fn members(self) -> Option<impl Iterator<Item = (&'v str, Self)>> {
        let (below, above) = (self.below?.as_object()?, self.above.as_object()?);
        let only_below = below.iter().filter(|(name, _)| !above.contains_key(*name));
        let only_below = only_below.map(|(name, value)| (name.as_str(), Self::alone(value)));
        let written = above.iter().map(|(name, value)| {
            let below = below.get(name).filter(|_| !defaults::is_whole(name));
            let above = value;
            (name.as_str(), Self { below, above })
        });
        Some(only_below.chain(written))
    }
}

impl<'de> Deserializer<'de> for Laid<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.members() {
            Some(members) => visitor.visit_map(MapDeserializer::new(members)),
            None => self.above.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.above {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.above.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Error> for Laid<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::defaults::lay_over;
    use serde::Deserialize;
    use serde_json::json;

    #[test]
    fn reads_as_what_is_laid_over_would() {
        let below = json!({"a": {"x": 1, "y": [1]}, "partitions": {"policy": "match"}, "n": 1});
        for above in [
            json!({"a": {"y": [2]}, "partitions": {"fixed": 1}, "b": 2}),
            json!({"a": 3, "n": {"m": null}}),
            json!({"a": null}),
            json!("a text"),
        ] {
            let read = Value::deserialize(Laid::over(&below, &above)).expect("a value");
            assert_eq!(read, lay_over(below.clone(), &above));
        }
    }
}
