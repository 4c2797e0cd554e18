//! The brackets and quotation marks that are open in a call that is still being written.

/// Whose brackets and quotation marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// JSON from the first character on.
    Json,
    /// JSON after a label that names the tool.
    LabelledJson,
    /// Python's calls.
    Python,
    /// Gemma 4's and FunctionGemma's.
    Gemma,
}

impl Notation {
    /// The quotation marks, longer ones before those they begin with.
    fn marks(self) -> &'static [&'static str] {
        match self {
            Self::Json | Self::LabelledJson => &["\""],
            Self::Python => &["\"\"\"", "'''", "\"", "'"],
            Self::Gemma => &["<|\"|>", "<escape>", "\""],
        }
    }

    fn opens(self, byte: u8, depth: usize) -> bool {
        match byte {
            b'{' => true,
            b'[' => !(depth == 0 && matches!(self, Self::LabelledJson | Self::Gemma)),
            b'(' => self == Self::Python,
            _ => false,
        }
    }

    fn closes(self, byte: u8) -> bool {
        matches!(byte, b'}' | b']') || byte == b')' && self == Self::Python
    }
}

/// A text of brackets and quotation marks, read from the left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nesting {
    notation: Notation,
    /// How the text that is open was opened.
    quote: Option<&'static str>,
    /// The place at which the last text begins.
    quoted_at: Option<usize>,
    escaped: bool,
    depth: usize,
    /// True once something was opened and closed.
    closed: bool,
    /// True if reading stops once the first bracket is closed.
    once: bool,
    /// How much of the text was read.
    at: usize,
}

impl Nesting {
    pub(super) fn new(notation: Notation, at: usize) -> Self {
        Self {
            notation,
            quote: None,
            quoted_at: None,
            escaped: false,
            depth: 0,
            closed: false,
            once: false,
            at,
        }
    }

    /// Reads the value that begins here, and nothing after it.
    pub(super) fn once(notation: Notation, at: usize) -> Self {
        let once = true;
        Self {
            once,
            ..Self::new(notation, at)
        }
    }

    /// Reads on; a quotation mark that is cut off waits for its rest.
    pub(super) fn advance(&mut self, text: &str) {
        self.read(text.as_bytes(), false);
    }

    /// True if text that follows would be inside a string.
    pub(super) fn quoted(mut self, text: &str) -> bool {
        self.read(text.as_bytes(), true);
        self.quote.is_some()
    }

    /// True if everything that was opened is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.closed && self.depth == 0 && self.quote.is_none()
    }

    /// The place from which on nothing is decided: the text that is open, or else all that was not read.
    pub(super) fn settled(&self) -> usize {
        self.quoted_at.filter(|_| self.quote.is_some()).unwrap_or(self.at)
    }

    /// True if all brackets are closed and nothing can hold more than it seems to: JSON escapes the end of a text, and
    /// of the others none holds one.
    pub(super) fn is_sound(&self) -> bool {
        let escapes = matches!(self.notation, Notation::Json | Notation::LabelledJson);
        self.is_closed() && (escapes || self.quoted_at.is_none())
    }

    pub(super) fn notation(&self) -> Notation {
        self.notation
    }

    /// How much of the text was read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn read(&mut self, bytes: &[u8], at_end: bool) {
        while let Some(byte) = bytes.get(self.at) {
            if self.once && self.closed {
                return;
            }
            let rest = &bytes[self.at..];
            match self.quote {
                Some(_) if self.escaped => self.escaped = false,
                Some("\"" | "'" | "\"\"\"" | "'''") if *byte == b'\\' => self.escaped = true,
                Some(mark) if rest.starts_with(mark.as_bytes()) => {
                    self.quote = None;
                    self.at += mark.len();
                    continue;
                }
                Some(mark) if !at_end && mark.as_bytes().starts_with(rest) => return,
                Some(_) => {}
                None if self.depth > 0 => {
                    let marks = self.notation.marks();
                    if !at_end
                        && marks
                            .iter()
                            .any(|mark| rest.len() < mark.len() && mark.as_bytes().starts_with(rest))
                    {
                        return;
                    }
                    if let Some(mark) = marks.iter().find(|mark| rest.starts_with(mark.as_bytes())) {
                        self.quote = Some(mark);
                        self.at += mark.len();
                        self.quoted_at = Some(self.at);
                        continue;
                    }
                    self.bracket(*byte);
                }
                None => self.bracket(*byte),
            }
            self.at += 1;
        }
    }

    fn bracket(&mut self, byte: u8) {
        if self.notation.opens(byte, self.depth) {
            self.depth += 1;
        } else if self.depth > 0 && self.notation.closes(byte) {
            self.depth -= 1;
            self.closed |= self.depth == 0;
        }
    }
}
