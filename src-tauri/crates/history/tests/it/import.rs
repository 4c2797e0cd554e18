//! Chats out of files and into them: ours as they were, other programs' by what is publicly known of their shapes.

use api::{ChatSettings, Position};
use history::{exported_together, page, read_import, Error, ExportedImages, ImportFormat};
use protocol::{Content, ImageBytes, Role};
use serde_json::{json, Value};

use crate::{asked, new_answer, texts, words, Fresh};

fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

async fn take(fresh: &Fresh, value: &Value) -> (ImportFormat, usize) {
    let file = read_import(&bytes(value)).unwrap();
    let format = file.format;
    (format, fresh.history.import(file).await.unwrap().chats)
}

/// The roles and texts on the branch of the only chat.
async fn said(fresh: &Fresh) -> Vec<(Role, String)> {
    let id = fresh.history.chats().await.unwrap()[0].id.clone();
    let messages = fresh.history.chat(&id).await.unwrap().messages;
    messages.iter().map(|message| (message.role, message.text())).collect()
}

#[tokio::test]
async fn what_was_exported_is_imported_as_it_was() {
    let fresh = Fresh::new().await;
    let stored = ImageBytes::from(b"bytes that are only kept".to_vec());
    let kept = fresh
        .history
        .add_attachment(&stored, "image/png", (3, 4))
        .await
        .unwrap();
    let image = Content::Image {
        attachment: kept.sha256.clone(),
        media_type: "image/png".into(),
        width: 3,
        height: 4,
        alt: "a boat".into(),
    };
    let images = ExportedImages::from([(kept.sha256, ("image/png".to_owned(), stored))]);
    let mut exports = Vec::new();
    for number in 0..3 {
        let chat = fresh.chat().await;
        let turn = fresh
            .turn(&chat, &format!("question {number}\u{0} 猫"), "an answer")
            .await;
        fresh.sibling(&turn.question.id, "another answer").await;
        let mut second = fresh
            .history
            .begin_turn(
                &chat,
                &[image.clone(), words("look")],
                &Position::End,
                "",
                &new_answer(),
            )
            .await
            .unwrap();
        fresh.end(&mut second.answer, "a boat").await;
        let settings = ChatSettings {
            system_prompt: "Be brief.".into(),
            ..ChatSettings::default()
        };
        fresh.history.set_chat_settings(&chat, &settings).await.unwrap();
        fresh.history.set_draft(&chat, &asked("half")).await.unwrap();
        fresh.history.pin_chat(&chat, number == 1).await.unwrap();
        fresh.history.archive_chat(&chat, number == 2).await.unwrap();
        exports.push(fresh.history.export_json(&chat, &images).await.unwrap());
    }
    let other = Fresh::new().await;
    let together = exported_together(exports.clone());
    assert_eq!(take(&other, &together).await, (ImportFormat::Ponder, 3));
    for export in &exports {
        let id = export["chat"]["id"].as_str().unwrap();
        let mut imported = other.history.export_json(id, &images).await.unwrap();
        // Nobody has shown it here, and the steps it took are not those it took there.
        for field in ["unread", "revision"] {
            imported["chat"][field] = export["chat"][field].clone();
        }
        assert_eq!(&imported, export);
    }
    // Again changes nothing, and a copy whose messages are taken gets others.
    let again = other
        .history
        .import(read_import(&bytes(&together)).unwrap())
        .await
        .unwrap();
    assert_eq!((again.chats, again.already_here), (0, 3));
    let mut copy = exports[0].clone();
    copy["chat"]["id"] = "another".into();
    assert_eq!(take(&other, &copy).await.1, 1);
    let (first, second) = (
        other.history.chat("another").await.unwrap(),
        other
            .history
            .chat(exports[0]["chat"]["id"].as_str().unwrap())
            .await
            .unwrap(),
    );
    assert_eq!(texts(&first.messages), texts(&second.messages));
}

