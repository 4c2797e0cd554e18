//! The time that templates may take, and what ends them sooner.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for everything that is rendered to describe a model, which nobody may have chosen yet.
const LOOK: Duration = Duration::from_secs(2);
/// Time for the renderings of one request. A conversation of a million tokens takes a tenth.
const REQUEST: Duration = Duration::from_secs(20);

/// Tells that nobody waits any more.
type Cancelled = Arc<dyn Fn() -> bool + Send + Sync>;

/// The time that the templates of strangers may take, and what ends them sooner.
#[derive(Clone)]
pub struct RenderLimits {
    time: Duration,
    cancelled: Option<Cancelled>,
}

impl fmt::Debug for RenderLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenderLimits")
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}

impl RenderLimits {
    /// For a model that is looked at: in a list, before it is chosen or fetched.
    pub fn look() -> Self {
        Self {
            time: LOOK,
            cancelled: None,
        }
    }

    /// For a conversation with a model that a person chose.
    pub fn request() -> Self {
        Self {
            time: REQUEST,
            cancelled: None,
        }
    }

    /// The same with another time.
    #[must_use]
    pub fn lasting(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// The same, ended as soon as this says that nobody waits.
    #[must_use]
    pub fn cancelled_by(self, cancelled: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self {
            cancelled: Some(Arc::new(cancelled)),
            ..self
        }
    }

    /// Does this work. Everything that it renders on this thread shares the time, which begins now. Without this, a
    /// prompt has the time of a request, and what is found out about a template that of a look.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let scope = Scope {
            deadline: Instant::now() + self.time,
            cancelled: self.cancelled.clone(),
        };
        let _restored = Restored(SCOPE.replace(Some(scope)));
        work()
    }

    /// The same, unless limits are set already: whoever set them knows better what is being done.
    pub(crate) fn unless_limited<T>(&self, work: impl FnOnce() -> T) -> T {
        match SCOPE.with_borrow(Option::is_some) {
            true => work(),
            false => self.within(work),
        }
    }
}

/// The limits of what this thread does.
#[derive(Clone)]
pub(super) struct Scope {
    pub(super) deadline: Instant,
    cancelled: Option<Cancelled>,
}

impl Scope {
    /// The current one; without one, a rendering has the time of a request.
    pub(super) fn current() -> Self {
        SCOPE.with_borrow(Clone::clone).unwrap_or_else(|| Self {
            deadline: Instant::now() + REQUEST,
            cancelled: None,
        })
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.as_ref().is_some_and(|cancelled| cancelled())
    }
}

thread_local! {
    static SCOPE: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

/// Puts the scope around back, after a panic too.
struct Restored(Option<Scope>);

impl Drop for Restored {
    fn drop(&mut self) {
        SCOPE.replace(self.0.take());
    }
}
