//! Searches, what they find, and what streams and later responses tell of them.

use super::*;

#[tokio::test]
async fn nothing_is_searched_that_the_user_did_not_allow() {
    let harness = Harness::open().await;
    let refused = ask(harness.address, json!({"input": "hi", "tools": tool(&["Notes"])}))
        .await
        .unwrap();
    let error = &refused.json()["error"];
    assert_eq!(
        (refused.head.status, &error["param"]),
        (404, &json!("tools[0].vector_store_ids[0]"))
    );
    assert!(
        error["message"].as_str().unwrap().contains("ponder serve --docs NAME"),
        "{error}"
    );
    let none = get(harness.address, "/v1/vector_stores").await.json();
    assert_eq!((&none["data"], &none["first_id"]), (&json!([]), &Value::Null));

    let world = World::open().await;
    let refused = world
        .post(json!({"input": "hi", "tools": tool(&["Notes", "Secret"])}))
        .await
        .unwrap();
    let error = &refused.json()["error"];
    assert_eq!(
        (refused.head.status, &error["param"]),
        (404, &json!("tools[0].vector_store_ids[1]"))
    );
    let allowed = format!("allowed are \"Notes\" ({})", world.notes);
    assert!(error["message"].as_str().unwrap().ends_with(&allowed), "{error}");
    let stores = get(world.harness.address, "/v1/vector_stores").await.json();
    let store = &stores["data"][0];
    assert_eq!(
        (stores["data"].as_array().unwrap().len(), &store["id"]),
        (1, &json!(world.notes))
    );
    assert_eq!(
        (&store["name"], &store["file_counts"]["completed"]),
        (&json!("Notes"), &json!(2))
    );
    assert!(store["created_at"].as_u64().unwrap() > 1_700_000_000);
    assert!(world.harness.engine.take_job().is_none());
}

