//! Whether anybody is in a consumer group.

use super::ask::{AdminOptions, answer};
use super::{Handle, Queue, error_code};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka_sys as sys;
use std::ffi::{CString, c_char};
use std::time::Duration;

/// Whether anybody is in a consumer group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// Nobody is: it is empty, or there is no such group.
    Empty,
    /// Somebody is, or is on the way in or out.
    Members,
}

/// Asks the group's coordinator, without joining.
///
/// # Errors
/// The code, and librdkafka's words.
pub fn membership(
    client: &impl Handle,
    group: &str,
    timeout: Duration,
) -> Result<Membership, (RDKafkaErrorCode, String)> {
    use sys::rd_kafka_consumer_group_state_t as state;
    let refused = |code: RDKafkaErrorCode| (code, code.to_string());
    let name = CString::new(group).map_err(|_| refused(RDKafkaErrorCode::InvalidGroupId))?;
    let mut names: [*const c_char; 1] = [name.as_ptr()];
    let queue = Queue::private(client);
    let operation = sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS;
    let options = AdminOptions::new(client, operation, timeout);
    // SAFETY: name, options and queue outlive the call, which copies what it needs.
    unsafe {
        sys::rd_kafka_DescribeConsumerGroups(
            client.handle(),
            names.as_mut_ptr(),
            names.len(),
            options.pointer(),
            queue.pointer,
        );
    }
    let event = answer(&queue, timeout)?;
    let mut count = 0;
    // SAFETY: the result and its one entry belong to the event.
    unsafe {
        let result = sys::rd_kafka_event_DescribeConsumerGroups_result(event.pointer);
        let groups = match result.is_null() {
            true => return Err(refused(RDKafkaErrorCode::Unknown)),
            false => sys::rd_kafka_DescribeConsumerGroups_result_groups(result, &mut count),
        };
        if count == 0 {
            return Err(refused(RDKafkaErrorCode::Unknown));
        }
        let group = *groups;
        let error = sys::rd_kafka_ConsumerGroupDescription_error(group);
        if !error.is_null()
            && let Some(code) = error_code(sys::rd_kafka_error_code(error))
        {
            return match code {
                RDKafkaErrorCode::GroupIdNotFound => Ok(Membership::Empty),
                code => Err(refused(code)),
            };
        }
        Ok(match sys::rd_kafka_ConsumerGroupDescription_state(group) {
            state::RD_KAFKA_CONSUMER_GROUP_STATE_EMPTY
            | state::RD_KAFKA_CONSUMER_GROUP_STATE_DEAD => Membership::Empty,
            _ => Membership::Members,
        })
    }
}
