//! The rows of the tables of formats.

use super::header::Headers;
use super::marker::MarkerKind;

/// A row of the tables: markers that belong together.
pub(super) struct KnownFormat {
    /// The named formats that the row is a part of, each with the row of its thoughts if that is another one.
    pub formats: &'static [(&'static str, Option<&'static KnownFormat>)],
    /// The texts that have to be known for the row to apply: any of them for thoughts, all of them for calls.
    pub needed: &'static [&'static str],
    /// The text between a thought and the answer, if the template does not show it; `None`: the closing marker alone.
    pub terminator: Option<&'static str>,
    pub markers: &'static [(MarkerKind, &'static str)],
    pub label: Option<&'static str>,
    pub ends_thoughts: bool,
    pub headers: Option<Headers>,
    pub bare_calls: bool,
    /// True if the values of arguments stand right between their tags.
    pub verbatim: bool,
    /// True if no other way of marking calls counts next to it.
    pub alone: bool,
}

/// The defaults of a row.
pub(super) const ROW: KnownFormat = KnownFormat {
    formats: &[],
    needed: &[],
    terminator: None,
    markers: &[],
    label: None,
    ends_thoughts: false,
    headers: None,
    bare_calls: false,
    verbatim: false,
    alone: false,
};
