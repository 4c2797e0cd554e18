//! The ends of searching, and what is refused.

use super::*;

#[tokio::test]
async fn a_model_that_searches_on_and_on_is_stopped() {
    let world = World::open().await;
    let answer = world.post(json!({"input": "ferry?", "max_tool_calls": 2, "tools": tool(&["Notes"])}));
    assert!(offers_search(&world.search("ferry").await));
    // One without words is none, and counts.
    assert!(offers_search(&world.search(" ").await));
    let last = world.search("ferry again").await;
    assert!(!offers_search(&last));
    let result = last.request.messages.last().unwrap().text_with_placeholders();
    assert!(result.contains("no query"), "{result}");
    let body = answer.await.unwrap().json();
    assert_eq!(
        (body["status"].as_str(), kinds(&body["output"])),
        (Some("completed"), vec!["file_search_call"])
    );
    assert!(world.harness.engine.take_job().is_none());

    let endless = world.post(json!({"input": "ferry?", "tools": tool(&["Notes"])}));
    let mut searches = 0;
    while offers_search(&world.search(&format!("ferry {searches}")).await) {
        searches += 1;
    }
    assert_eq!(
        (searches, kinds(&endless.await.unwrap().json()["output"]).len()),
        (8, 8)
    );
}

#[tokio::test]
async fn a_full_context_ends_searches() {
    let world = World::open().await;
    let answer = world.post(json!({"input": "ferry?", "tools": tool(&["Notes"])}));
    let job = world.harness.job().await;
    call(&job, "file_search", json!({"query": "ferry"}));
    let full = match done(FinishReason::ToolCalls) {
        protocol::EngineEvent::Done(mut done) => {
            done.usage = done.usage.map(|usage| protocol::Usage {
                prompt_tokens: 4000,
                ..usage
            });
            protocol::EngineEvent::Done(done)
        }
        other => other,
    };
    job.events.send(full);
    let job = world.write("I do not know.").await;
    let told = job.request.messages.last().unwrap().text_with_placeholders();
    assert!(told.contains("almost full") && !offers_search(&job), "{told}");
    assert_eq!(kinds(&answer.await.unwrap().json()["output"]), ["message"]);
}

#[tokio::test]
async fn a_function_of_the_client_ends_the_response_after_the_search() {
    let world = World::open().await;
    let tools = json!([{"type": "function", "name": "add", "parameters": {}}, tool(&["Notes"])[0]]);
    let answer = world.post(json!({"input": "ferry?", "tools": tools, "tool_choice": "required"}));
    let job = world.harness.job().await;
    assert!(job.request.call_required);
    call(&job, "file_search", json!({"query": "When does the ferry leave?"}));
    call(&job, "add", json!({"a": 1}));
    job.events.send(done(FinishReason::ToolCalls));
    let body = answer.await.unwrap().json();
    let mut items = kinds(&body["output"]);
    items.sort_unstable();
    assert_eq!(items, ["file_search_call", "function_call"]);
    let output = body["output"].as_array().unwrap();
    let id = output.iter().find(|item| item["type"] == "function_call").unwrap()["call_id"].clone();
    let next = world.post(json!({"previous_response_id": body["id"], "input": [{"type": "function_call_output", "call_id": id, "output": "2"}]}));
    let job = world.write("So.").await;
    let results: Vec<String> = job
        .request
        .messages
        .iter()
        .filter(|message| message.role == Role::Tool)
        .map(|message| message.text_with_placeholders().to_string())
        .collect();
    assert_eq!(results.len(), 2);
    assert!(
        results.iter().any(|result| result.contains("leaves at seven")) && results.iter().any(|result| result == "2")
    );
    next.await.unwrap();
}

#[tokio::test]
async fn a_required_search_is_required_once() {
    let world = World::open().await;
    let answer =
        world.post(json!({"input": "ferry?", "tools": tool(&["Notes"]), "tool_choice": {"type": "file_search"}}));
    let first = world.search("ferry").await;
    assert!(first.request.call_required);
    assert!(first.request.messages[0]
        .text_with_placeholders()
        .contains("file_search"));
    let second = world.write("So [1].").await;
    assert!(!second.request.call_required);
    assert_eq!(second.request.messages[0].text_with_placeholders(), "ferry?");
    assert_eq!(answer.await.unwrap().json()["status"], "completed");

    let hidden = world.post(json!({"input": "ferry?", "tools": tool(&["Notes"]), "tool_choice": "none"}));
    assert!(!offers_search(&world.write("No.").await));
    assert_eq!(kinds(&hidden.await.unwrap().json()["output"]), ["message"]);
}

