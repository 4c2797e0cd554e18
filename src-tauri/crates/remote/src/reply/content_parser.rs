//! Parses thoughts and calls in the text of a server that does not separate them.

use prompt::{Event, Splitter};
use protocol::{Request, Thinking};
use serde_json::Value;

use super::text_format::{detect_format, CLOSE, OPEN, PLAIN};

/// The events of a piece of an answer's text.
#[derive(Default)]
pub(crate) struct Parsed {
    /// True if the full text was parsed again, so that these events replace all earlier ones.
    pub(crate) replaces: bool,
    pub(crate) events: Vec<Event>,
}

impl From<Vec<Event>> for Parsed {
    fn from(events: Vec<Event>) -> Self {
        Self {
            replaces: false,
            events,
        }
    }
}

/// Parses the text of one answer. Which model's markers it may hold is decided by its beginning.
pub(crate) struct ContentParser {
    tools: Vec<Value>,
    stop: Vec<String>,
    splitter: Splitter,
    /// The beginning of the text, until it tells the format; `None` from then on.
    beginning: Option<String>,
    /// All text that came, until a thought has been seen: what a lone closing marker makes a thought of.
    unmarked: Option<String>,
    /// True while the text counts as a thought that the prompt opened, until its end is seen.
    opened: bool,
}

impl ContentParser {
    /// `opened` says that this model's prompt opens a thought, so that its first words are one.
    pub(crate) fn new(request: &Request, opened: bool) -> Self {
        let opened = opened && request.thinking != Some(Thinking::Off);
        Self {
            tools: request.tools.clone(),
            stop: request.stop.clone(),
            splitter: splitter(PLAIN, &request.tools, &request.stop, opened),
            beginning: (!opened).then(String::new),
            unmarked: Some(String::new()),
            opened,
        }
    }

    /// Takes what follows.
    pub(crate) fn push(&mut self, text: &str) -> Parsed {
        let Some(beginning) = &mut self.beginning else {
            return self.parse(text);
        };
        beginning.push_str(text);
        match detect_format(beginning) {
            Some(format) => self.decide(format),
            None => Parsed::default(),
        }
    }

    /// Notes that the server separates thoughts, so that no text belongs to one that the prompt opened.
    pub(crate) fn thoughts_are_apart(&mut self) {
        if self.opened {
            self.splitter = self.new_splitter(PLAIN, false);
        }
        self.opened = false;
        self.unmarked = None;
    }

    /// The text held back. If the model ended by itself (`ended`), a thought that was never closed was its answer.
    pub(crate) fn finish(&mut self, ended: bool) -> [Parsed; 3] {
        let held_back = self.decide(PLAIN);
        let answer = if ended && self.opened && self.unmarked.is_some() {
            let text = self.unmarked.take().unwrap_or_default();
            self.reread(&text, false)
        } else {
            Parsed::default()
        };
        [held_back, answer, self.splitter.finish().into()]
    }

    /// The stop text that ended the answer.
    pub(crate) fn stop_text(&self) -> Option<&str> {
        self.splitter.stop_text()
    }

    /// True once a stop string has appeared, after which all text is ignored.
    pub(crate) fn stopped_by_text(&self) -> bool {
        self.splitter.stopped_by_text()
    }

    /// True if the prompt turned out to open a thought, false if not; `None` while that is undecided.
    pub(crate) fn opens_thought(&self) -> Option<bool> {
        self.unmarked.is_none().then_some(self.opened)
    }

    /// Reads what was held back in this format.
    fn decide(&mut self, format: &str) -> Parsed {
        let Some(beginning) = self.beginning.take() else {
            return Parsed::default();
        };
        if format != PLAIN {
            self.unmarked = None;
            self.splitter = self.new_splitter(format, false);
        }
        self.parse(&beginning)
    }

    fn parse(&mut self, text: &str) -> Parsed {
        if let Some(unmarked) = &mut self.unmarked {
            unmarked.push_str(text);
            let marked = unmarked.trim_start().starts_with(OPEN);
            // A tag in the middle of a line is rather spoken of than meant.
            let closed = unmarked.starts_with(CLOSE) || unmarked.contains("\n</think>");
            let opened = match (marked, closed) {
                (true, _) => Some(false),
                // Closed without having been opened: the prompt opened it.
                (false, true) => Some(true),
                (false, false) => None,
            };
            if let Some(opened) = opened {
                let text = self.unmarked.take().unwrap_or_default();
                if opened != self.opened {
                    return self.reread(&text, opened);
                }
            }
        }
        self.splitter.push(text).into()
    }

