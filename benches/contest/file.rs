//! The file that `mirror` is given for a run.

use crate::contender::{Plane, Shape};
use crate::job::Job;
use crate::workload::Chain;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A copy of prepared topics, with the settings that the other contenders have too.
pub struct Task<'a> {
    pub job: &'a Job,
    /// That no other run has: positions are kept under it.
    pub name: String,
    pub routes: u32,
    pub chain: Chain,
    pub plane: Plane,
    pub shape: Shape,
}

/// A file, and its name.
pub struct File {
    pub name: String,
    pub config: Value,
}

impl Task<'_> {
    /// Writes the file.
    pub fn write(&self, folder: &Path) -> PathBuf {
        let tuned = json!({
            "compression.type": self.job.codec,
            "linger.ms": self.job.linger_ms,
        });
        let mut config = base(self.job, &tuned);
        for number in 0..self.routes {
            let topics = self.job.topics.iter();
            let mine: Vec<&String> = topics
                .skip(number as usize)
                .step_by(self.routes as usize)
                .collect();
            let name = format!("{}-{number}", self.name);
            config["routes"][name] = route(&mine, self.plane, self.shape, self.chain);
        }
        let name = self.name.clone();
        File { name, config }.write(folder)
    }
}

/// One route with an empty chain and what `mirror` takes by default.
pub fn with_defaults(job: &Job, name: &str, plane: Plane, shape: Shape) -> File {
    let mut config = base(job, &json!({}));
    let topics: Vec<&String> = job.topics.iter().collect();
    config["routes"][name] = route(&topics, plane, shape, Chain::Empty);
    File {
        name: name.to_owned(),
        config,
    }
}

impl File {
    /// Writes it.
    pub fn write(&self, folder: &Path) -> PathBuf {
        let file = folder.join(format!("{}.yaml", self.name));
        let text = serde_json::to_string(&self.config).expect("JSON is YAML");
        std::fs::write(&file, text).expect("the file is written");
        file
    }
}

fn base(job: &Job, producer: &Value) -> Value {
    json!({
        "version": 1,
        "clusters": {
            "source": { "bootstrap_servers": [job.source] },
            "target": { "bootstrap_servers": [job.target], "properties": producer },
        },
        "admin": { "listen": "off" },
        "reload": { "watch": false },
        "routes": {},
    })
}

fn route(topics: &[&String], plane: Plane, shape: Shape, chain: Chain) -> Value {
    let mut handlers = chain.handlers();
    // What an empty chain leaves alone may pass.
    if plane == Plane::Native && handlers.is_empty() {
        handlers.push(json!({ "reformat": { "timestamp": { "shift": "1ms" } } }));
    }
    let data_plane = match plane {
        Plane::Librdkafka => "librdkafka",
        Plane::Native | Plane::NativePassing => "native",
    };
    let mut route = json!({
        "source": "source",
        "target": "target",
        "data_plane": data_plane,
        "topics": { "include": topics },
        "handlers": handlers,
    });
    if shape == Shape::HandlerThreads {
        route["handler_threads"] = json!(2);
    }
    route
}
