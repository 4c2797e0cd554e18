//! `POST /v1/completions`: the answer.

use protocol::TokenLogprobs;
use serde_json::{json, Map, Value};

use crate::answer::logprobs;
use crate::answer::reply::{Frame, Reply, ResponseIds};
use crate::answer::reply_event::{End, ReplyEvent};
use crate::figures::tokens::Tokens;
use crate::openai::chat_reply::{finish_reason, ChatOptions};
use crate::openai::usage;

/// An answer as a text completion.
pub(crate) struct CompletionsReply {
    stamp: ResponseIds,
    model: String,
    choices: Vec<Choice>,
    /// To each prompt.
    answers: usize,
    options: ChatOptions,
}

#[derive(Default)]
struct Choice {
    /// The echoed prompt.
    echo: String,
    text: String,
    likely: Likely,
    end: Option<End>,
}

/// Log probabilities in the older form: lists of equal length.
#[derive(Debug, Default, Clone)]
struct Likely {
    tokens: Vec<String>,
    token_logprobs: Vec<f32>,
    top_logprobs: Vec<Value>,
    text_offset: Vec<usize>,
}

impl Likely {
    /// Adds tokens whose text begins at this character offset of the answer.
    fn extend(&mut self, tokens: &[TokenLogprobs], mut offset: usize) {
        for token in tokens {
            let text = logprobs::text(&token.bytes);
            let top = token.top.iter();
            let top: Map<String, Value> = top
                .map(|top| (logprobs::text(&top.bytes), logprobs::finite(top.logprob).into()))
                .collect();
            self.text_offset.push(offset);
            offset += text.chars().count();
            self.tokens.push(text);
            self.token_logprobs.push(logprobs::finite(token.logprob));
            self.top_logprobs.push(top.into());
        }
    }

    fn body(&self) -> Value {
        json!({"tokens": self.tokens, "token_logprobs": self.token_logprobs, "top_logprobs": self.top_logprobs, "text_offset": self.text_offset})
    }
}

impl CompletionsReply {
    /// A reply with one answer for each of these echoed prompts; `per_prompt` consecutive answers belong to one prompt.
    pub(crate) fn new(
        stamp: ResponseIds,
        model: &str,
        echoes: Vec<String>,
        answers: usize,
        options: ChatOptions,
    ) -> Self {
        let choice = |echo| Choice {
            echo,
            ..Choice::default()
        };
        Self {
            stamp,
            model: model.to_owned(),
            choices: echoes.into_iter().map(choice).collect(),
            answers,
            options,
        }
    }

    fn envelope(&self, choices: Value) -> Value {
        let mut body = json!({"id": self.stamp.id, "object": "text_completion", "created": self.stamp.created, "model": self.model});
        body["choices"] = choices;
        body
    }

    fn chunk(&self, index: usize, text: &str, likely: Option<&Likely>, finish_reason: Option<&str>) -> Value {
        let likely = likely.filter(|_| self.options.logprobs).map(Likely::body);
        self.envelope(json!([{"index": index, "text": text, "logprobs": likely, "finish_reason": finish_reason}]))
    }
}

impl Reply for CompletionsReply {
    fn begin(&mut self, _prompt_tokens: Option<u32>) -> Vec<Frame> {
        let first = |(index, choice): (usize, &Choice)| Frame::Data(self.chunk(index, &choice.echo, None, None));
        self.choices.iter().enumerate().map(first).collect()
    }

    fn say(&mut self, answer: usize, said: ReplyEvent) -> Vec<Frame> {
        let Some(choice) = self.choices.get_mut(answer) else {
            return Vec::new();
        };
        match said {
            ReplyEvent::Text { text, logprobs } => {
                let mut likely = Likely::default();
                likely.extend(&logprobs, choice.text.chars().count());
                choice.likely.extend(&logprobs, choice.text.chars().count());
                choice.text.push_str(&text);
                vec![Frame::Data(self.chunk(answer, &text, Some(&likely), None))]
            }
            ReplyEvent::End(end) => {
                let reason = finish_reason(&end.reason);
                choice.end = Some(end);
                let mut chunk = self.chunk(answer, "", None, Some(reason));
                if !self.options.usage_chunk && self.choices.iter().all(|choice| choice.end.is_some()) {
                    chunk["usage"] = usage::chat(self.tokens());
                }
                vec![Frame::Data(chunk)]
            }
            // Output after a raw prompt is only text.
            ReplyEvent::Thinking(_) | ReplyEvent::Call(_) | ReplyEvent::CutCall(_) | ReplyEvent::Search(_) => {
                Vec::new()
            }
        }
    }

