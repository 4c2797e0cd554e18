//! The control over a model's reasoning, derived from its chat template alone: it is rendered with and without each
//! switch, and the renders are compared.

use std::time::Duration;

use protocol::{Message, Role, Thinking, ThinkingControl, ThoughtMarkers};

use sandbox::{Task, Work};
use serde_json::{Map, Value};

use crate::template::{RenderLimits, RenderRequest, Template};

/// The markers that open and close a thought, as templates spell them.
const MARKERS: [(&str, &str); 18] = [
    ("<think:opensource>", "</think:opensource>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<longcat_think>", "</longcat_think>"),
    ("<mm:think>", "</mm:think>"),
    ("<think>", "</think>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|think|>", "<|end|>"),
    ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
    ("Here is my thought process:", "Here is my response:"),
    ("<ifm|think>", "</ifm|think>"),
    ("<ifm|think_fast>", "</ifm|think_fast>"),
    ("<ifm|think_faster>", "</ifm|think_faster>"),
    (" to=self<|message|>", "<|eom|>"),
];
/// Stands for the text of a user or a system prompt; no template looks for it.
const WORDS: &str = "Zyzzyva";

type Capability = (ThinkingControl, Option<ThoughtMarkers>);

/// Longer than the limits of a look.
const TIME: Duration = Duration::from_secs(20);

static PROBE: Task<(String, Map<String, Value>), Capability> = Task::new("thinking", TIME, |(source, variables), _| {
    let template = Template::new(&Value::String(source), variables).ok();
    (
        template.map_or((ThinkingControl::Never, None), |template| probe(&template)),
        Vec::new(),
    )
});

/// The work of this room on files of strangers.
pub static TASKS: [&dyn Work; 1] = [&PROBE];

/// The control over the reasoning of a model with this template, and the markers of its thoughts: found out in the
/// process that files of strangers are read in, if this program has one. A template that ends it has no control.
pub(crate) fn capability(template: &Template) -> Capability {
    let found = PROBE.run(
        (template.source().to_owned(), template.own_variables().clone()),
        Vec::new(),
    );
    found.map_or((ThinkingControl::Never, None), |(capability, _)| capability)
}

fn probe(template: &Template) -> Capability {
    RenderLimits::look().unless_limited(|| {
        let probe = Probe { template };
        let control = probe.control();
        (control.clone(), probe.thought(&control))
    })
}

impl Template {
    /// The control over the reasoning of a model with this template.
    pub fn thinking_control(&self) -> ThinkingControl {
        capability(self).0
    }
}

struct Probe<'a> {
    template: &'a Template,
}

