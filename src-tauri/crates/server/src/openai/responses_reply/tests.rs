use super::*;
use crate::answer::reply::tests::{call, data, end, stamp};
use crate::answer::reply_event::StopCause;
use crate::http::error_body::Kind;

fn reply(summary: bool) -> ResponsesReply {
    let answered = EchoedRequest {
        store: true,
        summary,
        ..EchoedRequest::default()
    };
    ResponsesReply::new(stamp("resp_1"), "pebble", answered)
}

/// The events and the body of an answer with a thought, a text and a call.
pub(in crate::openai) fn answer(summary: bool) -> (Vec<Value>, Value) {
    let mut reply = reply(summary);
    let mut frames = reply.begin(None);
    for said in [
        ReplyEvent::Thinking("h".into()),
        ReplyEvent::Thinking("m".into()),
        ReplyEvent::text("4"),
        call(),
        end(StopCause::ToolCalls),
    ] {
        frames.extend(reply.say(0, said));
    }
    frames.extend(reply.end());
    (data(&frames), reply.whole())
}

#[test]
fn items_open_grow_and_close_in_order() {
    let (events, whole) = answer(false);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.reasoning_text.delta",
            "response.reasoning_text.delta",
            "response.reasoning_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
    }
    let done: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .collect();
    for (index, event) in done.iter().enumerate() {
        assert_eq!(
            (&event["output_index"], &event["item"]),
            (&json!(index), &whole["output"][index])
        );
        let added = events
            .iter()
            .find(|other| other["type"] == "response.output_item.added" && other["output_index"] == index);
        assert_eq!(added.unwrap()["item"]["id"], event["item"]["id"]);
    }
    assert_eq!(events.last().unwrap()["response"], whole);
    assert_eq!(
        whole["output"][0]["content"],
        json!([{"type": "reasoning_text", "text": "hm"}])
    );
    assert_eq!(whole["output"][0]["summary"], json!([]));
    assert_eq!(whole["output"][2]["call_id"], "call_abcdefghi");
    assert!(whole["output"][2]["id"].as_str().unwrap().starts_with("fc_"));
    assert_eq!(
        whole["usage"],
        json!({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0}, "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 17})
    );
}

#[test]
fn a_summary_that_was_asked_for_says_the_thought_again() {
    let (events, whole) = answer(true);
    let kinds = events.iter().filter_map(|event| event["type"].as_str());
    let summary: Vec<&str> = kinds.filter(|kind| kind.contains("summary")).collect();
    assert_eq!(
        summary,
        [
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
        ]
    );
    assert_eq!(
        whole["output"][0]["summary"],
        json!([{"type": "summary_text", "text": "hm"}])
    );
}

#[test]
fn an_answer_that_was_cut_is_incomplete_and_one_that_failed_says_why() {
    let mut cut = reply(false);
    cut.say(0, ReplyEvent::text("4"));
    cut.say(0, end(StopCause::TokenLimit));
    let last = data(&cut.end());
    assert_eq!(last[0]["type"], "response.incomplete");
    assert_eq!(
        last[0]["response"]["incomplete_details"],
        json!({"reason": "max_output_tokens"})
    );
    assert_eq!(last[0]["response"]["output"][0]["status"], "incomplete");
    assert!(cut.stored().is_some());

    let mut failed = reply(false);
    failed.say(0, ReplyEvent::text("4"));
    let last = data(&failed.fail(&Refusal::new(Kind::Internal, "broken"), "req_1"))
        .pop()
        .unwrap();
    assert_eq!(
        (&last["type"], &last["response"]["status"]),
        (&json!("response.failed"), &json!("failed"))
    );
    assert_eq!(
        last["response"]["error"],
        json!({"code": "server_error", "message": "broken"})
    );
    assert!(failed.stored().is_none());
}

#[test]
fn a_client_that_waited_long_is_sent_what_it_counts() {
    let mut reply = reply(false);
    reply.begin(None);
    assert_eq!(reply.keep_alive(false), [Frame::Comment]);
    let counted = data(&reply.keep_alive(true));
    assert_eq!(
        (&counted[0]["type"], &counted[0]["sequence_number"]),
        (&json!("response.in_progress"), &json!(2))
    );
}
