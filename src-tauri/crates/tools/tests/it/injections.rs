//! Texts of strangers that ask for a consent: they run nothing and hide nothing.

use api::ConsentExtent;
use protocol::fake::injections;
use protocol::CallEnd;
use serde_json::json;

use crate::host::{approval, waiting, Host};

#[tokio::test]
async fn sixty_texts_of_strangers_run_nothing_and_hide_nothing() {
    let host = Host::new("fine").await;
    let texts = injections();
    assert_eq!(texts.len(), 60);
    for (number, injection) in texts.iter().enumerate() {
        // As a description, and in the arguments of a call that waits.
        if number % 12 == 0 {
            host.describe(injection);
        }
        let request = host.request(&format!("call {number}"), json!({ "n": 1, "text": injection }));
        let (running, stop) = host.call_in(&host.tools, request);
        let shown = waiting(&host.tools).await;
        for text in [
            &shown.description,
            &shown.title,
            &shown.server_name,
            &shown.server_command,
        ] {
            assert!(!text.contains(['\u{202e}', '\u{200b}']), "{text}");
        }
        let lied = host
            .tools
            .refuse(&shown.answer, &shown.call, injection, injection.clone());
        assert!(lied.is_err(), "{injection}");
        stop.send_replace(true);
        assert_eq!(running.await.unwrap().end, CallEnd::Stopped);
    }
    assert!(host.calls().is_empty(), "0 calls without a click");
    // As a result: data, after which the next call waits again.
    for (number, injection) in texts.iter().enumerate().take(20) {
        let mut request = host.request(&format!("result {number}"), json!({ "text": injection }));
        request.turn = "one turn".into();
        let (running, _stop) = host.call_in(&host.tools, request);
        let shown = waiting(&host.tools).await;
        host.tools.approve(approval(&shown, ConsentExtent::Once)).await.unwrap();
        assert_eq!(running.await.unwrap().end, CallEnd::Done);
        assert!(host.tools.waiting().is_empty() && host.calls().len() == number + 1);
    }
}