#[tokio::test]
async fn the_model_searches_and_goes_on_with_what_was_found() {
    let world = World::open().await;
    let answer = world.post(json!({"input": "When does the ferry leave?", "tools": tool(&["Notes"])}));
    let first = world.search("When does the ferry leave?").await;
    assert!(offers_search(&first));
    let job = world.write("At seven [1], `x[1]`, [7].").await;
    let messages = &job.request.messages;
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
    assert_eq!(
        messages[1].tool_calls[0].arguments["query"],
        "When does the ferry leave?"
    );
    assert_eq!(messages[2].tool_call_id.as_ref(), Some(&messages[1].tool_calls[0].id));
    let found = messages[2].text_with_placeholders();
    // The fence is longer than the one that the file has.
    assert!(found.contains("[1] ferry.md") && found.contains("````\n"), "{found}");
    assert!(!found.contains("late"), "{found}");

    let body = answer.await.unwrap().json();
    assert_eq!(
        (body["status"].as_str(), kinds(&body["output"])),
        (Some("completed"), vec!["file_search_call", "message"])
    );
    let search = &body["output"][0];
    assert_eq!(
        (&search["queries"], &search["status"]),
        (&json!(["When does the ferry leave?"]), &json!("completed"))
    );
    assert_eq!(search["results"], Value::Null);
    let annotations = body["output"][1]["content"][0]["annotations"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(annotations.len(), 1, "{annotations:?}");
    assert_eq!(
        (&annotations[0]["filename"], &annotations[0]["index"]),
        (&json!("ferry.md"), &json!(9))
    );
    assert!(annotations[0]["file_id"].as_str().unwrap().starts_with("file-"));
    // Both turns of the model are counted.
    assert_eq!(
        (&body["usage"]["input_tokens"], &body["usage"]["output_tokens"]),
        (&json!(40), &json!(10))
    );
}

#[tokio::test]
async fn a_stream_tells_of_the_search_and_of_citations() {
    let world = World::open().await;
    let answer = world.post(
        json!({"input": "ferry?", "stream": true, "include": ["file_search_call.results"],
        "tools": [{"type": "file_search", "vector_store_ids": [world.notes], "max_num_results": 1}]}),
    );
    world.search("ferry leaves seven").await;
    world.write("At seven [1].").await;
    let events = answer.await.unwrap().events();
    let told: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        told,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.file_search_call.in_progress",
            "response.file_search_call.searching",
            "response.file_search_call.completed",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.annotation.added",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let numbers: Vec<u64> = events
        .iter()
        .map(|event| event["sequence_number"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let results = events[6]["item"]["results"].as_array().unwrap();
    assert_eq!(results.len(), 1);
    assert_eq!(
        (&results[0]["filename"], &results[0]["attributes"]["number"]),
        (&json!("ferry.md"), &json!(1))
    );
    assert!(results[0]["text"].as_str().unwrap().contains("leaves at seven"));
    let annotation = &events[10]["annotation"];
    assert_eq!(
        (&annotation["type"], &annotation["file_id"]),
        (&json!("file_citation"), &results[0]["file_id"])
    );
    assert_eq!(
        (&events[10]["item_id"], &events[10]["output_index"]),
        (&events[7]["item"]["id"], &json!(1))
    );

    let whole = &events[14]["response"];
    let place = format!("/v1/responses/{}?stream=true", whole["id"].as_str().unwrap());
    let again = get(world.harness.address, &place).await.events();
    let without_numbers = |events: &[Value]| -> Vec<Value> {
        let mut events = events.to_vec();
        events
            .iter_mut()
            .for_each(|event| event["sequence_number"] = Value::Null);
        events
    };
    // A stored text comes in one piece, as this one did.
    assert_eq!(without_numbers(&again[2..]), without_numbers(&events[2..]));
}

#[tokio::test]
async fn the_next_response_sees_the_passages_and_finds_others() {
    let world = World::open().await;
    let first = world.post(json!({"input": "When?", "tools": [{"type": "file_search", "vector_store_ids": ["Notes"], "max_num_results": 1}]}));
    world.search("When does the ferry leave at seven?").await;
    world.write("At seven [1].").await;
    let first = first.await.unwrap().json();
    assert_eq!(first["output"][0]["results"], Value::Null);
    let id = first["id"].as_str().unwrap();
    let kept = get(world.harness.address, &format!("/v1/responses/{id}")).await.json();
    assert_eq!(kept, first);

    let next = world.post(json!({"input": "And the fare?", "previous_response_id": id, "tools": tool(&["Notes"])}));
    let job = world.search("ferry ticket").await;
    let roles: Vec<Role> = job.request.messages.iter().map(|message| message.role).collect();
    assert_eq!(
        roles,
        [Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::User]
    );
    assert!(job.request.messages[2]
        .text_with_placeholders()
        .contains("leaves at seven"));
    let job = world.write("Four euros [2], at seven [1].").await;
    let found = job.request.messages.last().unwrap().text_with_placeholders();
    assert!(
        found.contains("[2] fares.txt") && !found.contains("ferry.md"),
        "{found}"
    );
    let next = next.await.unwrap().json();
    let annotations = next["output"][1]["content"][0]["annotations"]
        .as_array()
        .unwrap()
        .clone();
    let names: Vec<_> = annotations
        .iter()
        .map(|one| one["filename"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["fares.txt", "ferry.md"]);
    let items = get(
        world.harness.address,
        &format!("/v1/responses/{}/input_items", next["id"].as_str().unwrap()),
    )
    .await
    .json();
    let search = items["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["type"] == "file_search_call")
        .unwrap();
    assert_eq!(search["results"], Value::Null);

    // A client that keeps the conversation itself sends the items back without results.
    let mut input = vec![json!({"role": "user", "content": "When?"})];
    input.extend(first["output"].as_array().unwrap().iter().cloned());
    input.push(json!({"role": "user", "content": "Sure?"}));
    let resent = world.post(json!({"input": input}));
    let job = world.write("Yes [1].").await;
    assert!(job.request.messages[2]
        .text_with_placeholders()
        .contains("leaves at seven"));
    assert!(!offers_search(&job));
    let resent = resent.await.unwrap().json();
    assert_eq!(
        resent["output"][0]["content"][0]["annotations"][0]["filename"],
        "ferry.md"
    );
}
