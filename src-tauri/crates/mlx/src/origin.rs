//! The source of a tensor's numbers, which matters while a step is recorded.

use std::cell::{Cell, RefCell};

thread_local! {
    static RECORDING: Cell<bool> = const { Cell::new(false) };
    /// All that launches of the last recording write.
    static LAUNCHED: RefCell<Vec<Launched>> = const { RefCell::new(Vec::new()) };
}

/// The most axes of a tensor that a launch writes.
pub const MAX_AXES: usize = 4;

/// The source of a tensor's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// MLX's memory, where they stay as long as the tensor lives.
    Memory,
    /// A recorded launch.
    Launch(Launched),
    /// An operation of MLX's during a recording, which is not repeated.
    Described,
}

/// A place in what a recorded launch writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launched {
    /// The number of the buffer.
    pub buffer: usize,
    /// Its first element.
    pub offset: usize,
    /// Elements from one place of each axis to the next.
    pub strides: [i64; MAX_AXES],
}

impl Launched {
    /// All of a buffer, as a tensor of this shape.
    pub fn new(buffer: usize, shape: &[i32]) -> Self {
        Self {
            buffer,
            offset: 0,
            strides: row_major(shape),
        }
    }

    /// The same numbers in another shape, if they lie without gaps.
    pub fn reshaped(self, shape: &[i32], to: &[i32]) -> Option<Self> {
        let dense = row_major(shape);
        let without_gaps = (0..shape.len()).all(|axis| shape[axis] == 1 || self.strides[axis] == dense[axis]);
        let fits = to.len() <= MAX_AXES && to.iter().all(|length| *length >= 0);
        (without_gaps && fits).then(|| Self {
            strides: row_major(to),
            ..self
        })
    }

    /// From `start` on along one axis.
    pub fn sliced(self, axis: usize, start: i32) -> Self {
        Self {
            offset: self.offset + start as usize * self.strides[axis] as usize,
            ..self
        }
    }
}

fn row_major(shape: &[i32]) -> [i64; MAX_AXES] {
    let mut strides = [0; MAX_AXES];
    let mut step = 1;
    for (axis, length) in shape.iter().enumerate().rev() {
        strides[axis] = step;
        step *= i64::from(*length);
    }
    strides
}

/// True while this thread records a step.
pub fn is_recording() -> bool {
    RECORDING.get()
}

/// Lets this thread record from now on, or not. Returns what it did before.
pub fn set_recording(recording: bool) -> bool {
    RECORDING.replace(recording)
}

/// Keeps what a launch writes until the next recording begins. Returns its number.
pub fn keep(launched: Launched) -> usize {
    LAUNCHED.with_borrow_mut(|all| {
        all.push(launched);
        all.len() - 1
    })
}

/// The source of this number; none is known of an earlier recording.
pub fn launched(number: usize) -> Origin {
    LAUNCHED.with_borrow(|all| {
        all.get(number)
            .map_or(Origin::Described, |launched| Origin::Launch(*launched))
    })
}

/// Forgets what launches of the last recording write.
pub fn forget() {
    LAUNCHED.take();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_found_in_what_was_launched() {
        let all = Launched::new(3, &[2, 5, 4]);
        assert_eq!(all.strides, [20, 4, 1, 0]);
        let row = all.sliced(1, 2);
        assert_eq!((row.offset, row.strides), (8, all.strides));
        // Rows of two tokens are apart, those of one are not.
        assert_eq!(row.reshaped(&[2, 1, 4], &[8]), None);
        let one = all.sliced(0, 1).sliced(1, 2).reshaped(&[1, 1, 4], &[4]);
        assert_eq!(one.map(|one| (one.offset, one.strides[0])), Some((28, 1)));
        assert_eq!(all.reshaped(&[2, 5, 4], &[1, 1, 1, 1, 40]), None);
    }
}
