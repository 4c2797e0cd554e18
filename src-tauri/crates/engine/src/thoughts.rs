//! Ending a model's thought for it: when somebody asks for the answer, or when the thought has taken its budget.

use prompt::{ChannelParser, Closing};
use protocol::Notice;

/// How often a thought that is begun anew behind one that was ended is ended, too. A model that insists goes on unseen, because
/// otherwise it would never answer.
const AGAIN: u32 = 3;

/// What ends a thought.
pub struct Ending {
    /// The ids, said for the model.
    pub ids: Vec<u32>,
    /// What the user is told, where it is the first.
    pub notice: Option<Notice>,
}

/// Who may end the thoughts of one answer, and whether they have been ended.
#[derive(Default)]
pub struct Thoughts<'a> {
    closing: Option<&'a Closing>,
    budget: Option<u32>,
    ended: u32,
    /// What is missing of a closing that a begun answer was cut off in.
    rest: Vec<u32>,
}

impl<'a> Thoughts<'a> {
    /// Thoughts of a model that are ended by `closing`, and after `budget` tokens.
    pub fn new(closing: Option<&'a Closing>, budget: Option<u32>) -> Self {
        Self {
            closing,
            budget,
            ..Self::default()
        }
    }

    /// Ends the thought that runs, if there is one and it has to end; `asked`: somebody wants the answer.
    pub fn end(&mut self, parser: &mut ChannelParser, asked: bool) -> Option<Ending> {
        if !self.rest.is_empty() {
            let ids = std::mem::take(&mut self.rest);
            return Some(Ending { ids, notice: None });
        }
        let closing = self.closing.filter(|_| parser.is_thinking())?;
        let spent = self.spent(parser);
        let again = self.ended > 0;
        if if again { self.ended > AGAIN } else { !asked && !spent } {
            return None;
        }
        let notice = (!again).then(|| self.notice(parser));
        let ids = parser.closing_here(closing).to_vec();
        parser.end_thinking();
        self.ended += 1;
        Some(Ending { ids, notice })
    }

    /// Looks whether a begun answer's thought, which was ended for the model, was ended at this place, before the ids `behind`.
    pub fn find_ending(&mut self, parser: &mut ChannelParser, behind: &[u32]) {
        let Some(closing) = self.closing.filter(|_| self.ended == 0) else {
            return;
        };
        let ids = parser.closing_here(closing);
        let same = ids.iter().zip(behind).take_while(|(a, b)| a == b).count();
        if same == ids.len() || same == behind.len() {
            self.rest = ids[same..].to_vec();
            parser.end_thinking();
            self.ended = 1;
        }
    }

    /// A begun answer's thought was ended for the model, wherever that was: no other one shows.
    pub fn was_ended(&mut self, parser: &mut ChannelParser) -> Option<Notice> {
        let notice = self.notice(parser);
        if self.ended == 0 && !parser.is_thinking() {
            parser.end_thinking();
        }
        self.ended = self.ended.max(1);
        Some(notice)
    }

    fn spent(&self, parser: &ChannelParser) -> bool {
        self.budget.is_some_and(|budget| parser.thinking_tokens() >= budget)
    }

    fn notice(&self, parser: &ChannelParser) -> Notice {
        let message = match self.budget.filter(|_| self.spent(parser)) {
            Some(0) => "The thought was ended before it began: its budget is 0 tokens.".into(),
            Some(1) => "The thought was ended after 1 token, its budget.".into(),
            Some(budget) => format!("The thought was ended after {budget} tokens, its budget."),
            None => "You ended the thought here.".into(),
        };
        Notice {
            code: "thinking_ended".into(),
            message,
        }
    }
}
