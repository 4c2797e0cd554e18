//! Files of earlier versions open with all that they hold.
//!
//! `fixtures/version_2.sqlite` was written by commit 31c55d0, through its `chat` room with the scripted engine of
//! `protocol::fake`: branches, an edited question, thoughts, a tool call, notices, drafts, every setting, a stopped, a
//! failed, an interrupted and a killed answer, a pinned chat and one in the trash. `fixtures/version_2.json` is what
//! the same commit's `History::export_json` said of each chat, with its tokens, and the order of the list.
//!
//! `fixtures/version_10.sqlite` and `fixtures/version_10.json` are the same of version 10, through [`History`] itself:
//! branches, a fork, an edited answer, compacted places, drafts with an image, a project with a file, one in the trash,
//! an archived chat, one in the trash, a stopped and a running answer, every setting.

use api::{AnswerState, StoredMessage};
use history::ExportedImages;
use history::History;
use serde_json::{json, Map, Value};

use crate::OWNER;

const VERSION_2: &[u8] = include_bytes!("../fixtures/version_2.sqlite");
const EXPECTED: &str = include_str!("../fixtures/version_2.json");
const VERSION_10: &[u8] = include_bytes!("../fixtures/version_10.sqlite");
const EXPECTED_10: &str = include_str!("../fixtures/version_10.json");

async fn open(bytes: &[u8]) -> (tempfile::TempDir, History) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.sqlite");
    std::fs::write(&path, bytes).unwrap();
    let history = History::open(&path).await.unwrap();
    (folder, history)
}

/// A message of version 2 in the words of today: settings are one value, the finish reason has its name, a call has an
/// id of nine letters and digits (which the caller compares), and what is new has its default.
fn message_of_today(old: &Value, sampling: &Value, continuable: bool) -> Value {
    let mut message = old.as_object().unwrap().clone();
    let mut take = |key: &str| message.remove(key).unwrap();
    let (thinking, thinking_budget, finish_reason) = (take("thinking"), take("thinking_budget"), take("stop"));
    let settings = match old["role"].as_str() {
        Some("assistant") => json!({
            "model": old["model"], "thinking": thinking, "thinking_budget": thinking_budget, "system_prompt": "", "sampling": sampling,
            "max_tokens": null, "context": null, "kv_bits": null, "stop": [], "image_detail": "normal", "carried_summary": "",
        }),
        _ => Value::Null,
    };
    let ended = old["notices"]
        .as_array()
        .unwrap()
        .iter()
        .any(|notice| notice["code"] == "thinking_ended");
    message.insert("settings".into(), settings);
    message.insert("finish_reason".into(), finish_reason);
    message.insert("thinking_ended".into(), json!(ended));
    message.insert("tool_call_id".into(), Value::Null);
    message.insert("compaction_mark".into(), Value::Null);
    message.insert("edited".into(), json!(false));
    message.insert("continuable".into(), json!(continuable));
    with_later_settings(Value::Object(message))
}

/// Settings of a chat, of which those that came later have their defaults.
fn settings_of_today(old: &Value) -> Value {
    let mut settings = old.clone();
    for later in ["max_tokens", "context", "kv_bits"] {
        settings[later] = Value::Null;
    }
    settings["stop"] = json!([]);
    settings["image_detail"] = "normal".into();
    settings["carried_summary"] = "".into();
    with_later_settings(settings)
}

/// An entry of the list of chats, of which what came later has its default.
fn chat_of_today(old: &Value, has_draft: bool) -> Value {
    let mut chat = marked(old.clone(), has_draft);
    chat["archived"] = false.into();
    chat["project"] = Value::Null;
    (chat["unread"], chat["revision"]) = (json!(false), json!(0));
    chat
}

/// An entry of the list of chats with the mark of its draft.
fn marked(mut chat: Value, has_draft: bool) -> Value {
    chat["has_draft"] = has_draft.into();
    chat
}

/// A value of an earlier version, with the defaults of the settings and the states that came later.
fn with_later_settings(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields
                .values_mut()
                .for_each(|field| *field = with_later_settings(field.take()));
            if fields.contains_key("kv_bits") {
                fields.insert("kv_off".into(), false.into());
                fields.insert("tools".into(), json!([]));
                fields.insert("collections".into(), json!([]));
                fields.insert("retrieval".into(), "automatic".into());
            }
            if fields.contains_key("files") && fields.contains_key("system_prompt") {
                fields.insert("collections".into(), json!([]));
                fields.insert("uses_notes".into(), false.into());
            }
            if fields.contains_key("siblings") {
                fields.insert("calls".into(), json!([]));
            }
            if fields.contains_key("prefix_cache") {
                fields.insert("threads".into(), Value::Null);
                fields.insert("device".into(), "auto".into());
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| *item = with_later_settings(item.take())),
        _ => {}
    }
    value
}

