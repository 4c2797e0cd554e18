//! A queue from one writer to one reader that never blocks the writer and never grows with a slow reader: adjacent
//! events that can be merged are merged, nothing is dropped. The reader gets exactly one last event, also when the
//! writer is dropped.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// An event that may wait in a [`mailbox`].
pub trait Coalesce: Sized {
    /// Merges `next` into this event, which was queued just before, or returns it.
    fn coalesce(&mut self, next: Self) -> Option<Self>;
    /// True if no event follows this one.
    fn is_last(&self) -> bool;
    /// The last event of a writer that was dropped without sending one.
    fn abandoned() -> Self;
}

#[derive(Debug)]
struct Queue<T> {
    events: VecDeque<T>,
    ended: bool,
    reader_gone: bool,
}

#[derive(Debug)]
struct Shared<T> {
    queue: Mutex<Queue<T>>,
    ready: Notify,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        // No code that can panic runs under this lock, so a poisoned queue is intact.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sending half.
#[derive(Debug)]
pub struct Sender<T: Coalesce>(Arc<Shared<T>>);

/// The receiving half.
#[derive(Debug)]
pub struct Receiver<T: Coalesce> {
    shared: Arc<Shared<T>>,
    finished: bool,
}

/// A new queue.
pub fn mailbox<T: Coalesce>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        queue: Mutex::new(Queue {
            events: VecDeque::new(),
            ended: false,
            reader_gone: false,
        }),
        ready: Notify::new(),
    });
    (
        Sender(shared.clone()),
        Receiver {
            shared,
            finished: false,
        },
    )
}

impl<T: Coalesce> Sender<T> {
    /// Queues an event. Events after the last one are ignored, so the reader sees exactly one.
    pub fn send(&self, event: T) {
        let mut queue = self.0.lock();
        if queue.ended || queue.reader_gone {
            return;
        }
        queue.ended = event.is_last();
        let event = match queue.events.back_mut() {
            Some(back) => back.coalesce(event),
            None => Some(event),
        };
        queue.events.extend(event);
        drop(queue);
        self.0.ready.notify_one();
    }

    /// True if the reader is gone.
    pub fn is_closed(&self) -> bool {
        self.0.lock().reader_gone
    }
}

impl<T: Coalesce> Drop for Sender<T> {
    fn drop(&mut self) {
        self.send(T::abandoned());
    }
}

impl<T: Coalesce> Receiver<T> {
    /// The next event; `None` after the last one.
    pub async fn recv(&mut self) -> Option<T> {
        loop {
            if self.finished {
                return None;
            }
            if let Some(event) = self.try_recv() {
                return Some(event);
            }
            // A permit is stored if the writer came in between, so no wake-up is lost.
            let shared = self.shared.clone();
            shared.ready.notified().await;
        }
    }

    /// The next event if one is waiting already.
    pub fn try_recv(&mut self) -> Option<T> {
        let event = self.shared.lock().events.pop_front()?;
        self.finished = event.is_last();
        Some(event)
    }
}

impl<T: Coalesce> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.reader_gone = true;
        queue.events.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Done, EngineEvent, ErrorCode, FinishReason, Timing, Usage};

    fn delta(text: &str, token: u32) -> EngineEvent {
        EngineEvent::Delta {
            content: Content::text(text),
            tokens: vec![token],
            thinking_tokens: Some(0),
        }
    }

    fn done() -> EngineEvent {
        EngineEvent::Done(Done {
            ended_by: crate::EndedBy::Cancelled,
            finish_reason: FinishReason::Stop,
            usage: Some(Usage::default()),
            timing: Timing::default(),
            tokens: vec![],
        })
    }

    #[tokio::test]
    async fn a_slow_reader_gets_merged_deltas_and_loses_nothing() {
        let (sender, mut receiver) = mailbox();
        for i in 0..1000 {
            sender.send(delta("x", i));
        }
        sender.send(done());
        let first = receiver.recv().await;
        assert_eq!(
            first,
            Some(EngineEvent::Delta {
                content: Content::text("x".repeat(1000)),
                tokens: (0..1000).collect(),
                thinking_tokens: Some(0),
            })
        );
        assert_eq!(receiver.recv().await, Some(done()));
        assert_eq!(receiver.recv().await, None);
    }

    #[tokio::test]
    async fn a_writer_that_vanishes_is_reported_once() {
        let (sender, mut receiver) = mailbox();
        sender.send(delta("x", 1));
        drop(sender);
        assert_eq!(receiver.recv().await, Some(delta("x", 1)));
        assert!(
            matches!(receiver.recv().await, Some(EngineEvent::Failed(error)) if error.code == ErrorCode::EngineGone)
        );
        assert_eq!(receiver.recv().await, None);
    }

    #[tokio::test]
    async fn only_the_first_end_counts() {
        let (sender, mut receiver) = mailbox();
        sender.send(done());
        sender.send(delta("late", 1));
        drop(sender);
        assert_eq!(receiver.recv().await, Some(done()));
        assert_eq!(receiver.recv().await, None);
    }

    #[tokio::test]
    async fn a_waiting_reader_wakes_up() {
        let (sender, mut receiver) = mailbox();
        let reader = tokio::spawn(async move { receiver.recv().await });
        tokio::task::yield_now().await;
        sender.send(delta("x", 1));
        assert_eq!(reader.await.unwrap(), Some(delta("x", 1)));
    }
}