    fn reread(&mut self, text: &str, opened: bool) -> Parsed {
        self.opened = opened;
        self.splitter = self.new_splitter(PLAIN, opened);
        Parsed {
            replaces: true,
            events: self.splitter.push(text),
        }
    }

    fn new_splitter(&self, format: &str, opened: bool) -> Splitter {
        splitter(format, &self.tools, &self.stop, opened)
    }
}

fn splitter(format: &str, tools: &[Value], stop: &[String], opened: bool) -> Splitter {
    Splitter::named(format, opened, true)
        .expect("the table of formats has it")
        .with_tools(tools)
        .with_stop_texts(stop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prompt::Piece;
    use protocol::{Message, ModelSource, Role};

    fn parser(opened: bool) -> ContentParser {
        let model = ModelSource::Remote {
            endpoint: "lab".into(),
            name: "m".into(),
        };
        ContentParser::new(
            &Request::new(model, vec![Message::text(Role::User, "question")]),
            opened,
        )
    }

    /// Thought and text as a reader has them after these.
    fn read(parsed: impl IntoIterator<Item = Parsed>) -> (String, String) {
        let (mut thought, mut text) = (String::new(), String::new());
        for parsed in parsed {
            if parsed.replaces {
                (thought, text) = (String::new(), String::new());
            }
            for event in parsed.events {
                match event.piece {
                    Piece::Thinking(more) => thought.push_str(&more),
                    Piece::Text(more) => text.push_str(&more),
                    other => panic!("{other:?}"),
                }
            }
        }
        (thought, text)
    }

    /// The same text in one piece, in pieces of one character and in pieces of five.
    fn check(said: &str, opened: bool, thought: &str, text: &str, opens: Option<bool>) {
        let characters: Vec<char> = said.chars().collect();
        for size in [1, 5, characters.len()] {
            let mut parser = parser(opened);
            let mut parsed: Vec<Parsed> = characters
                .chunks(size)
                .map(|piece| parser.push(&piece.iter().collect::<String>()))
                .collect();
            parsed.extend(parser.finish(true));
            let (heard_thought, heard_text) = read(parsed);
            assert_eq!(
                (heard_thought.trim(), heard_text.trim()),
                (thought, text),
                "{said:?} in pieces of {size}"
            );
            let told = parser.opens_thought();
            assert_eq!(told, opens, "{said:?} in pieces of {size}");
        }
    }

    #[test]
    fn tags_in_the_text_are_a_thought_however_they_are_cut() {
        check(
            "<think>\nhm, hm\n</think>\n\nHello",
            false,
            "hm, hm",
            "Hello",
            Some(false),
        );
        check("Hello", false, "", "Hello", None);
        check(
            "<|channel>thought\nhm, hm\n<channel|>Hello",
            false,
            "hm, hm",
            "Hello",
            Some(false),
        );
        check("<", false, "", "<", None);
        check("hm, hm\n</think>\n\nHello", false, "hm, hm", "Hello", Some(true));
        check(
            "The tag </think> ends a thought",
            false,
            "",
            "The tag </think> ends a thought",
            None,
        );
    }

    #[test]
    fn a_thought_that_is_known_to_be_opened_is_one_from_its_first_word() {
        check("hm, hm\n</think>\n\nHello", true, "hm, hm", "Hello", Some(true));
        check("Hello", true, "", "Hello", Some(false));
        check("<think>\nhm\n</think>\n\nHello", true, "hm", "Hello", Some(false));
        assert_eq!(read([parser(true).push("hm")]), ("hm".into(), String::new()));
    }

    #[test]
    fn text_is_the_answer_when_the_server_begins_to_set_thoughts_apart() {
        let mut parser = parser(true);
        parser.thoughts_are_apart();
        let mut parsed = vec![parser.push("Hello")];
        parsed.extend(parser.finish(true));
        assert_eq!(read(parsed), (String::new(), "Hello".into()));
        assert_eq!(parser.opens_thought(), Some(false));
    }
}
