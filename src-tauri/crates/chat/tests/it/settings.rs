use std::time::Duration;

use api::{ChatSettings, Endpoint, Settings};
use protocol::{
    Argument, ComputeDevice, ErrorCode, FinishReason, FolderSource, KvBits, LocalEngine, Sampling, Thinking,
};
use serde_json::{json, Map, Value};
use tokio::time::timeout;

use crate::{done, open, Harness};

fn values(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[tokio::test]
async fn a_change_is_told_to_everybody_in_every_process() {
    let harness = Harness::new().await;
    let (_, other) = open(&harness.path).await;
    let (mut here, mut there) = (harness.chat.settings().follow(), other.settings().follow());
    assert_eq!(*there.borrow(), Settings::default());
    let change = values(json!({"thinking": "low", "thinking_budget": 256}));
    let wanted = harness.chat.settings().change(&change).await.unwrap();
    assert_eq!(
        (wanted.thinking, wanted.thinking_budget),
        (Some(Thinking::Low), Some(256))
    );
    for told in [&mut here, &mut there] {
        timeout(Duration::from_secs(120), told.changed())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(*told.borrow_and_update(), wanted);
    }
    // Two programs that change different settings do not undo each other's.
    other
        .settings()
        .change(&values(json!({"default_model": "c/d"})))
        .await
        .unwrap();
    assert_eq!(harness.chat.settings().get().await.unwrap().thinking_budget, Some(256));
    assert_eq!(harness.chat.settings().default_model().await.unwrap(), "c/d");
}

#[tokio::test]
async fn followers_are_told_of_changes_in_the_order_in_which_they_are_stored() {
    let harness = Harness::new().await;
    for round in 0..20 {
        let change = |value: Value| {
            let settings = harness.chat.settings();
            async move { settings.change(&values(value)).await.unwrap() }
        };
        tokio::join!(
            change(json!({"thinking_budget": 100 + round})),
            change(json!({"write_titles": round % 2 == 0})),
            change(json!({"engine": {"unload_after": 1 + round}})),
        );
        let stored = harness.chat.settings().get().await.unwrap();
        assert_eq!(*harness.chat.settings().follow().borrow(), stored);
    }
}

#[tokio::test]
async fn a_change_that_means_nothing_changes_nothing() {
    let harness = Harness::new().await;
    let told = harness.chat.settings().follow();
    for (change, code) in [
        (
            json!({"thinking_budget": 256, "default_model": "missing"}),
            ErrorCode::ModelNotFound,
        ),
        (
            json!({"thinking_budget": 256, "colour": "green"}),
            ErrorCode::BadRequest,
        ),
        (json!({"thinking_budget": "much"}), ErrorCode::BadRequest),
    ] {
        assert_eq!(
            harness.chat.settings().change(&values(change)).await.unwrap_err().code,
            code
        );
    }
    assert_eq!(harness.chat.settings().get().await.unwrap(), Settings::default());
    // A value that is set already is no change.
    harness
        .chat
        .settings()
        .change(&values(json!({"thinking_budget": null})))
        .await
        .unwrap();
    assert!(!told.has_changed().unwrap());
}

#[tokio::test]
async fn a_new_chat_begins_as_it_is_set() {
    let harness = Harness::new().await;
    let change = values(json!({"thinking": "off", "thinking_budget": 64}));
    let settings = harness.chat.settings().change(&change).await.unwrap().new_chat();
    assert_eq!(
        (settings.model, settings.thinking, settings.thinking_budget),
        (None, Some(Thinking::Off), Some(64))
    );
}

#[tokio::test]
async fn a_new_chat_uses_the_model_used_last_unless_a_model_was_chosen_for_new_chats() {
    let harness = Harness::new().await;
    let new_model = || async { harness.chat.chats().new_settings().await.unwrap().model };
    assert_eq!(new_model().await, None, "nothing was asked yet");
    let chat_with = |model: &str| ChatSettings {
        model: Some(model.into()),
        ..ChatSettings::default()
    };
    let asked = harness.chat.chats().create(chat_with("owl")).await.unwrap().summary.id;
    let (answer, job) = harness.ask(&asked, "Why?").await;
    job.events.send(done(FinishReason::Stop));
    harness.end(&answer).await;
    assert_eq!(new_model().await.as_deref(), Some("owl"));
    // One that was removed is used no more.
    harness
        .chat
        .chats()
        .set_settings(&asked, &chat_with("missing"))
        .await
        .unwrap();
    assert_eq!(new_model().await, None);
    harness
        .chat
        .chats()
        .set_settings(&asked, &chat_with("owl"))
        .await
        .unwrap();
    harness.chat.settings().set_default_model("hawk").await.unwrap();
    assert_eq!(new_model().await, None, "it follows the default model");
    let last = values(json!({"new_chats_use_last_model": true}));
    harness.chat.settings().change(&last).await.unwrap();
    assert_eq!(new_model().await.as_deref(), Some("owl"));
}

#[tokio::test]
async fn a_chat_keeps_the_model_of_its_first_question_and_an_empty_one_follows_the_default() {
    let harness = Harness::new().await;
    let (asked, empty) = (harness.new_chat().await, harness.new_chat().await);
    let (answer, job) = harness.ask(&asked, "Why?").await;
    job.events.send(done(FinishReason::Stop));
    harness.end(&answer).await;
    harness.chat.settings().set_default_model("owl").await.unwrap();
    let [kept, followed] = [&asked, &empty].map(|chat| harness.chat.chats().get(chat));
    assert_eq!(kept.await.unwrap().settings.model.as_deref(), Some("pebble"));
    assert_eq!(followed.await.unwrap().settings.model, None);
    let (_, job) = harness.ask(&asked, "And now?").await;
    assert_eq!(job.request.model.reference(), "pebble");
}

#[tokio::test]
async fn a_default_model_goes_with_its_endpoint() {
    let harness = Harness::new().await;
    let endpoint = |name: &str| Endpoint {
        name: name.into(),
        base_url: "http://127.0.0.1:1/v1".into(),
        has_key: false,
        unencrypted_key: false,
        personal: false,
    };
    harness
        .chat
        .settings()
        .set_endpoints(&[endpoint("lab"), endpoint("desk")])
        .await
        .unwrap();
    harness
        .chat
        .settings()
        .set_default_model("endpoint:lab/a/b")
        .await
        .unwrap();
    harness.chat.settings().set_endpoints(&[endpoint("lab")]).await.unwrap();
    assert_eq!(
        harness.chat.settings().default_model().await.unwrap(),
        "endpoint:lab/a/b"
    );
    harness.chat.settings().set_endpoints(&[]).await.unwrap();
    assert_eq!(
        harness.chat.settings().default_model().await.unwrap(),
        Settings::default().default_model
    );
}

#[tokio::test]
async fn what_a_chat_is_set_to_reaches_the_request() {
    let harness = Harness::new().await;
    let settings = ChatSettings {
        sampling: Sampling {
            temperature: Some(0.0),
            seed: Some(7),
            ..Sampling::default()
        },
        max_tokens: Some(64),
        context: Some(1024),
        kv_bits: Some(KvBits::Eight),
        stop: vec!["END".into()],
        ..ChatSettings::default()
    };
    let chat = harness.chat.chats().create(settings.clone()).await.unwrap().summary.id;
    let (_, job) = harness.ask(&chat, "Why?").await;
    let request = &job.request;
    assert_eq!(
        (request.max_tokens, request.context, request.kv_bits),
        (Some(64), Some(1024), Some(KvBits::Eight))
    );
    assert_eq!((&request.sampling, &request.stop), (&settings.sampling, &settings.stop));
    assert!(request.chat_defaults, "what is not set has the defaults of chats");

    // An endpoint cannot be told how to keep its keys and values.
    let remote = ChatSettings {
        model: Some("endpoint:lab/a".into()),
        ..settings
    };
    let chat = harness.chat.chats().create(remote).await.unwrap().summary.id;
    let (_, job) = harness.ask(&chat, "Why?").await;
    assert_eq!((job.request.kv_bits, job.request.max_tokens), (None, Some(64)));
}

#[tokio::test]
async fn what_no_request_may_have_is_refused_and_changes_nothing() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let wrong = ChatSettings {
        max_tokens: Some(0),
        ..ChatSettings::default()
    };
    let refused = harness.chat.chats().set_settings(&chat, &wrong).await.unwrap_err();
    assert_eq!(
        (refused.code, &refused.arguments["field"]),
        (ErrorCode::BadRequest, &Argument::from("max_tokens"))
    );
    assert_eq!(
        harness.chat.chats().get(&chat).await.unwrap().settings,
        ChatSettings::default()
    );
    assert!(harness.chat.chats().create(wrong).await.is_err());
}

