//! The limits of hostile configs: no shape beyond them is computed with or allocated for.

use std::ops::RangeInclusive;

use crate::error::{unusable, Error};

/// More layers than any model has; a config that claims more is broken.
const MOST_LAYERS: u32 = 4096;

/// More often than any model goes through its layers.
pub(crate) const MOST_LOOPS: u32 = 64;

/// Wider than any layer or vocabulary, and far inside of what the engine counts with.
const WIDEST: u64 = 1 << 24;

/// Wider than any head. The square of it has to fit into memory: on the CPU a rotation is a matrix.
pub(crate) const WIDEST_HEAD: u32 = 2048;

/// More tokens than any short convolution sees.
const LONGEST_KERNEL: u32 = 64;

/// More numbers than the state of a recurrent layer has in any model.
const LARGEST_STATE: u64 = 1 << 26;

/// More experts than any layer has.
pub(crate) const MOST_EXPERTS: u32 = 1 << 16;

/// Refuses a number outside of a range.
pub(crate) fn check_range(field: &'static str, number: u32, range: RangeInclusive<u32>) -> Result<u32, Error> {
    if range.contains(&number) {
        return Ok(number);
    }
    unusable(
        field,
        format!("{number} is not from {} to {}", range.start(), range.end()),
    )
}

/// Refuses 0.
pub(crate) fn check_nonzero(field: &'static str, number: u32) -> Result<(), Error> {
    if number > 0 {
        return Ok(());
    }
    unusable(field, "it is 0")
}

/// Refuses what is not a finite number above 0.
pub(crate) fn check_positive(field: &'static str, number: f32) -> Result<(), Error> {
    if number.is_finite() && number > 0.0 {
        return Ok(());
    }
    unusable(field, format!("{number} is not above 0"))
}

/// Refuses heads of keys that the heads of queries cannot share.
pub(crate) fn check_key_heads(field: &'static str, heads: u32, key_heads: u32) -> Result<(), Error> {
    if key_heads > 0 && heads.is_multiple_of(key_heads) {
        return Ok(());
    }
    unusable(field, format!("{heads} heads cannot share {key_heads}"))
}

/// Refuses heads that cannot share the width of a stream.
pub(crate) fn check_heads(field: &'static str, width: u32, heads: u32) -> Result<(), Error> {
    if heads > 0 && width.is_multiple_of(heads) {
        return Ok(());
    }
    unusable(field, format!("{width} numbers cannot be shared by {heads} heads"))
}

/// Refuses heads that rows and columns of patches cannot share to turn in halves.
pub(crate) fn check_quarters(field: &'static str, head_dim: u32) -> Result<(), Error> {
    if head_dim.is_multiple_of(4) {
        return Ok(());
    }
    unusable(field, format!("heads of {head_dim} numbers have no four quarters"))
}

/// Refuses a rotation of more numbers than a head has.
pub(crate) fn check_rotation(field: &'static str, turning: u32, head_dim: u32) -> Result<(), Error> {
    if turning <= head_dim {
        return Ok(());
    }
    unusable(field, format!("{turning} of {head_dim} numbers of a head would turn"))
}

/// Refuses a list that does not name every layer.
pub(crate) fn check_names(field: &'static str, names: usize, layers: usize) -> Result<(), Error> {
    if names == layers {
        return Ok(());
    }
    unusable(field, format!("it names {names} of {layers} layers"))
}

/// Refuses a convolution that no model has.
pub(crate) fn check_kernel(field: &'static str, kernel: u32) -> Result<(), Error> {
    check_range(field, kernel, 2..=LONGEST_KERNEL).map(|_| ())
}

/// Refuses a state of a recurrent layer that no model has.
pub(crate) fn check_state(field: &'static str, numbers: u64) -> Result<(), Error> {
    if numbers <= LARGEST_STATE {
        return Ok(());
    }
    unusable(field, format!("it makes a state of {numbers} numbers in every layer"))
}

/// Refuses a width of heads that no model has, or that has no two halves.
pub(crate) fn check_head(field: &'static str, width: u32) -> Result<(), Error> {
    if width > 0 && width.is_multiple_of(2) && width <= WIDEST_HEAD {
        return Ok(());
    }
    unusable(field, format!("{width} is not an even number from 2 to {WIDEST_HEAD}"))
}

/// Refuses a width that no model has.
pub(crate) fn check_width(field: &'static str, width: u64) -> Result<(), Error> {
    if width <= WIDEST {
        return Ok(());
    }
    unusable(
        field,
        format!("it makes something {width} wide, and nothing is wider than {WIDEST}"),
    )
}

/// Refuses a number of layers that no model has.
pub(crate) fn check_layers(count: u32) -> Result<u32, Error> {
    if count <= MOST_LAYERS {
        return Ok(count);
    }
    unusable("num_hidden_layers", format!("{count} is more than {MOST_LAYERS}"))
}
