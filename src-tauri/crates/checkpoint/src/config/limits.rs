//! The limits of hostile configs: no shape beyond them is computed with or allocated for.

use crate::error::Error;

/// More layers than any model has; a config that claims more is broken.
const MOST_LAYERS: u32 = 4096;

/// Wider than any layer or vocabulary, and far inside of what the engine counts with.
const WIDEST: u64 = 1 << 24;

/// Wider than any head. The square of it has to fit into memory: on the CPU a rotation is a matrix.
pub(crate) const WIDEST_HEAD: u32 = 2048;

/// More tokens than any short convolution sees.
const LONGEST_KERNEL: u32 = 64;

/// More experts than any layer has.
pub(crate) const MOST_EXPERTS: u32 = 1 << 16;

/// Refuses a convolution that no model has.
pub(crate) fn check_kernel(field: &'static str, kernel: u32) -> Result<(), Error> {
    if (2..=LONGEST_KERNEL).contains(&kernel) {
        return Ok(());
    }
    Err(Error::InvalidField {
        field,
        reason: format!("{kernel} is not from 2 to {LONGEST_KERNEL}"),
    })
}

/// Refuses a width of heads that no model has, or that has no two halves.
pub(crate) fn check_head(field: &'static str, width: u32) -> Result<(), Error> {
    if width > 0 && width.is_multiple_of(2) && width <= WIDEST_HEAD {
        return Ok(());
    }
    Err(Error::InvalidField {
        field,
        reason: format!("{width} is not an even number from 2 to {WIDEST_HEAD}"),
    })
}

/// Refuses a width that no model has.
pub(crate) fn check_width(field: &'static str, width: u64) -> Result<(), Error> {
    if width <= WIDEST {
        return Ok(());
    }
    Err(Error::InvalidField {
        field,
        reason: format!("it makes something {width} wide, and nothing is wider than {WIDEST}"),
    })
}

/// Refuses a number of layers that no model has.
pub(crate) fn check_layers(count: u32) -> Result<u32, Error> {
    if count <= MOST_LAYERS {
        return Ok(count);
    }
    Err(Error::InvalidField {
        field: "num_hidden_layers",
        reason: format!("{count} is more than {MOST_LAYERS}"),
    })
}
