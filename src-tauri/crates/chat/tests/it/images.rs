//! Images in a turn: kept, read for the engine, refused where nobody sees.

use api::{AnswerState, ChatSettings, Position};
use protocol::{fake::FakeJob, Argument, Content, ErrorCode, FinishReason, ImageDetail};

use crate::{done, text, Harness};

/// A PNG of one pixel, with a place and a camera in its words.
pub fn png() -> Vec<u8> {
    let chunk = |kind: &[u8; 4], data: &[u8]| {
        let mut crc = 0xffff_ffff_u32;
        for byte in kind.iter().chain(data) {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 {
                    (crc >> 1) ^ 0xedb8_8320
                } else {
                    crc >> 1
                };
            }
        }
        [
            &(data.len() as u32).to_be_bytes()[..],
            kind,
            data,
            &(!crc).to_be_bytes(),
        ]
        .concat()
    };
    let header = [&1_u32.to_be_bytes()[..], &1_u32.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    // A stored block of one row: no filter, one red pixel.
    let pixels = [0x78, 0x01, 0x01, 4, 0, 0xfb, 0xff, 0, 255, 0, 0, 0x03, 0x01, 0x01, 0x00];
    [
        &b"\x89PNG\r\n\x1a\n"[..],
        &chunk(b"IHDR", &header),
        &chunk(b"tEXt", b"Comment\0taken at 52.5 N by a Camera 9"),
        &chunk(b"IDAT", &pixels),
        &chunk(b"IEND", b""),
    ]
    .concat()
}

fn attachment(content: &Content) -> &str {
    match content {
        Content::Image { attachment, .. } => attachment,
        other => panic!("no image: {other:?}"),
    }
}

impl Harness {
    async fn send(&self, chat: &str, content: &[Content]) -> (String, FakeJob) {
        let turn = self.chat.answers().send(chat, content, &Position::End).await.unwrap();
        (turn.answer.id, self.job().await)
    }
}

#[tokio::test]
async fn an_image_goes_to_the_engine_with_its_bytes_in_every_turn() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let settings = ChatSettings {
        image_detail: ImageDetail::Full,
        ..ChatSettings::default()
    };
    harness.chat.chats().set_settings(&chat, &settings).await.unwrap();
    let image = harness.chat.files().add_image_part(png(), " cat.png ").await.unwrap();
    let Content::Image {
        media_type,
        width,
        height,
        alt,
        ..
    } = &image
    else {
        panic!("{image:?}")
    };
    assert_eq!(
        (media_type.as_str(), *width, *height, alt.as_str()),
        ("image/png", 1, 1, "cat.png")
    );
    let (message, job) = harness
        .send(&chat, &[image.clone(), Content::text("What is it?")])
        .await;
    assert_eq!(job.request.images[attachment(&image)].to_vec(), png());
    assert_eq!(job.request.image_detail, ImageDetail::Full);
    job.events.send(text("A pixel.", 1));
    job.events.send(done(FinishReason::Stop));
    assert_eq!(harness.end(&message).await.state, AnswerState::Complete);
    let (_, job) = harness.ask(&chat, "And its colour?").await;
    assert_eq!(job.request.images.len(), 1);
    assert_eq!(
        harness.chat.files().image(attachment(&image)).await.unwrap().to_vec(),
        png()
    );
}

#[tokio::test]
async fn what_is_no_image_is_refused_and_nothing_is_kept() {
    let harness = Harness::new().await;
    for bytes in [b"".to_vec(), b"hello".to_vec(), png()[..20].to_vec()] {
        let error = harness.chat.files().add_image_part(bytes, "a.png").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::ImageBroken, "{error}");
    }
    assert_eq!(harness.chat.files().attachments_size().await.unwrap(), 0);
}

#[tokio::test]
async fn a_model_that_does_not_see_refuses_before_anything_is_stored_and_others_are_named() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    harness.engine.make_blind("pebble");
    let image = harness.chat.files().add_image_part(png(), "cat.png").await.unwrap();
    let error = harness
        .chat
        .answers()
        .send(&chat, std::slice::from_ref(&image), &Position::End)
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::ImageNotSeen);
    assert_eq!(
        error.arguments.get("models"),
        Some(&Argument::Text("owl\nhawk".into())),
        "{error}"
    );
    assert!(
        error.message.contains("owl, hawk") && !error.message.contains("mole"),
        "{error}"
    );
    assert!(harness.stored(&chat).await.is_empty());
    assert!(harness.engine.take_job().is_none());
}

#[tokio::test]
async fn a_vision_part_that_cannot_be_read_is_the_reason_of_the_refusal() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    harness.engine.break_vision("pebble", "config.json lacks `depth`");
    let image = harness.chat.files().add_image_part(png(), "cat.png").await.unwrap();
    let error = harness
        .chat
        .answers()
        .send(&chat, &[image], &Position::End)
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::ImageNotSeen);
    let because = "cannot see images, because its vision part cannot be read (config.json lacks `depth`); choose a model that sees";
    assert!(error.message.contains(because), "{error}");
}

