//! Models that nobody asks for any more leave memory: after a while, as `keep_alive` of a request or the server's own says, or by request.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{json, Value};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::fields::Fields;
use crate::refusal::{Kind, Refusal, Retry};
use crate::state::State;

/// How often models are looked at, at least and at most; between them a tenth of the shortest time.
const SHORTEST_LOOK: Duration = Duration::from_millis(200);
const LONGEST_LOOK: Duration = Duration::from_secs(30);

/// A model that is not in memory this long after it was asked does not come there for that; no model takes so long to load.
const FORGOTTEN: Duration = Duration::from_secs(30 * 60);

/// How long a model stays loaded after its last answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeepAlive {
    /// Until another model needs its room.
    #[default]
    UntilReplaced,
    /// So long.
    For(Duration),
}

impl std::str::FromStr for KeepAlive {
    type Err = String;

    /// As Ollama writes it: `10m`, `1h30m`, `500ms`, seconds without a unit, `0` for at once, anything negative for ever.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || "this is neither a time such as 10m, nor seconds, nor -1".to_owned();
        if let Ok(seconds) = text.parse::<f64>() {
            return Self::of_seconds(seconds).ok_or_else(wrong);
        }
        let (negative, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut seconds = 0.0;
        while !rest.is_empty() {
            let digits = rest
                .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
                .ok_or_else(wrong)?;
            let (number, after) = rest.split_at(digits);
            let letters = after.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(after.len());
            let (unit, after) = after.split_at(letters);
            let unit = match unit {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return Err(wrong()),
            };
            seconds += number.parse::<f64>().map_err(|_| wrong())? * unit;
            rest = after;
        }
        match text.is_empty() || text == "-" {
            true => Err(wrong()),
            false => Self::of_seconds(if negative { -1.0 } else { seconds }).ok_or_else(wrong),
        }
    }
}

impl KeepAlive {
    fn of_seconds(seconds: f64) -> Option<Self> {
        if seconds < 0.0 {
            return Some(Self::UntilReplaced);
        }
        // More than a duration holds is for ever too.
        (!seconds.is_nan()).then(|| Duration::try_from_secs_f64(seconds).map_or(Self::UntilReplaced, Self::For))
    }
}

/// What a request says of how long its model stays.
///
/// # Errors
/// If it is no time.
pub(crate) fn keep_alive(fields: &Fields) -> Result<Option<KeepAlive>, Refusal> {
    let schema = || json!({"type": ["string", "number", "null"]});
    let Some(value) = fields.get_as("keep_alive", schema) else {
        return Ok(None);
    };
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(seconds) => seconds.to_string(),
        _ => String::new(),
    };
    text.parse().map(Some).or_else(|reason| fields.refuse("keep_alive", reason))
}

/// The models that this server asked for, and how long each stays.
#[derive(Debug)]
pub(crate) struct Unloading {
    default: KeepAlive,
    served: Mutex<HashMap<String, Served>>,
    asked: Notify,
}

/// How long a model stays, and when it was asked last.
#[derive(Debug, Clone, Copy)]
struct Served {
    keep: KeepAlive,
    at: Instant,
}

impl Unloading {
    pub(crate) fn new(default: KeepAlive) -> Self {
        Self {
            default,
            served: Mutex::default(),
            asked: Notify::new(),
        }
    }

    /// Notes that a model was asked; called after the engine was, so that it cannot be unloaded in between.
    pub(crate) fn asked(&self, reference: &str, keep_alive: Option<KeepAlive>) {
        let keep = keep_alive.unwrap_or(self.default);
        let served = Served { keep, at: Instant::now() };
        let before = self.served().insert(reference.to_owned(), served);
        if before.is_none_or(|before| before.keep != keep) {
            self.asked.notify_one();
        }
    }

    fn served(&self) -> MutexGuard<'_, HashMap<String, Served>> {
        // Each step leaves it right, so a poisoned one is too.
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The models that do not stay for ever.
    fn leaving(&self) -> Vec<(String, Duration)> {
        let served = self.served();
        let leaving = served.iter().filter_map(|(reference, served)| match served.keep {
            KeepAlive::For(time) => Some((reference.clone(), time)),
            KeepAlive::UntilReplaced => None,
        });
        leaving.collect()
    }