#[tokio::test]
async fn a_search_that_fails_is_told_and_the_answer_goes_on() {
    let config = ServerConfig {
        documents: AllowedDocuments::new(Arc::new(NoDocuments), vec!["broken".into()]),
        ..ServerConfig::default()
    };
    let harness = Harness::with(config).await;
    let answer = ask(
        harness.address,
        json!({"input": "hi", "stream": true, "tools": tool(&["Broken"])}),
    );
    let job = harness.job().await;
    call(&job, "file_search", json!({"query": "hi"}));
    job.events.send(done(FinishReason::ToolCalls));
    let job = harness.job().await;
    let told = job.request.messages.last().unwrap().text_with_placeholders();
    assert!(
        told.contains("could not be searched") && !told.contains("/home"),
        "{told}"
    );
    job.events.send(delta(Content::text("Sorry.")));
    job.events.send(done(FinishReason::Stop));
    let events = answer.await.unwrap().events();
    let whole = &events.last().unwrap()["response"];
    assert_eq!(
        (&whole["output"][0]["status"], &whole["status"]),
        (&json!("failed"), &json!("completed"))
    );
    assert!(events
        .iter()
        .all(|event| event["type"] != "response.file_search_call.completed"));
}

#[tokio::test]
async fn what_cannot_be_honored_is_refused_by_name() {
    let world = World::open().await;
    let with = |fields: Value| {
        let mut tools = tool(&["Notes"]);
        for (name, value) in fields.as_object().unwrap() {
            tools[0][name] = value.clone();
        }
        json!({"input": "hi", "tools": tools})
    };
    for (body, place) in [
        (
            with(json!({"filters": {"type": "eq", "key": "a", "value": 1}})),
            "tools[0].filters",
        ),
        (with(json!({"max_num_results": 51})), "tools[0].max_num_results"),
        (
            with(json!({"ranking_options": {"score_threshold": 0.5}})),
            "tools[0].ranking_options.score_threshold",
        ),
        (with(json!({"vector_store_ids": []})), "tools[0].vector_store_ids"),
        (
            json!({"input": "hi", "tools": [{"type": "file_search"}]}),
            "tools[0].vector_store_ids",
        ),
        (
            json!({"input": "hi", "tools": [tool(&["Notes"])[0], tool(&["Notes"])[0]]}),
            "tools[1].type",
        ),
        (
            json!({"input": "hi", "tools": [tool(&["Notes"])[0], {"type": "function", "name": "file_search"}]}),
            "tools",
        ),
        (
            json!({"input": "hi", "tool_choice": {"type": "file_search"}}),
            "tool_choice",
        ),
    ] {
        let refused = world.post(body).await.unwrap();
        assert_eq!(
            (refused.head.status, &refused.json()["error"]["param"]),
            (400, &json!(place))
        );
    }
    let fine = with(json!({"ranking_options": {"ranker": "auto", "score_threshold": 0}, "filters": null}));
    let fine = world.post(fine);
    world.write("Hi.").await;
    assert_eq!(fine.await.unwrap().head.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sdk_of_openai_reads_searches_and_citations() {
    let Some(python) = std::env::var_os("PONDER_CLIENTS_PYTHON") else {
        println!("skipped: PONDER_CLIENTS_PYTHON names no Python with the SDKs; `./dev test` provides one");
        return;
    };
    let world = World::open().await;
    let engine = world.harness.engine.clone();
    let answering = tokio::spawn(async move {
        loop {
            while let Some(job) = engine.take_job() {
                let is_asked = job.request.messages.len() == 1;
                match is_asked && offers_search(&job) {
                    true => call(&job, "file_search", json!({"query": "When does the ferry leave?"})),
                    false => job.events.send(delta(Content::text("At seven [1]."))),
                }
                job.events.send(done(if is_asked {
                    FinishReason::ToolCalls
                } else {
                    FinishReason::Stop
                }));
            }
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    });
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/clients/file_search.py");
    let url = format!("http://{}", world.harness.address);
    let run = move || {
        std::process::Command::new(python)
            .arg(script)
            .args([&url, "Notes"])
            .output()
            .unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    answering.abort();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({"status": "completed", "queries": ["When does the ferry leave?"], "cited": ["ferry.md"], "text": "At seven [1]."});
    assert_eq!((&told["whole"], &told["streamed"]), (&expected, &expected));
    let events = [
        "response.file_search_call.in_progress",
        "response.file_search_call.searching",
        "response.file_search_call.completed",
        "response.output_text.annotation.added",
    ];
    assert_eq!(told["events"], json!(events));
    assert_eq!(told["following"], "At seven [1].");
    assert_eq!(told["stores"], json!([[world.notes, "Notes"]]));
    assert_eq!(told["refused"], "tools[0].vector_store_ids[0]");
}
