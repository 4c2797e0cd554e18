//! Calls that were read, and the circumstances under which they are.

use serde_json::{Map, Value};

/// A call that was read: the tool's name and its arguments, a JSON object.
pub(crate) type ParsedCall = (String, Value);

/// The calls found in a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ParsedCalls {
    /// The calls, in order; at least one.
    pub calls: Vec<ParsedCall>,
    /// The place in the text at which each of them ends, in bytes.
    pub ends: Vec<usize>,
    /// The end of the last one with what belongs to it, in bytes.
    pub end: usize,
    /// True if another call begins there that is not whole.
    pub broken: bool,
}

impl ParsedCalls {
    /// A single call, which ends here.
    pub(super) fn one(call: ParsedCall, end: usize) -> Self {
        let mut found = Self::default();
        found.add(call, end);
        found
    }

    /// Adds a call, which ends here.
    pub(super) fn add(&mut self, call: ParsedCall, end: usize) {
        self.calls.push(call);
        self.ends.push(end);
        self.end = end;
    }

    /// The calls, if there are any.
    pub(super) fn some(self) -> Option<Self> {
        (!self.calls.is_empty()).then_some(self)
    }
}

/// Deeper nesting is taken for broken.
pub(super) const DEPTH: usize = 64;

/// The context in which a call is read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallContext {
    /// True if the closing marker was seen. Without it some forms look the same when cut off, and words may follow.
    pub closed: bool,
    /// True if there are no markers, so that the call ends by itself.
    pub unwrapped: bool,
    /// True if the format writes values right between their tags, so that line ends belong to them.
    pub verbatim: bool,
}

/// The verdict on text without a marker, as Llama 3 writes its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BareCall {
    /// It is not.
    No,
    /// More text will tell.
    Maybe,
    /// The name of a tool stands where one has to stand.
    Yes,
}

/// Adds an argument. One that is there already shows that a text was taken for the call's own words.
pub(super) fn insert(arguments: &mut Map<String, Value>, key: &str, value: Value) -> Option<()> {
    arguments.insert(key.to_owned(), value).is_none().then_some(())
}
