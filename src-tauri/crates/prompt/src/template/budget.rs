//! The bound on what one rendering may build.

use minijinja::value::Value;
use minijinja::{Error, ErrorKind, State};

/// Bytes one rendering may put together, counted wherever a text grows. A conversation of a million tokens takes a
/// tenth.
const BYTES: usize = 512 << 20;
/// The longest text; more than any context holds.
pub(super) const LONGEST: usize = 16 << 20;
/// The weight of a list item, in bytes.
pub(super) const ITEM: usize = 32;

/// Bytes this rendering has put together.
#[derive(Default)]
struct Built(usize);

/// Counts what is built; an error if it is too much.
pub(super) fn charge(state: &mut State, bytes: usize) -> Result<(), Error> {
    let built = state.get_or_insert_extension_with(Built::default);
    built.0 = built.0.saturating_add(bytes);
    if built.0 > BYTES {
        return too_long(usize::MAX);
    }
    too_long(bytes)
}

/// An error if a text of this many bytes is longer than any model reads.
pub(super) fn too_long(bytes: usize) -> Result<(), Error> {
    if bytes > LONGEST {
        return Err(Error::new(
            ErrorKind::OutOfFuel,
            "the template builds more text than any model reads",
        ));
    }
    Ok(())
}

/// A text that was counted.
pub(super) fn charged(state: &mut State, text: String) -> Result<Value, Error> {
    charge(state, text.len())?;
    Ok(text.into())
}

/// The approximate size of a value, in bytes; the content of list items is not counted.
pub(super) fn size(value: &Value) -> usize {
    value
        .as_str()
        .map_or_else(|| value.len().unwrap_or(0).saturating_mul(ITEM), str::len)
}
