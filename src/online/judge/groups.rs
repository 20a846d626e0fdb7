//! Who else uses the flow's consumer group.

use super::{Finding, Flow, listed};
use crate::config::diagnostic::Code;

/// The name that our clients give themselves.
const CLIENT_ID: &str = "mirror";

pub(super) fn judge(flow: &Flow<'_>, found: &mut Vec<Finding>) {
    let Some(Ok(group)) = flow.source.groups.get(&flow.needs.group) else {
        return;
    };
    let properties = &flow.needs.source.properties;
    let ours = properties
        .get("client.id")
        .map_or(CLIENT_ID, |id| id.reveal());
    let others: Vec<String> = (group.members.iter())
        .filter(|member| member.client_id != ours)
        .map(|member| {
            format!(
                "{} at {}",
                member.client_id,
                member.host.trim_start_matches('/')
            )
        })
        .collect();
    if !others.is_empty() {
        found.push(flow.say(
            Code::GroupTaken,
            &["source"],
            &format!(
                "members that are not mirror's are in the group {}: {}",
                flow.needs.group,
                listed(&others)
            ),
            "stop them, or give this file another `group:` (its routes then begin anew)",
        ));
    }
}