    /// Forgets a model that is not in memory, unless somebody asked for it since.
    fn forget(&self, reference: &str, since: Instant) {
        let mut served = self.served();
        if served.get(reference).is_some_and(|served| served.at < since) {
            served.remove(reference);
        }
    }
}

/// Unloads models whose time is over, until the server stops. How long a model was idle, the engine says, which knows everybody who uses it.
pub(crate) async fn unload_idle_models(state: Arc<State>) {
    let mut looked = Instant::now();
    loop {
        let leaving = state.unloading.leaving();
        let shortest = leaving.iter().map(|(_, time)| *time).min();
        let look = async {
            match shortest {
                // From the last look on, however many were asked since.
                Some(time) => tokio::time::sleep_until(looked + (time / 10).clamp(SHORTEST_LOOK, LONGEST_LOOK)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = state.stop.cancelled() => return,
            () = state.unloading.asked.notified() => continue,
            () = look => {}
        }
        looked = Instant::now();
        let loaded = state.loaded().await;
        let answers = state.metrics.answers.load(Ordering::Relaxed);
        for (reference, time) in leaving {
            let Some(engine) = state.engine.local() else { return };
            if loaded.contains(&reference) {
                if let Ok(true) = engine.unload_idle(&reference, time).await {
                    tracing::info!(model = reference, "unloaded, because nobody asked for it");
                    // An answer that the engine did not know of yet may be about to load it again.
                    if state.metrics.answers.load(Ordering::Relaxed) == 0 {
                        state.unloading.forget(&reference, looked);
                    }
                }
            } else if answers == 0 {
                if let Some(long_ago) = looked.checked_sub(FORGOTTEN) {
                    state.unloading.forget(&reference, long_ago);
                }
            }
        }
    }
}

/// Unloads a model now.
///
/// # Errors
/// If it answers.
pub(crate) async fn unload_now(state: &State, reference: &str) -> Result<(), Refusal> {
    let Some(engine) = state.engine.local() else { return Ok(()) };
    let unloaded = engine.unload_idle(reference, Duration::ZERO).await?;
    if unloaded || !state.loaded().await.iter().any(|loaded| loaded == reference) {
        return Ok(());
    }
    let mut refusal = Refusal::new(
        Kind::Unavailable,
        "the model answers, or another one is being loaded; ask again when that has ended",
    );
    refusal.retry = Retry::After(1);
    Err(refusal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_for_ollama() {
        let read = |text: &str| text.parse::<KeepAlive>();
        for (text, seconds) in [
            ("10m", 600.0),
            ("1h30m", 5400.0),
            ("500ms", 0.5),
            ("0", 0.0),
            ("3600", 3600.0),
            ("1.5s", 1.5),
            ("0s", 0.0),
        ] {
            assert_eq!(read(text), Ok(KeepAlive::For(Duration::from_secs_f64(seconds))), "{text}");
        }
        for text in ["-1", "-1s", "-5m", "1e300"] {
            assert_eq!(read(text), Ok(KeepAlive::UntilReplaced), "{text}");
        }
        for text in ["", "soon", "m", "10 m", "10d", "5m3", "NaN", "1.2.3s", "-"] {
            let wrong = read(text);
            assert!(wrong.is_err(), "{text}: {wrong:?}");
        }
    }

    #[test]
    fn a_request_says_it_as_text_or_seconds() {
        let read = |value: Value| keep_alive(&Fields::of(&json!({"keep_alive": value}), "").unwrap());
        assert_eq!(read(Value::Null), Ok(None));
        assert_eq!(read(json!("10m")), Ok(Some(KeepAlive::For(Duration::from_secs(600)))));
        assert_eq!(read(json!(30)), Ok(Some(KeepAlive::For(Duration::from_secs(30)))));
        assert_eq!(read(json!(-1)), Ok(Some(KeepAlive::UntilReplaced)));
        for wrong in [json!("soon"), json!(true), json!([])] {
            assert_eq!(read(wrong).unwrap_err().param.as_deref(), Some("keep_alive"));
        }
    }
}
