//! Two stacks of layers that the stream goes through in turn (HRM Text).

use crate::config::limits::check_range;
use crate::error::Error;

/// The most steps through layers.
const MOST_STEPS: u32 = 4096;

/// How often the stream goes through the first half of the layers, the low stack, and through the second, the high one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CyclesConfig {
    /// Times through the low stack before one through the high stack (`L_cycles`).
    pub low: u32,
    /// Times through the high stack (`H_cycles`).
    pub high: u32,
}

impl CyclesConfig {
    /// The layer of each step, of so many layers in both stacks.
    pub fn order(&self, layers: usize) -> Vec<usize> {
        let half = layers / 2;
        let cycle = || (0..self.low).flat_map(move |_| 0..half).chain(half..layers);
        (0..self.high).flat_map(|_| cycle()).collect()
    }

    pub(crate) fn check(&self, layers: usize) -> Result<(), Error> {
        check_range("L_cycles", self.low, 1..=64)?;
        check_range("H_cycles", self.high, 1..=64)?;
        let steps = (self.low + 1) * self.high * (layers as u32 / 2);
        check_range("H_cycles", steps, 1..=MOST_STEPS).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::CyclesConfig;

    #[test]
    fn the_low_stack_comes_several_times_before_the_high_one() {
        let cycles = CyclesConfig { low: 2, high: 2 };
        assert_eq!(cycles.order(4), [0, 1, 0, 1, 2, 3, 0, 1, 0, 1, 2, 3]);
        assert!(CyclesConfig { low: 64, high: 64 }.check(4).is_err());
    }
}
