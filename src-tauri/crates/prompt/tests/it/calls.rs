//! Calls whose arguments hold markup, calls in thoughts, and what models write that their templates never would: each
//! whole and in pieces, with markers as tokens and as text.

use std::collections::BTreeMap;

use crate::common::{byte_speaker, split, written};
use prompt::{Event, Prompt, Splitter};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Fixture {
    tools: Vec<Value>,
    formats: BTreeMap<String, Vec<Case>>,
}

/// A model's output and the expected events: `T:` a thought, `A:` the answer, `C:` a call, `N:` a notice.
#[derive(Deserialize)]
struct Case {
    source: String,
    events: Vec<String>,
    #[serde(default)]
    opened: bool,
}

fn fixture() -> Fixture {
    serde_json::from_str(include_str!("../fixtures/calls.json")).unwrap()
}

#[test]
fn calls_are_what_was_written() {
    let fixture = fixture();
    let mut wrong = Vec::new();
    for (format, cases) in &fixture.formats {
        for case in cases {
            for characters in [usize::MAX, 1, 3, 7] {
                let splitter = Splitter::named(format, case.opened, true)
                    .unwrap()
                    .with_tools(&fixture.tools);
                let events = written(&split(splitter, &case.source, characters));
                if events != case.events {
                    wrong.push(format!(
                        "{format}: {:?}\n  in pieces of {characters}: {events:?}\n  expected {:?}",
                        case.source, case.events
                    ));
                    break;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn calls_are_what_was_written_in_tokens() {
    let fixture = fixture();
    for (format, cases) in &fixture.formats {
        let splitter = Splitter::named(format, false, true).unwrap();
        let markers: Vec<&str> = splitter.markers().collect();
        let template = format!("{}\n{}", markers.join("\n"), markers.concat());
        // Every marker as a token, and if the format's row does not ask for tokens, every marker spelled out.
        let tokens: &[&[&str]] = match format.as_str() {
            "gemma4" | "harmony" | "muse" => &[&markers],
            _ => &[&markers, &[]],
        };
        for tokens in tokens {
            let (processor, library) = byte_speaker(tokens, &template);
            let ids = |text: &str| library.encode_fast(text, false).unwrap().get_ids().to_vec();
            for case in cases {
                let opening = match (case.opened, format.as_str()) {
                    (false, _) => "",
                    (true, "gemma4") => "<|channel>thought\n",
                    (true, _) => markers[0],
                };
                let prompt = Prompt {
                    text: opening.to_owned(),
                    ids: ids(opening),
                    ..Prompt::default()
                };
                let mut parser = processor.parser(&prompt, true, &[]).with_tools(&fixture.tools);
                let mut events: Vec<Event> = ids(&case.source)
                    .into_iter()
                    .flat_map(|id| parser.push_event(id))
                    .collect();
                events.extend(parser.finish_events());
                assert_eq!(
                    written(&events),
                    case.events,
                    "{format}, {} tokens: {:?}",
                    tokens.len(),
                    case.source
                );
            }
        }
    }
}