#[tokio::test]
async fn a_context_that_was_made_shorter_is_the_one_that_is_counted_against() {
    let harness = Harness::new().await;
    let settings = ChatSettings {
        model: Some("owl".into()),
        context: Some(512),
        ..ChatSettings::default()
    };
    let chat = harness.chat.chats().create(settings).await.unwrap().summary.id;
    load(&harness, "owl").await;
    assert_eq!(
        harness.chat.compaction().context_use(&chat, &[]).await.unwrap().context,
        Some(512)
    );
    // The fake has a token for each byte.
    assert_eq!(
        harness.refusal(&chat, &"long ".repeat(200)).await,
        ErrorCode::ContextFull
    );
}

async fn load(harness: &Harness, reference: &str) {
    let folder = FolderSource {
        reference: reference.into(),
        path: "/models".into(),
        revision: None,
        adapter: None,
    };
    harness.engine.load(folder).recv().await.unwrap();
}

#[tokio::test]
async fn a_model_is_unloaded_unless_it_answers() {
    let harness = Harness::new().await;
    load(&harness, "owl").await;
    let busy = harness.chat.models().unload_idle("owl").await.unwrap_err();
    assert_eq!(busy.code, ErrorCode::Busy);
    harness.engine.set_idle(Some(Duration::ZERO));
    harness.chat.models().unload_idle("owl").await.unwrap();
    assert!(harness.engine.loaded().is_empty());
    harness
        .chat
        .models()
        .unload_idle("owl")
        .await
        .expect("it is not there any more, which is as good");
}

