//! Counts of this server, for the window and for Prometheus.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use api::ServerFigures;

use crate::figures::tokens::Tokens;

/// The window of the token rate.
const RATE_SECONDS: u64 = 10;

/// Upper bounds of the histogram buckets, in seconds.
const BUCKETS: [f64; 10] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0];

/// The metrics that have one value.
#[rustfmt::skip]
const VALUES: [(&str, &str, &str); 5] = [
    ("ponder_cancelled_total", "counter", "Answers whose client was gone."),
    ("ponder_requests_in_flight", "gauge", "Requests that are being answered."),
    ("ponder_models_loaded", "gauge", "Models in memory."),
    ("ponder_connections", "gauge", "Open connections."),
    ("ponder_tokens_per_second", "gauge", "Tokens written per second, over ten seconds."),
];

/// The counts.
#[derive(Debug)]
pub(crate) struct Metrics {
    started: Instant,
    pub(crate) in_flight: AtomicUsize,
    pub(crate) connections: AtomicUsize,
    /// Running and waiting answers.
    pub(crate) answers: AtomicUsize,
    /// Answers that were cancelled because the client disconnected.
    pub(crate) cancelled: AtomicU64,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// By route and status.
    requests: BTreeMap<(&'static str, u16), u64>,
    prompt: u64,
    cached: u64,
    completion: u64,
    reasoning: u64,
    first_token: Histogram,
    whole_answer: Histogram,
    /// Tokens of the last seconds: the second since the start, and its count.
    recent: Vec<(u64, u32)>,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum: f64,
}

impl Histogram {
    fn add(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        (self.count, self.sum) = (self.count + 1, self.sum + seconds);
        for (bucket, end) in self.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(seconds <= end);
        }
    }

    fn text(&self, name: &str, help: &str) -> String {
        let mut text = about(name, "histogram", help);
        for (bucket, end) in self.buckets.iter().zip(BUCKETS) {
            text += &format!("{name}_bucket{{le=\"{end}\"}} {bucket}\n");
        }
        let (count, sum) = (self.count, self.sum);
        text + &format!("{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}\n")
    }
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            in_flight: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            answers: AtomicUsize::new(0),
            cancelled: AtomicU64::new(0),
            counts: Mutex::default(),
        }
    }

    /// Records the status of a request.
    pub(crate) fn answered(&self, route: &'static str, status: u16) {
        *self.counts().requests.entry((route, status)).or_default() += 1;
    }

    /// Records tokens that were just generated.
    pub(crate) fn tokens_came(&self, tokens: u32) {
        if tokens == 0 {
            return;
        }
        let second = self.started.elapsed().as_secs();
        let mut counts = self.counts();
        counts.recent.retain(|(at, _)| at + RATE_SECONDS > second);
        match counts.recent.last_mut() {
            Some((at, count)) if *at == second => *count += tokens,
            _ => counts.recent.push((second, tokens)),
        }
    }

    /// Records the time to the first token.
    pub(crate) fn first_token(&self, time: Duration) {
        self.counts().first_token.add(time);
    }

    /// Records the tokens and the duration of an answer.
    pub(crate) fn finished(&self, tokens: Tokens, time: Duration) {
        let mut counts = self.counts();
        counts.prompt += u64::from(tokens.prompt);
        counts.cached += u64::from(tokens.cached);
        counts.completion += u64::from(tokens.completion);
        counts.reasoning += u64::from(tokens.reasoning);
        counts.whole_answer.add(time);
    }

    /// Records the prompt tokens of a request without an answer, such as embeddings.
    pub(crate) fn tokens_read(&self, tokens: Tokens) {
        self.counts().prompt += u64::from(tokens.prompt);
    }

    /// The mean duration of a request.
    pub(crate) fn mean_answer(&self) -> Duration {
        let counts = self.counts();
        Duration::from_secs_f64(counts.whole_answer.sum / counts.whole_answer.count.max(1) as f64)
    }

    /// The current figures.
    pub(crate) fn figures(&self) -> ServerFigures {
        let second = self.started.elapsed().as_secs();
        let counts = self.counts();
        let recent = counts.recent.iter().filter(|(at, _)| at + RATE_SECONDS > second);
        let tokens: u32 = recent.map(|(_, count)| count).sum();
        ServerFigures {
            in_flight: self.in_flight.load(Ordering::Relaxed),
            connections: self.connections.load(Ordering::Relaxed),
            tokens_per_second: f64::from(tokens) / RATE_SECONDS.min(second + 1) as f64,
            requests: counts.requests.values().sum(),
        }
    }

    /// All counts in Prometheus' text form.
    pub(crate) fn text(&self, loaded: usize) -> String {
        let figures = self.figures();
        let counts = self.counts();
        let mut text = about("ponder_requests_total", "counter", "Requests by route and status.");
        for ((route, status), count) in &counts.requests {
            text += &format!("ponder_requests_total{{route=\"{route}\",status=\"{status}\"}} {count}\n");
        }
        text += &about("ponder_tokens_total", "counter", "Tokens of finished answers by kind.");
        for (kind, count) in [
            ("prompt", counts.prompt),
            ("cached", counts.cached),
            ("completion", counts.completion),
            ("reasoning", counts.reasoning),
        ] {
            text += &format!("ponder_tokens_total{{kind=\"{kind}\"}} {count}\n");
        }
        let values = [
            self.cancelled.load(Ordering::Relaxed) as f64,
            figures.in_flight as f64,
            loaded as f64,
            figures.connections as f64,
            figures.tokens_per_second,
        ];
        for ((name, kind, help), value) in VALUES.into_iter().zip(values) {
            text += &format!("{}{name} {value}\n", about(name, kind, help));
        }
        let first_token = "Time from a request to its first token.";
        text += &counts.first_token.text("ponder_first_token_seconds", first_token);
        let whole_answer = "Time from a request to the end of its answer.";
        text + &counts.whole_answer.text("ponder_answer_seconds", whole_answer)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        // Counts are right after each step, so a poisoned one is too.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lines that describe a metric.
fn about(name: &str, kind: &str, help: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} {kind}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_written_for_prometheus() {
        let metrics = Metrics::new();
        metrics.answered("/v1/messages", 200);
        metrics.answered("/v1/messages", 200);
        metrics.answered("/v1/messages", 400);
        metrics.first_token(Duration::from_millis(200));
        metrics.tokens_came(30);
        let tokens = Tokens {
            prompt: 10,
            cached: 4,
            completion: 30,
            reasoning: 3,
        };
        metrics.finished(tokens, Duration::from_secs(2));
        let text = metrics.text(1);
        for line in [
            "ponder_requests_total{route=\"/v1/messages\",status=\"200\"} 2",
            "ponder_requests_total{route=\"/v1/messages\",status=\"400\"} 1",
            "ponder_tokens_total{kind=\"cached\"} 4",
            "ponder_first_token_seconds_bucket{le=\"0.1\"} 0",
            "ponder_first_token_seconds_bucket{le=\"0.25\"} 1",
            "ponder_first_token_seconds_bucket{le=\"+Inf\"} 1",
            "ponder_answer_seconds_sum 2",
            "ponder_tokens_per_second 30",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
        }
        let figures = metrics.figures();
        assert_eq!((figures.requests, figures.tokens_per_second), (3, 30.0));
    }
}
