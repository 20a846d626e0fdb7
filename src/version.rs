//! What this program is built from.

/// The version of the client library.
pub fn librdkafka() -> String {
    rdkafka::util::get_rdkafka_version().1
}

/// The features that this program was built with.
pub fn features() -> Vec<&'static str> {
    let all = [
        ("system", cfg!(feature = "system")),
        ("static", cfg!(feature = "static")),
        ("sandbox", cfg!(feature = "sandbox")),
    ];
    let on = all.into_iter().filter(|(_, on)| *on);
    on.map(|(feature, _)| feature).collect()
}
