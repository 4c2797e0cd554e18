//! Keys of random numbers, computed on the processor: what is drawn next is known without waiting for a device, and a
//! kernel goes on from the same key.

use mlx_rs::Dtype;

use crate::error::Result;
use crate::tensor::Tensor;

/// A key of MLX's random numbers (`mlx.core.random.key`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomKey(pub [u32; 2]);

impl RandomKey {
    /// That of a seed.
    pub fn from_seed(seed: u64) -> Self {
        Self([(seed >> 32) as u32, seed as u32])
    }

    /// Two keys from one: the next state and the one to use (`mlx.core.random.split`).
    #[must_use]
    pub fn split(self) -> (Self, Self) {
        let (first, second) = (self.hash([0, 2]), self.hash([1, 3]));
        (Self([first[0], second[0]]), Self([first[1], second[1]]))
    }

    /// A number from 0 to below 1, as MLX draws a single one.
    pub fn uniform(self) -> f32 {
        (self.hash([0, 0])[0] as f32 / u32::MAX as f32).min(1.0f32.next_down())
    }

    /// `[2]`, as MLX takes it.
    ///
    /// # Errors
    /// If MLX fails.
    pub fn tensor(self) -> Result<Tensor> {
        Tensor::from_i32(&self.0.map(|word| word as i32), &[2]).view(Dtype::Uint32)
    }

    /// Threefry of 2 × 32 bits with 20 rounds (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", 2011).
    fn hash(self, counter: [u32; 2]) -> [u32; 2] {
        const TURNS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
        let [first, second] = self.0;
        let keys = [first, second, first ^ second ^ 0x1bd1_1bda];
        let mut x = counter[0].wrapping_add(keys[0]);
        let mut y = counter[1].wrapping_add(keys[1]);
        for (group, number) in (0..5).zip(1u32..) {
            for turn in TURNS[group % 2] {
                x = x.wrapping_add(y);
                y = y.rotate_left(turn) ^ x;
            }
            x = x.wrapping_add(keys[(group + 1) % 3]);
            y = y.wrapping_add(keys[(group + 2) % 3]).wrapping_add(number);
        }
        [x, y]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::device::connect;
    use crate::ops::random_uniform;

    /// Computed by MLX 0.32.2: `mx.random.split(mx.random.key(seed))`.
    #[test]
    fn keys_are_split_as_mlx_splits_them() {
        let known = [
            (0, [4_146_024_105, 967_050_713], [2_718_843_009, 1_272_950_319]),
            (7, [966_301_609, 989_289_821], [1_948_237_315, 1_058_547_403]),
            (
                (1 << 40) + 5,
                [2_588_430_962, 1_672_726_310],
                [3_246_284_531, 1_850_734_787],
            ),
        ];
        for (seed, state, used) in known {
            assert_eq!(RandomKey::from_seed(seed).split(), (RandomKey(state), RandomKey(used)));
        }
    }

    #[test]
    fn a_single_number_is_the_one_that_mlx_draws() {
        connect().unwrap();
        for seed in 0..20 {
            let key = RandomKey::from_seed(seed);
            let drawn = random_uniform(&key.tensor().unwrap(), &[1]).unwrap().to_f32().unwrap();
            assert_eq!(drawn, [key.uniform()]);
        }
    }
}
