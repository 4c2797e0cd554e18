//! `GET /v1/responses/{id}?stream=true`: a stored response in the events that a stream of it has.

use serde_json::{json, Value};

use crate::answer::reply::{Frame, ResponseIds};
use crate::openai::file_search;
use crate::openai::response_item::Growing;
use crate::openai::responses_reply::{EchoedRequest, ResponsesReply};

/// The events of a response, each text in one piece; `after` is the number of the last one that the client has.
pub(crate) fn events(response: &Value, after: Option<u64>) -> Vec<Frame> {
    let output = response["output"].as_array().map(Vec::as_slice).unwrap_or_default();
    let has_summary = |item: &Value| item["summary"].as_array().is_some_and(|parts| !parts.is_empty());
    let stamp = ResponseIds {
        id: String::new(),
        created: 0,
    };
    let asked = EchoedRequest {
        summary: output.iter().any(has_summary),
        ..EchoedRequest::default()
    };
    let mut reply = ResponsesReply::new(stamp, "", asked);
    let mut begun = response.clone();
    for (name, value) in [
        ("status", json!("in_progress")),
        ("output", json!([])),
        ("usage", Value::Null),
        ("incomplete_details", Value::Null),
    ] {
        begun[name] = value;
    }
    let mut frames = vec![reply.event("response.created", json!({"response": begun}))];
    frames.push(reply.event("response.in_progress", json!({"response": begun})));
    frames.extend(output.iter().flat_map(|item| item_events(&mut reply, item)));
    let end = format!("response.{}", response["status"].as_str().unwrap_or("completed"));
    frames.push(reply.event(&end, json!({"response": response})));
    frames.retain(|frame| match (frame, after) {
        (Frame::Event(event), Some(after)) => event["sequence_number"].as_u64() > Some(after),
        _ => true,
    });
    frames
}

fn item_events(reply: &mut ResponsesReply, item: &Value) -> Vec<Frame> {
    let text = |name: &str| item[name].as_str().unwrap_or_default();
    let part = &item["content"][0];
    let said = part["text"].as_str().unwrap_or_default();
    let kind = match text("type") {
        "function_call" => {
            return reply.call_as(
                text("id"),
                text("call_id"),
                text("name"),
                text("arguments"),
                text("status"),
            );
        }
        file_search::ITEM => {
            let mut frames = reply.begin_search(text("id"), item["queries"][0].as_str().unwrap_or_default());
            frames.extend(reply.end_search(text("status"), item["results"].clone(), true));
            return frames;
        }
        "reasoning" => Growing::Reasoning,
        _ => Growing::Message,
    };
    let logprobs = part["logprobs"].as_array().cloned().unwrap_or_default();
    let mut frames = reply.open_as(kind, text("id").to_owned());
    frames.extend(reply.grow(said, logprobs));
    let annotations = part["annotations"].as_array().cloned().unwrap_or_default();
    frames.extend(reply.close_with(text("status"), annotations));
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::reply::tests::data;
    use crate::openai::responses_reply::tests::answer;

    #[test]
    fn a_stored_response_has_the_events_of_its_stream() {
        for summary in [false, true] {
            let (streamed, whole) = answer(summary);
            let replayed = data(&events(&whole, None));
            // Its pieces are joined, so the numbers differ.
            let told = |events: &[Value]| -> Vec<Value> {
                let told = events
                    .iter()
                    .filter(|event| !event["type"].as_str().unwrap().ends_with(".delta"));
                let mut told: Vec<Value> = told.cloned().collect();
                told.iter_mut().for_each(|event| event["sequence_number"] = Value::Null);
                told
            };
            assert_eq!(told(&replayed), told(&streamed));
            let numbers: Vec<u64> = replayed
                .iter()
                .filter_map(|event| event["sequence_number"].as_u64())
                .collect();
            assert_eq!(numbers, (0..replayed.len() as u64).collect::<Vec<_>>());
            assert_eq!(data(&events(&whole, Some(3))), replayed[4..]);
        }
    }
}