#[tokio::test]
async fn an_old_image_is_left_out_under_a_model_that_does_not_see_and_is_seen_again() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let image = harness.chat.files().add_image_part(png(), "cat.png").await.unwrap();
    let (message, job) = harness.send(&chat, &[image.clone(), Content::text("What?")]).await;
    job.events.send(text("A pixel.", 1));
    job.events.send(done(FinishReason::Stop));
    harness.end(&message).await;
    for (model, seen) in [("mole", 0), ("owl", 1)] {
        harness.engine.make_blind("mole");
        let settings = ChatSettings {
            model: Some(model.into()),
            ..ChatSettings::default()
        };
        harness.chat.chats().set_settings(&chat, &settings).await.unwrap();
        let (message, job) = harness.ask(&chat, "And now?").await;
        assert_eq!(job.request.images.len(), seen, "{model}");
        // Without its bytes the engine tells its name and says so once.
        let mut request = job.request.clone();
        assert_eq!(request.leave_out_unseen(seen == 1).len(), 1 - seen);
        assert_eq!(request.messages[0].text_with_placeholders(), "[image: cat.png]What?");
        job.events.send(text("Yes.", 1));
        job.events.send(done(FinishReason::Stop));
        harness.end(&message).await;
    }
}

#[tokio::test]
async fn images_of_the_draft_are_looked_at_ahead() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let image = harness.chat.files().add_image_part(png(), "cat.png").await.unwrap();
    harness
        .chat
        .chats()
        .set_draft(&chat, std::slice::from_ref(&image))
        .await
        .unwrap();
    let mut prefetched = Vec::new();
    while prefetched.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        prefetched = harness.engine.take_prefetched();
    }
    assert!(prefetched[0].images.contains_key(attachment(&image)));
    // Words beside it change nothing.
    harness
        .chat
        .chats()
        .set_draft(&chat, &[image, Content::text("What")])
        .await
        .unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert!(harness.engine.take_prefetched().is_empty());
}

#[tokio::test]
async fn an_export_holds_images_without_what_their_files_tell() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let image = harness.chat.files().add_image_part(png(), "cat.png").await.unwrap();
    harness.send(&chat, &[image.clone(), Content::text("What?")]).await;
    let json = harness.chat.library().export_json(&chat).await.unwrap();
    let exported = json["attachments"][attachment(&image)]["base64"].as_str().unwrap();
    let exported = protocol::ImageBytes::from_base64(exported).unwrap();
    assert!(png().windows(6).any(|words| words == b"Camera") && !exported.windows(6).any(|words| words == b"Camera"));
    assert_eq!(media::measure(&exported).unwrap().width, 1);
    let markdown = harness.chat.library().export_markdown(&chat).await.unwrap();
    assert!(markdown.contains("![cat.png](data:image/png;base64,"), "{markdown}");
}

#[tokio::test]
async fn an_import_measures_images_and_leaves_out_what_cannot_be_shown() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let image = harness.chat.files().add_image_part(png(), "cat.png").await.unwrap();
    harness.send(&chat, &[image.clone(), Content::text("What?")]).await;
    let mut json = harness.chat.library().export_json(&chat).await.unwrap();
    // The file says of its image what is not so, and has two more: a broken one, and a drawing of 10^9 shapes.
    json["chat"]["id"] = "other".into();
    let parts = json["messages"][0]["parts"].as_array_mut().unwrap();
    let (mut broken, mut endless) = (parts[0].clone(), parts[0].clone());
    parts[0]["width"] = 9000.into();
    parts[0]["media_type"] = "image/svg+xml".into();
    broken["attachment"] = "broken".into();
    endless["attachment"] = "endless".into();
    parts.extend([broken, endless]);
    let uses = |level: usize| format!("<use href=' #g{level}'/>").repeat(10);
    let levels: String = (1..9)
        .map(|level| format!("<g id='g{level}'>{}</g>", uses(level - 1)))
        .collect();
    let drawing = format!("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><rect id='g0'/>{levels}</svg>");
    for (name, bytes) in [
        ("broken", b"\x89PNG\r\n\x1a\n".to_vec()),
        ("endless", drawing.into_bytes()),
    ] {
        let base64 = serde_json::to_value(protocol::ImageBytes::from(bytes)).unwrap();
        json["attachments"][name] = serde_json::json!({"media_type": "image/png", "base64": base64});
    }
    let library = harness.chat.library();
    let report = library.import(json.to_string().into_bytes()).await.unwrap();
    assert_eq!((report.chats, report.dropped_images), (1, 2));
    let imported = library.export_json("other").await.unwrap();
    let parts = imported["messages"][0]["parts"].as_array().unwrap();
    let of = |part: &serde_json::Value, key: &str| part[key].clone();
    assert_eq!(
        (of(&parts[0], "width"), of(&parts[0], "media_type")),
        (1.into(), "image/png".into())
    );
    let shown: Vec<_> = parts.iter().filter(|part| part.get("attachment").is_some()).collect();
    assert_eq!(
        (shown.len(), imported["attachments"].as_object().unwrap().len()),
        (1, 1),
        "{parts:?}"
    );
    let said = |part: &serde_json::Value| {
        part["text"]
            .as_str()
            .is_some_and(|text| text.contains("[image: cat.png]"))
    };
    assert!(parts.iter().any(said), "{parts:?}");
    // Again, nothing is left out, because nothing is taken.
    let again = library.import(json.to_string().into_bytes()).await.unwrap();
    assert_eq!((again.already_here, again.dropped_images), (1, 0));
}
