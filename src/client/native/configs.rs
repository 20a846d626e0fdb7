//! Settings of topics and brokers. Not the crate's call: it gives a resource that may not be read
//! as one without settings.

use super::ask::{AdminOptions, answer};
use super::describe::{Refusal, c_strings};
use super::{Handle, Queue, error_code, text};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka_sys as sys;
use std::time::Duration;

/// What has settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Configured {
    /// A topic, by its name.
    Topic,
    /// A broker, by its number.
    Broker,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Where the value comes from.
    pub origin: ConfigOrigin,
}

/// Where a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigOrigin {
    /// Set for this topic.
    Topic,
    /// The broker's or Kafka's default.
    Default,
}

/// The answer of [`describe_configs`], by name; an error where somebody's settings may not be read.
/// Settings without a value (secrets) are left out.
pub type ConfigAnswers = Vec<(String, Result<Vec<ConfigEntry>, RDKafkaErrorCode>)>;

/// Asks for the settings of all of `names`, in one call.
///
/// # Errors
/// The code of the whole request, and librdkafka's words.
pub fn describe_configs(
    client: &impl Handle,
    what: Configured,
    names: &[String],
    timeout: Duration,
) -> Result<ConfigAnswers, Refusal> {
    let kind = match what {
        Configured::Topic => sys::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_TOPIC,
        Configured::Broker => sys::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_BROKER,
    };
    let queue = Queue::private(client);
    let options = AdminOptions::new(
        client,
        sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS,
        timeout,
    );
    let names = c_strings(names);
    // SAFETY: names, options and queue outlive the call, which copies what it needs; the resources are
    // ours to free.
    unsafe {
        let mut resources: Vec<_> = names
            .iter()
            .map(|name| sys::rd_kafka_ConfigResource_new(kind, name.as_ptr()))
            .collect();
        sys::rd_kafka_DescribeConfigs(
            client.handle(),
            resources.as_mut_ptr(),
            resources.len(),
            options.pointer(),
            queue.pointer,
        );
        sys::rd_kafka_ConfigResource_destroy_array(resources.as_mut_ptr(), resources.len());
    }
    let event = answer(&queue, timeout)?;
    let mut count = 0;
    // SAFETY: the result and its entries belong to the event.
    unsafe {
        let result = sys::rd_kafka_event_DescribeConfigs_result(event.pointer);
        if result.is_null() {
            return Ok(ConfigAnswers::new());
        }
        let resources = sys::rd_kafka_DescribeConfigs_result_resources(result, &mut count);
        Ok((0..count)
            .map(|i| read_resource(*resources.add(i)))
            .collect())
    }
}

/// # Safety
/// `resource` is live.
unsafe fn read_resource(
    resource: *const sys::rd_kafka_ConfigResource_t,
) -> (String, Result<Vec<ConfigEntry>, RDKafkaErrorCode>) {
    let mut count = 0;
    // SAFETY: as the caller says; entries belong to the resource.
    unsafe {
        let name = text(sys::rd_kafka_ConfigResource_name(resource));
        if let Some(code) = error_code(sys::rd_kafka_ConfigResource_error(resource)) {
            return (name, Err(code));
        }
        let entries = sys::rd_kafka_ConfigResource_configs(resource, &mut count);
        let entries = (0..count).filter_map(|i| read_entry(*entries.add(i)));
        (name, Ok(entries.collect()))
    }
}

/// # Safety
/// `entry` is live.
unsafe fn read_entry(entry: *const sys::rd_kafka_ConfigEntry_t) -> Option<ConfigEntry> {
    use sys::rd_kafka_ConfigSource_t::RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG as OF_TOPIC;
    // SAFETY: as the caller says; texts belong to the entry.
    unsafe {
        let value = sys::rd_kafka_ConfigEntry_value(entry);
        (!value.is_null()).then(|| ConfigEntry {
            name: text(sys::rd_kafka_ConfigEntry_name(entry)),
            value: text(value),
            origin: match sys::rd_kafka_ConfigEntry_source(entry) {
                OF_TOPIC => ConfigOrigin::Topic,
                _ => ConfigOrigin::Default,
            },
        })
    }
}
