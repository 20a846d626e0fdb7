//! The first batch that a broker sees of a producer is refused while those behind it are on their way. The broker does not know
//! the producer, and takes whatever number comes first: what it takes of them may not stand before what it refused.
//!
//! An embedded broker wants the number 0 first and so cannot show it.

use crate::support::cluster::{Admin, pair};
use crate::support::flow::Flow;
use crate::support::reader::compare;
use crate::support::record::Record;
use crate::support::route::{cluster, flow_spec, handlers, route, shapes, workers};
use crate::support::wait::PATIENCE;
use crate::support::workload::{Writer, field};
use mirror::config::secret::Secret;
use mirror::config::spec::{OnError, RouteSpec};
use mirror::flow::FlowExit;
use mirror::observe::Counters;

const PARTITIONS: i32 = 6;
const EACH: u64 = 200;
/// Right behind the first record, so that the batch that is refused has one that is not at fault.
const CULPRIT: u64 = 1;
/// How old a record the target takes, in milliseconds: the others are of 2023, the culprit is of 1970.
const OLDEST: &str = "630720000000";

#[test]
fn a_first_batch_that_is_refused_is_not_overtaken() {
    for shape in shapes(&[workers(1), handlers(2)]) {
        let topic = format!("first-batch-{shape}");
        let pair = pair();
        let (source, target) = (pair.source.bootstrap(), pair.target.bootstrap());
        Admin::new(&source).create(&topic, PARTITIONS, &[]);
        let limit = [("message.timestamp.before.max.ms", OLDEST)];
        Admin::new(&target).create(&topic, PARTITIONS, &limit);
        let mut writer = write(&source, &topic);

        let mut to = cluster("target", &target);
        let two = Secret::new("2");
        to.properties.insert("batch.num.messages".into(), two);
        let spec = RouteSpec {
            on_error: OnError::Skip,
            ..route(&topic, &topic, shape)
        };
        let flow = Flow::start(flow_spec(spec, cluster("source", &source), to));
        flow.wait_settled(writer.expected().total(), PATIENCE);
        let skipped = Counters::get(&flow.counters().skipped_records);
        assert_eq!(skipped, u64::from(PARTITIONS.unsigned_abs()));
        assert_eq!(flow.drain(), FlowExit::Drained);

        let mut expected = writer.finish();
        for partition in 0..PARTITIONS {
            expected.leave_out((topic.clone(), partition), CULPRIT);
        }
        compare(&target, &expected).assert_complete();
    }
}

fn write(source: &str, topic: &str) -> Writer {
    let field = field(topic, PARTITIONS);
    let mut writer = Writer::new(source);
    for sequence in 0..EACH {
        for partition in 0..PARTITIONS {
            writer.write(&field, partition, |record: &mut Record| {
                if sequence == CULPRIT {
                    record.timestamp = 1;
                }
            });
        }
    }
    writer.settle(PATIENCE);
    writer
}
