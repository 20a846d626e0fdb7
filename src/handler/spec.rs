//! The steps of a chain as written in the file.

/// One step as written.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct StepSpec {}
