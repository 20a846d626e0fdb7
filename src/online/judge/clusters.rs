//! Who answered, and who they are.

use super::Finding;
use crate::config::diagnostic::Code;
use crate::config::pointer;
use crate::config::spec::{Name, Spec};
use crate::online::ask::{Answers, is_right};
use crate::online::facts::{ClusterFacts, Question};
use crate::online::trouble::{Cause, Trouble};
use std::collections::BTreeMap;

pub(super) fn judge(spec: &Spec, answers: &Answers, found: &mut Vec<Finding>) {
    let mut by_id: BTreeMap<&str, Vec<&Name>> = BTreeMap::new();
    for (name, heard) in &answers.clusters {
        match heard {
            Err(trouble) => found.push(unreached(spec, name, trouble)),
            Ok(facts) => {
                expected(spec, name, facts, found);
                unanswered(name, facts, found);
                topic_ids(name, facts, found);
                if let Some(id) = &facts.description.id {
                    by_id.entry(id).or_default().push(name);
                }
            }
        }
    }
    for (id, names) in by_id {
        one_under_two_names(id, &names, found);
    }
    for flow in &answers.flows {
        let id = |name: &Name| {
            let facts = answers.clusters.get(name)?.as_ref().ok()?;
            facts.description.id.as_deref()
        };
        let same = id(&flow.source.name).is_some_and(|s| id(&flow.target.name) == Some(s));
        let looped: Vec<&String> = flow
            .sources
            .iter()
            .filter(|(topic, source)| same && source.targets.contains(topic))
            .map(|(topic, _)| topic)
            .collect();
        if !looped.is_empty() {
            found.push(Finding {
                code: Code::CopiesOntoItself,
                at: at_route(flow.route.name.as_str(), "target"),
                message: format!(
                    "{}: `{}` and `{}` are one cluster, and {} would be copied onto itself",
                    flow.title(),
                    flow.source.name,
                    flow.target.name,
                    super::the_topics(&looped)
                ),
                help: "name another target, or `rename` the topics".to_owned(),
            });
        }
    }
}

fn at_route(route: &str, setting: &str) -> String {
    pointer::child(&pointer::child("/routes", route), setting)
}

fn at_cluster(name: &Name, setting: &str) -> String {
    pointer::child(&pointer::child("/clusters", name.as_str()), setting)
}

/// The place and the advice follow from the cause.
fn unreached(spec: &Spec, name: &Name, trouble: &Trouble) -> Finding {
    let cluster = spec.clusters.get(name);
    let has_tls = cluster.is_some_and(|c| c.tls.is_some());
    let (code, setting, help) = match trouble.cause {
        Cause::Unresolvable => (
            Code::UnknownHost,
            "bootstrap_servers",
            "correct the host name, or the name server of this machine",
        ),
        Cause::Refused => (
            Code::ConnectionRefused,
            "bootstrap_servers",
            "correct host and port, or start the brokers",
        ),
        Cause::Silent => (
            Code::NoAnswer,
            "bootstrap_servers",
            "look at the network between here and the brokers; `--timeout` waits longer",
        ),
        Cause::Tls => (
            Code::TlsFailed,
            "tls",
            "give the authority that signed the brokers' certificate as `tls.ca`; the host name must be in it",
        ),
        Cause::Protocol if has_tls => (
            Code::OtherProtocol,
            "tls",
            "the listener may speak without TLS: ask for its security protocol, or take another port",
        ),
        Cause::Protocol => (
            Code::OtherProtocol,
            "bootstrap_servers",
            "the listener may want `tls` or `sasl`: ask for its security protocol, or take another port",
        ),
        Cause::Authentication => (
            Code::NotAuthenticated,
            "sasl",
            "correct mechanism, user name and password",
        ),
        Cause::Settings => (
            Code::NoClient,
            "tls",
            "correct the settings of the cluster; the files must be readable",
        ),
    };
    let words = match trouble.words.as_slice() {
        [] => String::new(),
        words => format!(": {}", words.join("; ")),
    };
    Finding {
        code,
        at: at_cluster(name, setting),
        message: format!("cluster `{name}`: {}{words}", trouble.cause.as_str()),
        help: help.to_owned(),
    }
}

fn expected(spec: &Spec, name: &Name, facts: &ClusterFacts, found: &mut Vec<Finding>) {
    let cluster = spec.clusters.get(name);
    let expected = cluster.and_then(|c| c.expect_cluster_id.as_deref());
    let Some((expected, is)) = expected.zip(facts.description.id.as_deref()) else {
        return;
    };
    if expected != is {
        found.push(Finding {
            code: Code::OtherCluster,
            at: at_cluster(name, "expect_cluster_id"),
            message: format!("cluster `{name}` has the id {is}, not {expected}"),
            help: "correct `bootstrap_servers`, or the id if the cluster was replaced on purpose"
                .to_owned(),
        });
    }
}

/// Rights on groups are judged where they are needed; here is what the cluster owes us.
fn unanswered(name: &Name, facts: &ClusterFacts, found: &mut Vec<Finding>) {
    for (question, (code, words)) in &facts.unanswered {
        let (code, help) = match (is_right(*code), question) {
            (true, Question::Groups | Question::Positions) => continue,
            (true, _) => (
                Code::NotSeen,
                "grant Describe and DescribeConfigs to the user of this cluster",
            ),
            (false, _) => (
                Code::NoAnswer,
                "see whether all brokers are well; `--timeout` waits longer",
            ),
        };
        found.push(Finding {
            code,
            at: at_cluster(name, "bootstrap_servers"),
            message: format!(
                "cluster `{name}` did not say {}: {words}",
                question.as_str()
            ),
            help: help.to_owned(),
        });
    }
}

fn topic_ids(name: &Name, facts: &ClusterFacts, found: &mut Vec<Finding>) {
    let mut described = facts.described.values().filter_map(|t| t.as_ref().ok());
    if described.any(|topic| topic.id.is_none()) {
        found.push(Finding {
            code: Code::NoTopicIds,
            at: at_cluster(name, "bootstrap_servers"),
            message: format!(
                "cluster `{name}` knows no topic ids: a topic that is deleted and created again cannot be recognised"
            ),
            help: "topic ids come with Kafka 2.8".to_owned(),
        });
    }
}

fn one_under_two_names(id: &str, names: &[&Name], found: &mut Vec<Finding>) {
    let [first, others @ ..] = names else {
        return;
    };
    for other in others {
        found.push(Finding {
            code: Code::SameCluster,
            at: at_cluster(other, "bootstrap_servers"),
            message: format!("`{other}` and `{first}` are one cluster: both have the id {id}"),
            help: "use one name, so that routes that feed themselves are seen".to_owned(),
        });
    }
}