impl Probe<'_> {
    fn render(&self, system: Option<&str>, user: &str, thinking: Option<Thinking>) -> Option<String> {
        let system = system.map(|text| Message::text(Role::System, text));
        let messages: Vec<Message> = system.into_iter().chain([Message::text(Role::User, user)]).collect();
        let request = RenderRequest {
            messages: &messages,
            thinking,
            add_generation_prompt: true,
            ..RenderRequest::default()
        };
        self.template.render(self.template.variables(&request)).ok()
    }

    fn with(&self, thinking: Option<Thinking>) -> Option<String> {
        self.render(None, WORDS, thinking)
    }

    fn control(&self) -> ThinkingControl {
        let [unsaid, on, off] = [None, Some(Thinking::On), Some(Thinking::Off)].map(|thinking| self.with(thinking));
        let switched = on.is_some() && off.is_some() && on != off;
        let mut levels: Vec<(Thinking, String)> = Vec::new();
        for level in [Thinking::Low, Thinking::Medium, Thinking::High] {
            let Some(text) = self.with(Some(level)) else { continue };
            // Two names of one level: the higher one.
            match levels.iter_mut().find(|(_, known)| *known == text) {
                Some((known, _)) => *known = level,
                None => levels.push((level, text)),
            }
        }
        if levels.len() > 1 {
            // A switch may need to be on for the usual level to show.
            let usual = |text: &String| Some(text) == unsaid.as_ref() || (unsaid != off && Some(text) == on.as_ref());
            let default = levels.iter().find(|(_, text)| usual(text)).map(|(level, _)| *level);
            return ThinkingControl::Levels {
                default: match switched && unsaid == off {
                    true => Some(Thinking::Off),
                    false => default,
                },
                levels: levels.into_iter().map(|(level, _)| level).collect(),
                off: switched,
            };
        }
        if switched {
            // If saying nothing is a third thing, the model decides, and then it may think.
            return ThinkingControl::Switch {
                default_on: unsaid != off,
            };
        }
        if let Some(default_on) = self.by_request(unsaid.as_deref()) {
            return ThinkingControl::ByRequest { default_on };
        }
        match self.markers() {
            Some(_) => ThinkingControl::Always,
            None => ThinkingControl::Never,
        }
    }

    /// True if the model thinks by default; `None` if no system prompt changes that.
    fn by_request(&self, unsaid: Option<&str>) -> Option<bool> {
        // `/think` and `/no_think` change how the answer begins.
        let tail = |system: Option<&str>, user: &str| {
            let text = self.render(system, user, None)?;
            text.rsplit_once(WORDS).map(|(_, tail)| tail.to_owned())
        };
        let systems = ["/think", "/no_think", "."].map(|system| tail(Some(system), WORDS));
        let users = ["/think", "/no_think", "."].map(|word| tail(None, &format!("{word} {WORDS}")));
        for [asked, refused, plain] in [systems, users] {
            if asked.is_some() && refused.is_some() && asked != refused {
                return Some(plain == asked);
            }
        }
        // The usual system prompt asks for thoughts, and another one takes its place.
        let own = self.render(Some("."), WORDS, None)?;
        let (open, _) = self.markers()?;
        let asks = |text: &str| text.contains(open) && !text.trim_end().ends_with(open.trim_end());
        (asks(unsaid?) && !own.contains(open)).then_some(true)
    }

    /// The markers that the template speaks of; the specific ones first.
    fn markers(&self) -> Option<(&'static str, &'static str)> {
        let source = self.template.source();
        let spoken = |open: &str| {
            let (word, label) = open
                .split_once("thought")
                .map_or((open, ""), |(word, _)| (word, "thought"));
            source.contains(word) && source.contains(label)
        };
        MARKERS.into_iter().find(|(open, close)| match *open {
            // These are put together from pieces.
            "<|open|>think<|sep|>" => source.contains("<|open|>") && source.contains("think"),
            "<think:opensource>" => source.contains("<think{}>") && source.contains(":opensource"),
            "<|channel|>analysis<|message|>" => source.contains("<|channel|>analysis"),
            "<think>" => ["<think>", "</think>"].iter().any(|marker| source.contains(marker)),
            // If the model itself begins with these words, only the end of its thought is told.
            "Here are my reasoning steps:" => source.contains(open) || source.contains(close),
            // Also Gemma's word for the switch.
            "<|think|>" => source.contains(open) && source.contains(close),
            _ => spoken(open),
        })
    }

    fn thought(&self, control: &ThinkingControl) -> Option<ThoughtMarkers> {
        if *control == ThinkingControl::Never {
            return None;
        }
        let (open, close) = self.markers()?;
        let thinking = match control {
            ThinkingControl::Switch { .. } => Some(Thinking::On),
            ThinkingControl::Levels { levels, .. } => levels.last().copied(),
            _ => None,
        };
        let prompt = self.with(thinking).unwrap_or_default();
        Some(ThoughtMarkers {
            open: open.trim_end().to_owned(),
            close: close.to_owned(),
            opened_by_prompt: prompt.trim_end().ends_with(open.trim_end()),
        })
    }
}

#[cfg(test)]
mod tests;
