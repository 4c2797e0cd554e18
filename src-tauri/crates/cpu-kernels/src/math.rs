//! Functions that compilers turn into instructions for several numbers at once: no branches, no calls.

use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// e to the power of `x`, to two units in the last place. Cephes' polynomial over half an octave around zero.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // Adding it leaves the nearest whole number in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.3, 88.7);
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let whole = rounded - ROUND;
    // ln 2 in two parts, of which the first has few bits.
    let rest = x - whole * 0.693_359_4 + whole * 2.121_944_4e-4;
    let mut sum = 1.987_569_1e-4;
    for factor in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
        sum = sum * rest + factor;
    }
    let power = sum * rest * rest + rest + 1.0;
    // The exponent is added in two halves, because 2^128 is none.
    let exponent = (rounded.to_bits() as i32) - (ROUND.to_bits() as i32);
    let half = exponent >> 1;
    let two = |exponent: i32| f32::from_bits(((exponent + 127) << 23) as u32);
    power * two(half) * two(exponent - half)
}

/// `x · sigmoid(x)`.
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// The tanh approximation of GELU.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    const FACTOR: f32 = 0.797_884_6;
    let inner = FACTOR * (x + 0.044_715 * x * x * x);
    // x · (1 + tanh(inner)) / 2 is x times the logistic function of twice the inner number.
    x / (1.0 + exp(-2.0 * inner))
}

/// gpt-oss' gate: `(up + 1) · quick_gelu(gate)` of numbers that are clipped at 7.
#[inline(always)]
pub fn clipped_silu(gate: f32, up: f32) -> f32 {
    (up.clamp(-7.0, 7.0) + 1.0) * quick_gelu(gate.min(7.0))
}

/// `x · sigmoid(1.702 · x)`.
#[inline(always)]
pub fn quick_gelu(x: f32) -> f32 {
    x / (1.0 + exp(-1.702 * x))
}

/// `max(x, 0)`.
#[inline(always)]
pub fn relu(x: f32) -> f32 {
    x.max(0.0)
}

/// GELU by the error function.
#[inline(always)]
pub fn exact_gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * FRAC_1_SQRT_2))
}

/// The error function, to a few units in the last place: XLA's quotient of two polynomials, up to the number from which
/// on it is 1.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    const ONE: f32 = 3.832_507;
    let x = x.clamp(-ONE, ONE);
    let square = x * x;
    let mut above = 2.290_506_6e-4;
    for factor in [3.408_291e-3, 5.095_569_5e-2, 0.185_208_32, FRAC_2_SQRT_PI] {
        above = above * square + factor;
    }
    let mut below = -1.179_160_3e-7;
    for factor in [
        2.354_796_7e-5,
        1.017_962_5e-3,
        1.407_047e-2,
        0.110_985_05,
        0.497_469_25,
        1.0,
    ] {
        below = below * square + factor;
    }
    x * above / below
}

/// The error function by a series whose terms have one sign, for comparisons.
#[cfg(test)]
pub fn erf_by_series(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for step in 1..300 {
        term *= 2.0 * x * x / f64::from(2 * step + 1);
        sum += term;
    }
    sum * (-x * x).exp() * std::f64::consts::FRAC_2_SQRT_PI
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_right_to_two_units() {
        let mut x = -87.0f32;
        while x < 88.5 {
            let right = f64::from(x).exp();
            let off = (f64::from(exp(x)) - right).abs() / right;
            assert!(off < 2.5e-7, "{x}: {off}");
            x += 0.0137;
        }
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(-1e30) < 1.3e-38 && exp(1e30).is_finite());
    }

    #[test]
    fn the_error_function_is_right_to_a_few_units() {
        for step in -6000..=6000 {
            let x = step as f32 / 1000.0;
            let off = (f64::from(erf(x)) - erf_by_series(f64::from(x))).abs();
            assert!(off < 5e-7, "{x}: {off}");
        }
        // The values of tables.
        for (x, right) in [
            (0.5f64, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
        ] {
            assert!((erf_by_series(x) - right).abs() < 1e-12);
        }
        assert_eq!(erf(0.0), 0.0);
    }

    #[test]
    fn gates_are_those_of_the_formulas() {
        for x in [-30.0f32, -3.0, -0.5, 0.0, 0.1, 2.0, 40.0] {
            let wide = f64::from(x);
            let silu_of = wide / (1.0 + (-wide).exp());
            let inner = 0.797_884_560_802_865_4 * (wide + 0.044_715 * wide.powi(3));
            let gelu_of = 0.5 * wide * (1.0 + inner.tanh());
            assert!((f64::from(silu(x)) - silu_of).abs() < 1e-6 * wide.abs().max(1.0), "{x}");
            assert!((f64::from(gelu(x)) - gelu_of).abs() < 1e-6 * wide.abs().max(1.0), "{x}");
        }
    }
}
