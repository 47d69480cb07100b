//! Metrics in the format of Prometheus.

use std::time::Duration;

use metrics::{Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::catalog::Change;

/// Upper bounds of the latency histogram, in seconds.
const LATENCIES: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

const SECONDS: &str = "prsl_http_request_seconds";

/// The metrics of one service. They are no global state, so that several services can run in one process.
pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
}

static METADATA: Metadata<'static> = Metadata::new("prsl_server", Level::INFO, None);

impl Metrics {
    pub(crate) fn new() -> Self {
        let builder = PrometheusBuilder::new();
        let name = Matcher::Full(SECONDS.to_owned());
        let builder = builder.set_buckets_for_metric(name, &LATENCIES).expect("there are buckets");
        let recorder = builder.build_recorder();
        let describe = |name: &'static str, text: &'static str| {
            recorder.describe_counter(name.into(), None, text.into());
        };
        describe("prsl_http_requests_total", "Requests by route and status.");
        describe("prsl_rows_total", "Rows by model, engine of the marginals and status.");
        describe(
            "prsl_posted_models_total",
            "Models in requests that were compiled, or kept from an earlier request.",
        );
        describe("prsl_model_loads_total", "Model files that were loaded, failed or were removed.");
        recorder.describe_histogram(SECONDS.into(), None, "Time from request to answer.".into());
        recorder.describe_gauge("prsl_requests_in_work".into(), None, "Requests that run or wait.".into());
        recorder.describe_gauge(
            "process_resident_memory_bytes".into(),
            None,
            "Memory of the process that is in use.".into(),
        );
        let handle = recorder.handle();
        Self { recorder, handle }
    }

    fn count(&self, name: &'static str, labels: Vec<Label>, by: u64) {
        self.recorder.register_counter(&Key::from_parts(name, labels), &METADATA).increment(by);
    }

    /// Counts an answer.
    pub(crate) fn count_request(&self, route: &str, status: u16, time: Duration) {
        let route = Label::new("route", route.to_owned());
        let labels = vec![route.clone(), Label::new("status", status.to_string())];
        self.count("prsl_http_requests_total", labels, 1);
        let key = Key::from_parts(SECONDS, vec![route]);
        self.recorder.register_histogram(&key, &METADATA).record(time.as_secs_f64());
    }

    /// Counts rows of a model with the same engine and status.
    pub(crate) fn count_rows(&self, model: &str, engine: &'static str, status: &'static str, n: u64) {
        let labels = vec![
            Label::new("model", model.to_owned()),
            Label::new("engine", engine),
            Label::new("status", status),
        ];
        self.count("prsl_rows_total", labels, n);
    }

    /// Counts a model in a request.
    pub(crate) fn count_posted(&self, is_kept: bool) {
        let result = if is_kept { "kept" } else { "compiled" };
        self.count("prsl_posted_models_total", vec![Label::new("result", result)], 1);
    }

    /// Counts a change of a model file.
    pub(crate) fn count_reload(&self, change: &Change) {
        let (model, result) = match change {
            Change::Loaded(model) => (model, "loaded"),
            Change::Failed(model, _) => (model, "failed"),
            Change::Removed(model) => (model, "removed"),
        };
        let labels = vec![Label::new("model", model.clone()), Label::new("result", result)];
        self.count("prsl_model_loads_total", labels, 1);
    }

    /// All metrics as text.
    pub(crate) fn render(&self, in_work: usize) -> String {
        let gauge = |name: &'static str, value: f64| {
            self.recorder.register_gauge(&Key::from_static_name(name), &METADATA).set(value);
        };
        gauge("prsl_requests_in_work", in_work as f64);
        if let Some(bytes) = resident_memory() {
            gauge("process_resident_memory_bytes", bytes as f64);
        }
        self.handle.render()
    }

    /// Moves recorded latencies into their buckets, so that memory does not grow between two visits.
    pub(crate) fn upkeep(&self) {
        self.handle.run_upkeep();
    }
}

/// The memory of the process that is in use, where the system tells it.
fn resident_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024)
}