/// Compares and replaces the call ids, which were not unique before.
fn forget_call_ids(message: &mut Value, new: bool, seen: &mut Vec<String>) {
    for part in message["parts"].as_array_mut().unwrap() {
        if part["kind"] == "tool_call" {
            let id = part["call"]["id"].take().as_str().unwrap().to_owned();
            if new {
                assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
                assert!(!seen.contains(&id), "{id} twice");
                seen.push(id);
            }
        }
    }
}

/// Settings of a chat as they are read today: one that names no model keeps that of its first answer.
fn with_kept_model(settings: &Value, messages: &Value) -> Value {
    let mut settings = settings.clone();
    let messages = messages.as_array().unwrap().iter();
    let answers = messages.filter(|message| !message["settings"].is_null());
    let first = answers.min_by_key(|answer| (answer["created_at"].as_i64(), answer["id"].as_str()));
    if let (true, Some(first)) = (settings["model"].is_null(), first) {
        settings["model"] = first["model"].clone();
    }
    settings
}

#[tokio::test]
async fn a_file_of_version_2_opens_with_every_chat_branch_thought_draft_and_setting() {
    let (_folder, history) = open(VERSION_2).await;
    let expected: Value = serde_json::from_str(EXPECTED).unwrap();
    let order: Vec<String> = history.chats().await.unwrap().into_iter().map(|chat| chat.id).collect();
    assert_eq!(json!(order), expected["order"]);
    assert_eq!(
        json!(history.settings().await.unwrap().default_model),
        expected["default_model"]
    );
    let mut call_ids = Vec::new();
    let chats = expected["chats"].as_array().unwrap();
    assert_eq!(chats.len(), 6);
    for old in chats {
        let id = old["chat"]["id"].as_str().unwrap();
        if old["trashed"] == true {
            assert!(history.chat(id).await.is_err(), "it stays in the trash");
            history.restore_chat(id).await.unwrap();
        }
        let now = history.export_json(id, &ExportedImages::new()).await.unwrap();
        assert_eq!(
            (&now["chat"], &now["head"]),
            (&chat_of_today(&old["chat"], old["draft"] != ""), &old["head"])
        );
        let settings = settings_of_today(&old["settings"]);
        assert_eq!(now["settings"], with_kept_model(&settings, &now["messages"]));
        let draft = match old["draft"].as_str() {
            Some("") => json!([]),
            draft => json!([{"kind": "text", "text": draft}]),
        };
        assert_eq!(now["draft"], draft);
        let messages = now["messages"].as_array().unwrap();
        assert_eq!(messages.len(), old["messages"].as_array().unwrap().len());
        for (message, old_message) in messages.iter().zip(old["messages"].as_array().unwrap()) {
            // Which answers are continuable is the business of another test; here it follows the last answers' states.
            let last = old_message["id"] == old["head"] && old_message["parts"] != json!([]);
            let early = !matches!(old_message["state"].as_str(), Some("complete" | "streaming"))
                || old_message["stop"] == "length";
            let mut wanted = message_of_today(old_message, &old["settings"]["sampling"], last && early);
            let mut message = message.clone();
            forget_call_ids(&mut message, true, &mut call_ids);
            forget_call_ids(&mut wanted, false, &mut call_ids);
            assert_eq!(message, wanted);
            let id = old_message["id"].as_str().unwrap();
            assert_eq!(json!(history.tokens(id).await.unwrap()), old["tokens"][id]);
        }
    }
    assert_eq!(call_ids.len(), 1);
    let words: Map<String, Value> = expected.as_object().unwrap().clone();
    assert!(words.contains_key("chats"));

    // The killed answer is still its dead owner's; marked interrupted, it is continued where it ended.
    let running = history.running().await.unwrap();
    assert_eq!(running.len(), 1);
    assert!(history.interrupt(&running[0]).await.unwrap());
    let answer: StoredMessage = history.continue_answer(&running[0].id, OWNER).await.unwrap();
    assert_eq!(
        (answer.state, answer.text().as_str()),
        (AnswerState::Streaming, "One, two")
    );
}