#[tokio::test]
async fn idle_models_leave_memory_when_that_is_set() {
    let harness = Harness::new().await;
    load(&harness, "owl").await;
    harness.engine.set_idle(Some(Duration::from_secs(90)));
    for (minutes, left) in [(Some(2), 1), (None, 1), (Some(1), 0)] {
        let set = json!({"engine": {"unload_after": minutes}});
        harness.chat.settings().change(&values(set)).await.unwrap();
        let wanted = minutes.map(|minutes: u64| Duration::from_secs(60 * minutes));
        let told = async {
            while harness.engine.unloads_after() != wanted {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(120), told)
            .await
            .expect("the engine is told");
        assert_eq!(harness.engine.loaded().len(), left, "after {minutes:?} minutes");
    }
}

#[tokio::test]
async fn the_engine_is_told_how_many_threads_compute() {
    let harness = Harness::new().await;
    for threads in [Some(3), None, Some(1024)] {
        let set = json!({"engine": {"threads": threads}});
        harness.chat.settings().change(&values(set)).await.unwrap();
        let told = async {
            while harness.engine.threads() != threads {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(120), told)
            .await
            .expect("the engine is told");
    }
}

#[tokio::test]
async fn a_device_is_kept_and_set_before_what_follows_the_change() {
    let harness = Harness::new().await;
    for device in [ComputeDevice::Cpu, ComputeDevice::Auto] {
        let set = json!({"engine": {"device": device}});
        let changed = harness.chat.settings().change(&values(set)).await.unwrap();
        assert_eq!(harness.engine.device(), device);
        assert_eq!(changed.engine.device, device);
        let (engine, _chat) = open(&harness.path).await;
        assert_eq!(engine.device(), device, "as the next start finds it");
    }
}

#[tokio::test]
async fn a_request_follows_the_chat_its_project_and_then_the_defaults_for_its_model() {
    let harness = Harness::new().await;
    let change = values(json!({"model_defaults": {
        "pebble": {"system_prompt": "Be brief.", "sampling": {"temperature": 0.3, "top_k": 20}, "context": 2048, "kv_bits": 8,
            "draft_model": "owl"},
        "owl": {"context": 1024},
    }}));
    harness.chat.settings().change(&change).await.unwrap();

    // A chat that sets nothing.
    let chat = harness.new_chat().await;
    let (answer, job) = harness.ask(&chat, "Why?").await;
    let request = &job.request;
    assert_eq!(request.messages[0].text_with_placeholders(), "Be brief.");
    assert_eq!(
        (request.sampling.temperature, request.sampling.top_k),
        (Some(0.3), Some(20))
    );
    assert_eq!((request.context, request.kv_bits), (Some(2048), Some(KvBits::Eight)));
    let drafts = request.draft_model.as_ref().map(|model| model.reference.as_str());
    assert_eq!(drafts, Some("owl"));
    assert!(
        request.chat_defaults,
        "what nobody set follows the model's makers, then Ponder"
    );
    job.events.send(done(FinishReason::Stop));
    harness.end(&answer).await;

    // The instructions of a project go before, and what the chat sets goes before both.
    let project = harness.chat.projects().create("Thesis").await.unwrap();
    harness
        .chat
        .projects()
        .change(&project.id, "Thesis", "Cite.")
        .await
        .unwrap();
    harness
        .chat
        .projects()
        .move_chat(&chat, Some(&project.id))
        .await
        .unwrap();
    let own = ChatSettings {
        sampling: Sampling {
            temperature: Some(1.0),
            ..Sampling::default()
        },
        kv_off: true,
        ..ChatSettings::default()
    };
    harness.chat.chats().set_settings(&chat, &own).await.unwrap();
    let (answer, job) = harness.ask(&chat, "And now?").await;
    let request = &job.request;
    assert_eq!(request.messages[0].text_with_placeholders(), "Cite.");
    assert_eq!(
        (request.sampling.temperature, request.sampling.top_k),
        (Some(1.0), Some(20))
    );
    assert_eq!((request.context, request.kv_bits), (Some(2048), None));
    job.events.send(done(FinishReason::Stop));
    harness.end(&answer).await;

    // Another model has its own.
    let other = ChatSettings {
        model: Some("owl".into()),
        ..ChatSettings::default()
    };
    let chat = harness.chat.chats().create(other).await.unwrap().summary.id;
    let (_, job) = harness.ask(&chat, "Why?").await;
    assert_eq!(
        (
            job.request.context,
            job.request.kv_bits,
            job.request.sampling.temperature
        ),
        (Some(1024), None, None)
    );
}
