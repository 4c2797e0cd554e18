//! Tasks that arrive during setup wait until it is finished: another start may come that early, and macOS reports a
//! link or a file before the app has started. Run at once, they would open a second chat window.

use std::sync::{Mutex, PoisonError};

type Task<T> = Box<dyn FnOnce(&T) + Send>;

/// The waiting tasks in their order; `None` once setup is finished.
pub struct DeferredTasks<T>(Mutex<Option<Vec<Task<T>>>>);

impl<T> Default for DeferredTasks<T> {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl<T> DeferredTasks<T> {
    /// Runs a task with `app`: now if setup is finished, else as soon as it is.
    pub fn run(&self, app: &T, task: impl FnOnce(&T) + Send + 'static) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.as_mut() {
            Some(waiting) => waiting.push(Box::new(task)),
            None => {
                drop(waiting);
                task(app);
            }
        }
    }

    /// Setup is finished: runs the waiting tasks, and later ones at once.
    pub fn begin(&self, app: &T) {
        let waited = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        for task in waited.into_iter().flatten() {
            task(app);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_early_is_done_once_in_its_order_when_all_is_set_up() {
        let (ready, done) = (DeferredTasks::default(), Mutex::new(Vec::new()));
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
