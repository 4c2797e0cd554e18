//! The objects of a config.json that a parser reads.

use crate::config::Fields;

/// A `config.json`: the whole, and the part about text, which is the whole if there is no wrapper.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub top: Fields<'a>,
    pub text: Fields<'a>,
}