    fn end(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        if self.options.usage_chunk {
            let mut last = self.envelope(json!([]));
            last["usage"] = usage::chat(self.tokens());
            frames.push(Frame::Data(last));
        }
        frames.push(Frame::Done);
        frames
    }

    fn tokens(&self) -> Tokens {
        let prompts = self.choices.chunks(self.answers);
        let prompts = prompts.map(|answers| {
            let ends = answers.iter().filter_map(|choice| choice.end.as_ref());
            ends.fold(Tokens::default(), |all, end| all.and(end.usage))
        });
        prompts.fold(Tokens::default(), Tokens::beside)
    }

    fn whole(&self) -> Value {
        let choice = |(index, choice): (usize, &Choice)| {
            let reason = choice.end.as_ref().map(|end| finish_reason(&end.reason));
            let likely = self.options.logprobs.then(|| choice.likely.body());
            json!({"index": index, "text": format!("{}{}", choice.echo, choice.text), "logprobs": likely, "finish_reason": reason})
        };
        let mut whole = self.envelope(self.choices.iter().enumerate().map(choice).collect());
        whole["usage"] = usage::chat(self.tokens());
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::reply::tests::{data, stamp};
    use crate::answer::reply_event::StopCause;

    fn end() -> ReplyEvent {
        ReplyEvent::End(End {
            reason: StopCause::TokenLimit,
            usage: Tokens {
                prompt: 3,
                cached: 1,
                completion: 2,
                reasoning: 0,
            },
            timing: protocol::Timing::default(),
        })
    }

    fn text(text: &str) -> ReplyEvent {
        let token = TokenLogprobs {
            token: 1,
            bytes: text.into(),
            logprob: -0.5,
            top: vec![protocol::TopLogprob {
                token: 1,
                bytes: text.into(),
                logprob: -0.5,
            }],
        };
        ReplyEvent::Text {
            text: text.into(),
            logprobs: vec![token],
        }
    }

    #[test]
    fn each_prompt_counts_once() {
        let mut reply = CompletionsReply::new(
            stamp("cmpl-1"),
            "pebble",
            vec![String::new(); 4],
            2,
            ChatOptions::default(),
        );
        (0..4).for_each(|answer| drop(reply.say(answer, end())));
        assert_eq!((reply.tokens().prompt, reply.tokens().completion), (6, 8));
    }

    #[test]
    fn streamed_or_whole_it_says_the_same() {
        let options = ChatOptions {
            usage_chunk: false,
            logprobs: true,
        };
        let mut reply = CompletionsReply::new(stamp("cmpl-1"), "pebble", vec!["one ".into()], 1, options);
        let mut frames = reply.begin(None);
        for said in [text("two "), text("three"), end()] {
            frames.extend(reply.say(0, said));
        }
        frames.extend(reply.end());
        let chunks = data(&frames);
        let streamed: String = chunks
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["text"].as_str())
            .collect();
        let whole = reply.whole();
        assert_eq!(
            (streamed.as_str(), &whole["choices"][0]["text"]),
            ("one two three", &json!("one two three"))
        );
        let likely = json!({"tokens": ["two ", "three"], "token_logprobs": [-0.5, -0.5],
            "top_logprobs": [{"two ": -0.5}, {"three": -0.5}], "text_offset": [0, 4]});
        assert_eq!(whole["choices"][0]["logprobs"], likely);
        assert_eq!(chunks[2]["choices"][0]["logprobs"]["text_offset"], json!([4]));
        let last = chunks.last().unwrap();
        assert_eq!(
            (&last["choices"][0]["finish_reason"], &last["usage"]),
            (&json!("length"), &whole["usage"])
        );
        assert_eq!(whole["usage"]["total_tokens"], 5);
    }
}
