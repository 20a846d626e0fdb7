//! Tests of whole chains: words of the grammar by what they do to a record.

mod chains;
mod codecs;
mod masks;
mod properties;
mod reformats;
mod renames;
mod timestamps;