#[tokio::test]
async fn a_file_of_version_10_opens_with_every_chat_project_draft_and_setting() {
    let (_folder, history) = open(VERSION_10).await;
    let expected = with_later_settings(serde_json::from_str(EXPECTED_10).unwrap());
    let summaries = history.chats().await.unwrap();
    let chats = expected["chats"].as_array().unwrap();
    assert_eq!(summaries.len(), chats.len());
    for (summary, old) in summaries.iter().zip(chats) {
        let id = &summary.id;
        let now = history.export_json(id, &ExportedImages::new()).await.unwrap();
        let (mut export, mut view) = (old["export"].clone(), old["view"].clone());
        let has_draft = view["draft"] != json!([]);
        export["chat"] = marked(export["chat"].take(), has_draft);
        view["summary"] = marked(view["summary"].take(), has_draft);
        for read in [&mut export, &mut view] {
            read["settings"] = with_kept_model(&read["settings"], &old["export"]["messages"]);
        }
        assert_eq!(now, export, "{}", summary.title);
        assert_eq!(json!(history.chat(id).await.unwrap()), view, "{}", summary.title);
        for (message, tokens) in old["tokens"].as_object().unwrap() {
            assert_eq!(json!(history.tokens(message).await.unwrap()), *tokens);
        }
        let attachments = history.attachments_of(id).await.unwrap();
        let attachments: Vec<_> = attachments.into_iter().map(|kept| kept.sha256).collect();
        assert_eq!(json!(attachments), old["attachments"]);
    }
    assert_eq!(json!(history.projects().await.unwrap()), expected["projects"]);
    let mut settings = expected["settings"].clone();
    settings["new_chats_use_last_model"] = true.into();
    settings["model_defaults"] = json!({});
    settings["embedding_model"] = Value::Null;
    settings["uses_notes"] = false.into();
    settings["server"]["collections"] = json!([]);
    assert_eq!(json!(history.settings().await.unwrap()), settings);
    let mut window = expected["window"].clone();
    window["folded_projects"] = json!([]);
    assert_eq!(json!(history.chat_window().await.unwrap()), window);
    let trash = history.trashed_chats().await.unwrap();
    let trash: Vec<_> = trash.into_iter().map(|(chat, _)| chat).collect();
    let trashed = expected["trash"].as_array().unwrap().iter().cloned();
    assert_eq!(
        json!(trash),
        json!(trashed.map(|chat| marked(chat, false)).collect::<Vec<_>>())
    );
    let query = serde_json::from_value(json!({"text": "framework"})).unwrap();
    assert_eq!(
        json!(history.search(&query).await.unwrap().hits.len()),
        expected["hits"]
    );
}

/// The project and the compaction marks of each chat, by its id.
async fn projects_and_marks(history: &History) -> Vec<(String, Option<String>, Vec<Value>)> {
    let mut found = Vec::new();
    for chat in history.chats().await.unwrap() {
        let messages = history.chat(&chat.id).await.unwrap().messages;
        let marks = messages
            .iter()
            .map(|message| json!(message.compaction_mark))
            .filter(|mark| !mark.is_null())
            .collect();
        found.push((chat.id, chat.project, marks));
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

#[tokio::test]
async fn a_repair_of_a_file_of_version_10_keeps_its_projects_and_marks() {
    let (_whole, opened) = open(VERSION_10).await;
    let wanted = projects_and_marks(&opened).await;
    assert!(wanted.iter().any(|(_, project, _)| project.is_some()));
    assert!(wanted.iter().any(|(_, _, marks)| !marks.is_empty()));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.sqlite");
    std::fs::write(&path, VERSION_10).unwrap();
    history::repair(&path, history::Remedy::Everything).await.unwrap();
    let repaired = History::open(&path).await.unwrap();
    assert_eq!(projects_and_marks(&repaired).await, wanted);
    assert_eq!(repaired.projects().await.unwrap(), opened.projects().await.unwrap());
}

#[tokio::test]
async fn an_export_of_version_10_is_imported_with_its_project_and_marks() {
    let expected: Value = serde_json::from_str(EXPECTED_10).unwrap();
    let project = expected["projects"][0].clone();
    let exports = expected["chats"].as_array().unwrap().iter().map(|chat| &chat["export"]);
    let mut marks = 0;
    // The names that version 10 wrote.
    let chats: Vec<Value> = exports
        .filter(|export| {
            export["chat"]["project"] == project["id"] || export.to_string().contains("compaction_mark\":{")
        })
        .map(|export| {
            let mut export = export.clone();
            let chat = export["chat"].as_object_mut().unwrap();
            let own = chat.remove("project").unwrap();
            chat.insert("folder".into(), own);
            for message in export["messages"].as_array_mut().unwrap() {
                let message = message.as_object_mut().unwrap();
                let mark = message.remove("compaction_mark").unwrap();
                marks += usize::from(!mark.is_null());
                message.insert("memory_cut".into(), mark);
            }
            export
        })
        .collect();
    assert!(chats.len() > 1 && marks > 0);
    let mut folder = project.clone();
    folder["files"] = json!([]);
    let file = json!({"format": "ponder-chats", "version": 1, "chats": chats, "folders": [folder]});

    let home = tempfile::tempdir().unwrap();
    let history = History::open(&home.path().join("history.sqlite")).await.unwrap();
    history
        .import(history::read_import(file.to_string().as_bytes()).unwrap())
        .await
        .unwrap();
    let came = projects_and_marks(&history).await;
    assert_eq!(came.iter().map(|(_, _, marks)| marks.len()).sum::<usize>(), marks);
    assert!(came.iter().any(|(_, own, _)| json!(own) == project["id"]));
    assert_eq!(
        history.projects().await.unwrap()[0].name,
        project["name"].as_str().unwrap()
    );
}
