//! The least of many numbers in one walk.

use super::Id;

/// A row of the walk: how far it is by its bits, the passage, and its place. Their order is that of the walk's end, so
/// equal distances go by id.
pub(super) type Row = (u32, Id, usize);

/// The `count` least rows of those that are offered.
pub(super) struct Least {
    count: usize,
    /// The largest distance that may still be among the least.
    ceiling: u32,
    rows: Vec<Row>,
}

impl Least {
    /// Keeps `count` rows, at least 1.
    pub(super) fn new(count: usize) -> Self {
        let count = count.max(1);
        Least {
            count,
            ceiling: u32::MAX,
            rows: Vec::with_capacity(2 * count),
        }
    }

    /// Offers a row. `id` is asked for only if the distance is small enough, and refuses the row with `None`.
    #[inline(always)]
    pub(super) fn offer(&mut self, distance: u32, place: usize, id: impl FnOnce() -> Option<Id>) {
        if distance <= self.ceiling {
            if let Some(id) = id() {
                self.push((distance, id, place));
            }
        }
    }

    /// The least rows, in no order.
    pub(super) fn rows(mut self) -> Vec<Row> {
        self.cut();
        self.rows
    }

    // Outside the walk's loop, where it happens to few rows.
    #[inline(never)]
    fn push(&mut self, row: Row) {
        self.rows.push(row);
        if self.rows.len() >= 2 * self.count {
            self.cut();
        }
    }

    /// Drops all but the least, once for every `count` rows, which costs less than keeping them in order.
    fn cut(&mut self) {
        if self.rows.len() > self.count {
            let (_, last, _) = self.rows.select_nth_unstable(self.count - 1);
            self.ceiling = last.0;
            self.rows.truncate(self.count);
        }
    }
}
