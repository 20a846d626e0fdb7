//! Tests of whole chains: words of the grammar by what they do to a record.

mod against_model;
mod casts;
mod chains;
mod codecs;
mod envelopes;
mod masks;
mod model;
mod properties;
mod reformats;
mod renames;
mod timestamps;
mod transforms;
