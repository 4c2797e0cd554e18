//! Markers of models.

/// The effect of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::channels) enum MarkerKind {
    /// Opens a thought.
    Open,
    /// Closes a thought.
    Close,
    /// Opens the answer, if a model wraps it; says nothing by itself.
    AnswerOpen,
    /// Closes a wrapped answer.
    AnswerClose,
    /// Opens a tool call.
    CallOpen,
    /// Closes a tool call.
    CallClose,
    /// The first words of a call whose opening marker is missing; they belong to the call.
    CallHead,
    /// The same in the middle of a line.
    CallWord,
    /// Stands around several calls; says nothing by itself.
    Section,
    /// Stands around words, of the answer or of a thought; says nothing by itself.
    Frame,
    /// Opens the header of a message.
    HeaderOpen,
    /// Stands in a header before the name of a channel.
    Channel,
    /// Closes a header; the message follows.
    HeaderClose,
    /// Closes a message.
    MessageClose,
}

/// One marker of a model.
#[derive(Debug, Clone, Copy)]
pub(in crate::channels) struct Marker {
    pub kind: MarkerKind,
    pub text: &'static str,
    /// The token that is this marker; without one it is looked for in the text.
    pub id: Option<u32>,
}
