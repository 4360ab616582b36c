//! A queue between threads that is bounded in bytes.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// Holds at most so many bytes, or one entry that is larger.
#[derive(Debug)]
pub(super) struct ByteQueue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    limit: u64,
}

#[derive(Debug)]
struct State<T> {
    entries: VecDeque<(u64, T)>,
    held: u64,
    writers: usize,
    is_closed: bool,
}

impl<T> ByteQueue<T> {
    pub(super) fn new(limit: u64, writers: usize) -> Self {
        let state = State {
            entries: VecDeque::new(),
            held: 0,
            writers,
            is_closed: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            limit,
        }
    }

    /// Waits for room; false where nobody reads any more.
    pub(super) fn push(&self, entry: T, nbytes: u64) -> bool {
        let mut state = self.state();
        while !state.is_closed && state.held > 0 && state.held.saturating_add(nbytes) > self.limit {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_closed {
            return false;
        }
        state.held += nbytes;
        state.entries.push_back((nbytes, entry));
        self.changed.notify_all();
        true
    }

    /// Waits for an entry; `None` once all writers have left.
    pub(super) fn pop(&self) -> Option<T> {
        let mut state = self.state();
        loop {
            if let Some((nbytes, entry)) = state.entries.pop_front() {
                state.held -= nbytes;
                self.changed.notify_all();
                return Some(entry);
            }
            if state.writers == 0 {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// One writer fewer.
    pub(super) fn leave(&self) {
        self.state().writers -= 1;
        self.changed.notify_all();
    }

    /// Nobody reads any more.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread, time::Duration};

    use super::*;

    #[test]
    fn a_writer_waits_for_room_and_ends_when_the_reader_leaves() {
        let queue = Arc::new(ByteQueue::new(10, 1));
        let writer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                (0..1000)
                    .take_while(|number| queue.push(*number, 6))
                    .count()
            })
        };
        assert_eq!((queue.pop(), queue.pop()), (Some(0), Some(1)));
        thread::sleep(Duration::from_millis(20));
        queue.close();
        assert!((2..=3).contains(&writer.join().unwrap()));
    }

    #[test]
    fn the_reader_ends_when_all_writers_have_left() {
        let queue = ByteQueue::new(1, 1);
        assert!(queue.push("large", 100));
        queue.leave();
        assert_eq!((queue.pop(), queue.pop()), (Some("large"), None));
    }
}