#[tokio::test]
async fn chatgpts_tree_is_taken_with_its_branches_and_without_what_nobody_sees() {
    // Shape: help.openai.com, "How do I export my ChatGPT history and data?": conversations.json, a list of these.
    let message = |role: &str, content: Value, at: f64| json!({"id": "m", "author": {"role": role}, "create_time": at, "content": content, "metadata": {"model_slug": "gpt-5"}});
    let text = |text: &str| json!({"content_type": "text", "parts": [text]});
    let conversation = json!([{
        "title": "Fruit\n\nnames", "create_time": 1_700_000_000.5, "update_time": 1_700_000_100.0, "conversation_id": "6b1d",
        "current_node": "d", "mapping": {
            "root": {"id": "root", "message": null, "parent": null, "children": ["sys"]},
            "sys": {"id": "sys", "message": message("system", text(""), 0.0), "parent": "root", "children": ["a"]},
            "a": {"id": "a", "message": message("user", text("Name a fruit"), 1_700_000_001.0), "parent": "sys", "children": ["b", "x"]},
            "x": {"id": "x", "message": message("assistant", text("A fig."), 1_700_000_004.0), "parent": "a", "children": []},
            "b": {"id": "b", "message": message("assistant", json!({"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "Pick one"}]}), 1_700_000_002.0), "parent": "a", "children": ["c"]},
            "c": {"id": "c", "message": message("assistant", text("A quince."), 1_700_000_003.0), "parent": "b", "children": ["d"]},
            "d": {"id": "d", "message": message("user", json!({"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}, "And this?"]}), 1_700_000_005.0), "parent": "c", "children": []},
            "loop": {"id": "loop", "message": message("user", text("never"), 1.0), "parent": "loop", "children": ["loop"]}
        }
    }]);
    let fresh = Fresh::new().await;
    assert_eq!(take(&fresh, &conversation).await, (ImportFormat::ChatGpt, 1));
    let chat = &fresh.history.chats().await.unwrap()[0];
    assert_eq!(
        (chat.title.as_str(), chat.created_at, chat.updated_at),
        ("Fruit names", 1_700_000_000_500, 1_700_000_100_000)
    );
    assert_eq!(
        said(&fresh).await,
        [
            (Role::User, "Name a fruit".to_owned()),
            (Role::Assistant, String::new()),
            (Role::Assistant, "A quince.".to_owned()),
            (Role::User, "[image]\n\nAnd this?".to_owned()),
        ]
    );
    let tree = fresh.history.tree(&chat.id).await.unwrap();
    assert_eq!(tree.len(), 5);
    assert_eq!(tree[1].model.as_deref(), Some("gpt-5"));
    assert_eq!(tree[1].siblings.len(), 2);
}

#[tokio::test]
async fn claudes_messages_are_taken_with_thoughts_and_texts_of_files() {
    // Shape: support.claude.com, "Export your Claude data": conversations.json, a list of these.
    let conversations = json!([
        {"uuid": "c1", "name": "", "created_at": "2025-03-01T10:00:00.000000Z", "updated_at": "2025-03-01T10:05:00Z", "chat_messages": [
            {"uuid": "1", "sender": "human", "text": "Read this", "content": [{"type": "text", "text": "Read this"}], "created_at": "2025-03-01T10:00:01Z",
             "attachments": [{"file_name": "a.txt", "extracted_content": "words"}], "files": [{"file_name": "b.png"}], "parent_message_uuid": "00000000-0000-4000-8000-000000000000"},
            {"uuid": "2", "sender": "assistant", "text": "Done", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "tool_use", "name": "x"}, {"type": "text", "text": "Done"}],
             "created_at": "2025-03-01T10:00:02Z", "parent_message_uuid": "1"},
            {"uuid": "3", "sender": "assistant", "text": "Old form", "created_at": "2025-03-01T10:00:03Z", "parent_message_uuid": "1"}
        ]},
        {"uuid": "empty", "name": "Nothing", "created_at": "2025-03-01T10:00:00Z", "chat_messages": []}
    ]);
    let fresh = Fresh::new().await;
    assert_eq!(take(&fresh, &conversations).await, (ImportFormat::Claude, 1));
    let said = said(&fresh).await;
    assert_eq!(
        said[0].1,
        "[file: a.txt]\n\n```\nwords\n```\n\n[file: b.png]\n\nRead this"
    );
    assert_eq!(said[1], (Role::Assistant, "Old form".to_owned()));
    let tree = fresh.history.tree("c1").await.unwrap();
    assert!(matches!(&tree[1].parts[0].content, Content::Thinking { text } if text == "hm"));
    assert_eq!(tree[1].created_at, 1_740_823_202_000);
}

#[tokio::test]
async fn a_conversation_of_lm_studio_is_taken_with_its_versions() {
    // Shape: files in ~/.lmstudio/conversations, as LM Studio 0.3 writes them.
    let answer = |text: &str| {
        json!({"type": "multiStep", "role": "assistant", "senderInfo": {"senderName": "qwen/qwen3-4b"}, "steps": [
            {"type": "contentBlock", "style": {"type": "thinking", "ended": true, "title": "Thought"}, "content": [{"type": "text", "text": "hm"}]},
            {"type": "contentBlock", "content": [{"type": "text", "text": text, "fromDraftModel": false}]},
            {"type": "debugInfoBlock", "debugInfo": "x"}
        ]})
    };
    let question = json!({"type": "singleStep", "role": "user", "content": [{"type": "text", "text": "Hello"}]});
    let conversation = json!({
        "name": "Greeting", "pinned": true, "createdAt": 1_740_000_000_000_i64, "systemPrompt": "Be kind.", "lastUsedModel": {"identifier": "qwen/qwen3-4b"},
        "messages": [{"versions": [question], "currentlySelected": 0}, {"versions": [answer("First"), answer("Second")], "currentlySelected": 1}]
    });
    let fresh = Fresh::new().await;
    assert_eq!(take(&fresh, &conversation).await, (ImportFormat::LmStudio, 1));
    assert_eq!(
        said(&fresh).await,
        [(Role::User, "Hello".to_owned()), (Role::Assistant, "Second".to_owned())]
    );
    let chat = fresh.history.chats().await.unwrap()[0].clone();
    let view = fresh.history.chat(&chat.id).await.unwrap();
    assert!(chat.pinned && view.settings.system_prompt == "Be kind.");
    assert_eq!(
        (view.messages[1].siblings.len(), view.messages[1].model.as_deref()),
        (2, Some("qwen/qwen3-4b"))
    );
}

/// A chat of Claude with a question and an answer, and these other fields.
fn claude(name: &str, fields: &Value) -> Value {
    let mut chat = json!({"uuid": name, "name": name, "chat_messages": [
        {"uuid": "1", "sender": "human", "text": "Hello"}, {"uuid": "2", "sender": "assistant", "text": "Good day"}]});
    let fields = fields.as_object().unwrap().clone();
    chat.as_object_mut().unwrap().extend(fields);
    chat
}

#[tokio::test]
async fn a_chat_without_dates_has_the_time_of_its_import_and_keeps_its_order() {
    let node = |id: &str, parent: Option<&str>, role: &str| {
        let message =
            json!({"author": {"role": role}, "create_time": 0, "content": {"content_type": "text", "parts": [id]}});
        json!({"id": id, "message": message, "parent": parent, "children": []})
    };
    let chatgpt = json!([{"title": "Fruit", "current_node": "b",
        "mapping": {"b": node("b", Some("a"), "assistant"), "a": node("a", None, "user")}}]);
    let said = |role: &str, text: &str| {
        let version = json!({"role": role, "content": [{"type": "text", "text": text}]});
        json!({"versions": [version], "currentlySelected": 0})
    };
    let lm_studio = json!({"name": "Greeting", "messages": [said("user", "Hello"), said("assistant", "Good day")]});
    let none = json!({});
    let many = Value::from_iter(["One", "Two", "Three"].map(|name| {
        let mut chat = claude(name, &none);
        chat.as_object_mut().unwrap().remove("uuid");
        chat
    }));
    for (file, titles) in [
        (chatgpt, vec!["Fruit"]),
        (lm_studio, vec!["Greeting"]),
        // Chats of one time are listed by their ids, the highest first; an id of ours is higher than those before it.
        (
            json!([claude("a", &none), claude("c", &none), claude("b", &none)]),
            vec!["c", "b", "a"],
        ),
        (many, vec!["Three", "Two", "One"]),
    ] {
        let fresh = Fresh::new().await;
        let before = history::now();
        take(&fresh, &file).await;
        let import = before..=history::now();
        let chats = fresh.history.chats().await.unwrap();
        let listed: Vec<&str> = chats.iter().map(|chat| chat.title.as_str()).collect();
        assert_eq!(listed, titles);
        for chat in &chats {
            assert!(import.contains(&chat.created_at), "{titles:?}: {}", chat.created_at);
            assert_eq!(chat.updated_at, chat.created_at, "{titles:?}");
            let messages = fresh.history.chat(&chat.id).await.unwrap().messages;
            let times: Vec<i64> = messages.iter().map(|message| message.created_at).collect();
            assert_eq!(times, [chat.created_at, chat.created_at + 1], "{titles:?}");
        }
    }
}

#[tokio::test]
async fn a_chat_with_some_dates_has_no_others() {
    let (first, last) = ("2025-03-01T10:00:00Z", "2025-03-01T11:00:00Z");
    let (at_first, at_last) = (1_740_823_200_000_i64, 1_740_826_800_000_i64);
    let dated = json!([
        {"sender": "human", "text": "Hello", "created_at": first},
        {"sender": "assistant", "text": "Good day", "created_at": last}
    ]);
    for (fields, times, said) in [
        (json!({"created_at": first}), (at_first, at_first), [at_first, at_first]),
        (json!({"updated_at": last}), (at_last, at_last), [at_last, at_last]),
        (
            json!({"created_at": first, "updated_at": last}),
            (at_first, at_last),
            [at_first, at_first],
        ),
        (
            json!({"chat_messages": dated}),
            (at_first, at_last),
            [at_first, at_last],
        ),
        (json!({"created_at": "1970-01-01T00:00:00Z"}), (0, 0), [0, 0]),
    ] {
        let fresh = Fresh::new().await;
        take(&fresh, &json!([claude("a", &fields)])).await;
        let chat = fresh.history.chat("a").await.unwrap();
        assert_eq!((chat.summary.created_at, chat.summary.updated_at), times, "{fields}");
        let messages: Vec<i64> = chat.messages.iter().map(|message| message.created_at).collect();
        assert_eq!(messages, said, "{fields}");
    }
}

#[tokio::test]
async fn a_thousand_chats_are_taken_at_once() {
    let chat = |number: usize| {
        json!({"uuid": format!("chat-{number}"), "name": format!("Chat {number}"), "created_at": "2025-03-01T10:00:00Z", "chat_messages": [
            {"uuid": "1", "sender": "human", "text": "Hello"}, {"uuid": "2", "sender": "assistant", "text": "Good day"}]})
    };
    let fresh = Fresh::new().await;
    let all = Value::from_iter((0..1000).map(chat));
    assert_eq!(take(&fresh, &all).await, (ImportFormat::Claude, 1000));
    assert_eq!(fresh.history.chats().await.unwrap().len(), 1000);
    assert_eq!(take(&fresh, &all).await.1, 0);
}

#[tokio::test]
async fn hostile_files_are_refused_with_a_sentence_or_tamed() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)).into_bytes();
    let newer = json!({"format": "ponder-chat", "version": 99, "chat": {"id": "a", "title": "", "created_at": 0, "updated_at": 0, "pinned": false, "running": false}, "head": null, "messages": []});
    let files: [Vec<u8>; 13] = [
        b"".to_vec(),
        b"PK\x03\x04 a zip".to_vec(),
        b"\xff\xfe\x00".to_vec(),
        deep,
        b"\xef\xbb\xbf \n".to_vec(),
        vec![0; 5000],
        b"null".to_vec(),
        b"[]".to_vec(),
        b"{\"a\": 1}".to_vec(),
        b"[{\"mapping\": []}, {\"mapping\": {\"a\": 7}}]".to_vec(),
        b"{\"format\": \"ponder-chat\", \"version\": 1}".to_vec(),
        b"{\"format\": \"else\"}".to_vec(),
        bytes(&newer),
    ];
    for file in files {
        let error = read_import(&file).unwrap_err();
        assert!(
            matches!(error, Error::Import(_)) && error.to_string().ends_with("Nothing was changed"),
            "{error}"
        );
    }
    // Times beyond belief, two messages of one id, a parent that comes later, an id of SQL.
    let fresh = Fresh::new().await;
    let odd = json!([{"uuid": "'; DROP TABLE chats; --", "name": "x".repeat(100_000), "created_at": "+9999-01-01T00:00:00Z", "chat_messages": [
        {"uuid": "1", "sender": "human", "text": "a\u{0}b", "created_at": 1e300, "parent_message_uuid": "2"},
        {"uuid": "1", "sender": "assistant", "text": "c", "created_at": -1e300, "parent_message_uuid": "1"},
        {"uuid": 5, "sender": "human", "text": ["no text"]}
    ]}]);
    assert_eq!(take(&fresh, &odd).await.1, 1);
    let chat = fresh.history.chats().await.unwrap()[0].clone();
    assert_eq!(chat.title.len(), 300);
    assert_eq!(fresh.history.chat(&chat.id).await.unwrap().messages.len(), 2);
}

#[tokio::test]
async fn a_page_holds_everything_and_runs_nothing() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let evil = "</section><script>alert(1)</script><img src=x onerror=alert(1)> \"'&\n```html\n<b>code</b>\n```\nend";
    fresh.turn(&chat, evil, evil).await;
    fresh.history.rename_chat(&chat, "<title>").await.unwrap();
    let article = fresh.history.export_html(&chat, &ExportedImages::new()).await.unwrap();
    let page = page(&[("<title>".into(), article.clone()), ("b".into(), article)]);
    assert!(
        !page.contains("<script")
            && !page.contains("<img")
            && !page.contains("<b>")
            && page.contains("default-src 'none'")
    );
    assert!(page.contains("<pre><code>&lt;b&gt;code&lt;/b&gt;\n</code></pre>") && page.contains("href=\"#chat-1\""));
}
