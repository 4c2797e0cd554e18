//! Ending a model's thought for it, by forced tokens: when the user asks for the answer, or when the thought has used
//! up its budget.

use prompt::{ChannelParser, EndOfThinking};
use protocol::{Notice, NoticeCode};

/// How many further thoughts are ended after the first one that was. A model that begins yet another one goes on
/// unseen, because otherwise it would never answer.
const MAX_REPEATED_ENDS: u32 = 3;

/// The tokens that end a thought.
pub struct ForcedEnd {
    /// The tokens that are forced.
    pub ids: Vec<u32>,
    /// The notice for the user, if it is the answer's first.
    pub notice: Option<Notice>,
}

/// When the thoughts of one answer are ended, and whether they have been.
#[derive(Default)]
pub struct ThinkingBudget {
    terminator: Option<EndOfThinking>,
    budget: Option<u32>,
    ended: u32,
    /// The rest of a terminator in whose middle a continued answer was cut off.
    unfinished: Vec<u32>,
}

impl ThinkingBudget {
    /// ThinkingBudget of a model that are ended by `terminator`, and after `budget` tokens.
    pub fn new(terminator: Option<EndOfThinking>, budget: Option<u32>) -> Self {
        Self {
            terminator,
            budget,
            ..Self::default()
        }
    }

    /// Ends the current thought, if there is one and it has to end; `asked`: the user wants the answer.
    pub fn end(&mut self, parser: &mut ChannelParser, asked: bool) -> Option<ForcedEnd> {
        if !self.unfinished.is_empty() {
            let ids = std::mem::take(&mut self.unfinished);
            return Some(ForcedEnd { ids, notice: None });
        }
        let terminator = self.terminator.as_ref().filter(|_| parser.is_thinking())?;
        let spent = self.spent(parser);
        let again = self.ended > 0;
        if if again {
            self.ended > MAX_REPEATED_ENDS
        } else {
            !asked && !spent
        } {
            return None;
        }
        let notice = (!again).then(|| self.notice(parser));
        let ids = parser.end_of_thinking_here(terminator).to_vec();
        parser.end_thinking();
        self.ended += 1;
        Some(ForcedEnd { ids, notice })
    }

    /// Looks whether the thought of a continued answer was ended for the model at this place, where the ids `following`
    /// follow.
    pub fn find_ending(&mut self, parser: &mut ChannelParser, following: &[u32]) {
        let Some(terminator) = self.terminator.as_ref().filter(|_| self.ended == 0) else {
            return;
        };
        let ids = parser.end_of_thinking_here(terminator);
        let same = ids.iter().zip(following).take_while(|(a, b)| a == b).count();
        if same == ids.len() || same == following.len() {
            self.unfinished = ids[same..].to_vec();
            parser.end_thinking();
            self.ended = 1;
        }
    }

    /// The thought of a continued answer was ended for the model, wherever that was: no other one shows.
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
        let Some(budget) = self.budget.filter(|_| self.spent(parser)) else {
            return Notice::new(NoticeCode::ThinkingEnded, "You ended the thought here.");
        };
        let message = match budget {
            0 => "The thought was ended before it began: its budget is 0 tokens.".into(),
            1 => "The thought was ended after 1 token, its budget.".into(),
            budget => format!("The thought was ended after {budget} tokens, its budget."),
        };
        Notice::new(NoticeCode::ThinkingEnded, message).with("budget", budget)
    }
}
