//! What comes while the app is still being set up waits until it is: another start may come as early as that, and macOS tells of a link or a
//! file before it says that the app has started. Shown at once, it would open a chat window beside the one that the start opens.

use std::sync::{Mutex, PoisonError};

type Deed<T> = Box<dyn FnOnce(&T) + Send>;

/// What waits, in its order; `None` from when all is set up.
pub struct UntilReady<T>(Mutex<Option<Vec<Deed<T>>>>);

impl<T> Default for UntilReady<T> {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl<T> UntilReady<T> {
    /// Does something with `app`: now if it is set up, else as soon as it is.
    pub fn run(&self, app: &T, deed: impl FnOnce(&T) + Send + 'static) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.as_mut() {
            Some(waiting) => waiting.push(Box::new(deed)),
            None => {
                drop(waiting);
                deed(app);
            }
        }
    }

    /// All is set up: what has waited is done, and nothing waits from now on.
    pub fn begin(&self, app: &T) {
        let waited = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        for deed in waited.into_iter().flatten() {
            deed(app);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_early_is_done_once_in_its_order_when_all_is_set_up() {
        let (ready, done) = (UntilReady::default(), Mutex::new(Vec::new()));
        let does = |number: u32| move |done: &Mutex<Vec<u32>>| done.lock().expect("one at a time").push(number);
        ready.run(&done, does(1));
        ready.run(&done, does(2));
        assert!(done.lock().expect("one at a time").is_empty());
        ready.begin(&done);
        assert_eq!(*done.lock().expect("one at a time"), [1, 2]);
        ready.run(&done, does(3));
        ready.begin(&done);
        assert_eq!(*done.lock().expect("one at a time"), [1, 2, 3]);
    }
}
