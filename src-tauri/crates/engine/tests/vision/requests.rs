//! From a request with images to its answer, on a tiny random model that sees.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::common::oracle::{python, seed};
use crate::common::vision::{image, Written};
use crate::common::{hear, measured, source, Heard, Plenty};
use crate::samples::{apart, question, request, said, without_its_looks, without_vision_weights};
use checkpoint::{ImagePlan, ImageProcessor};
use engine::{EngineOptions, ImageViews, MlxEngine, PromptImage};
use prompt::{ChatProcessor, RenderRequest};
use protocol::{
    Engine, ErrorCode, FolderSource, ImageBytes, ImageDetail, LocalEngine, MemoryGuard, Message, ModelSource,
    NoticeCode, Request, Role, Sampling, Thinking,
};

/// Rows of other positions, masks and towers.
const ROWS: [&str; 8] = [
    "gemma3n",
    "gemma4",
    "gemma4-26b",
    "hunyuan_vl",
    "llava_next",
    "minicpmv4_6",
    "mllama",
    "qwen3_vl",
];

/// Types whose prompts have all images before the text, or see all of themselves, so a new message or image changes what
/// was read.
const READ_ANEW: [&str; 2] = ["molmo", "paligemma"];

/// The first token of an answer, by hand: the prompt and the images' numbers made here, and one look at the logits.
fn first_token(engine: &MlxEngine, model: &Path, messages: &[Message], images: &[&ImageBytes]) -> u32 {
    let config = serde_json::from_str(&std::fs::read_to_string(model.join("config.json")).unwrap()).unwrap();
    let processor = ImageProcessor::read(model, &config).unwrap().unwrap();
    let decoded: Vec<_> = images.iter().map(|bytes| media::decode(bytes).unwrap()).collect();
    let plan = |image: &media::DecodedImage| processor.plan(image.width, image.height, ImageDetail::Normal).unwrap();
    let plans: Vec<ImagePlan> = decoded.iter().map(plan).collect();
    let chat = ChatProcessor::open(model).unwrap();
    let prompt = chat
        .prompt(&RenderRequest {
            messages,
            tools: &[],
            thinking: Some(Thinking::Off),
            add_generation_prompt: true,
            images: &plans,
        })
        .unwrap();
    let images = prompt.images.iter().zip(decoded.iter().zip(&plans)).zip(images);
    let images = images.map(|((span, (image, plan)), bytes)| PromptImage {
        run: span.range.clone(),
        places: span.features.iter().cloned().flatten().collect(),
        plan: plan.clone(),
        less_detail: Vec::new(),
        views: ImageViews::Ready(Arc::new(media::preprocess(image, &processor, plan).unwrap())),
        hash: bytes.id().as_bytes()[..32].try_into().unwrap(),
    });
    let logits = engine
        .image_logits(
            source(model),
            (prompt.ids.clone(), images.collect(), prompt.ids.len()),
            false,
            None,
            None,
        )
        .unwrap();
    let best = (0..logits[0].len()).max_by(|a, b| logits[0][*a].total_cmp(&logits[0][*b]));
    best.unwrap() as u32
}

#[tokio::test]
async fn a_question_about_an_image_is_answered_by_what_is_in_it() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &ROWS);
    let (one, other, wide) = (image(96, 96, 40), image(96, 96, 90), image(200, 60, 70));
    for row in &written.rows {
        let (engine, model) = (MlxEngine::start(), written.model(&row.name));
        assert!(
            engine.capabilities(&ModelSource::Folder(source(&model))).images,
            "{}",
            row.name
        );
        let ask = |images: Vec<&ImageBytes>| {
            hear(engine.generate(request(&model, vec![question("what?", &images)], &images)))
        };
        let (first, second) = (ask(vec![&one]).await, ask(vec![&other]).await);
        assert!(engine.loaded()[0].supports_vision);
        let cached = |heard: &Heard| heard.done().usage.as_ref().unwrap().cached_tokens;
        // Two images of one size have equal tokens, and share nothing from the image on.
        assert!(
            cached(&first) == 0 && cached(&second) < 16,
            "{}: {:?}",
            row.name,
            second.done()
        );
        assert!(
            apart(&said(&first).1, &said(&second).1) > 1e-3,
            "{}: the image is not seen",
            row.name
        );
        for images in [vec![&one], vec![&one, &wide], vec![&wide, &one, &other]] {
            let messages = [question("what?", &images)];
            let heard = ask(images.clone()).await;
            assert_eq!(
                said(&heard).0[0],
                first_token(&engine, &model, &messages, &images),
                "{}",
                row.name
            );
        }
        assert_eq!(engine.inspect().unwrap().unevaluated, 0);
    }
}

#[tokio::test]
async fn a_chat_with_images_reads_only_what_is_new_and_looks_once_at_each() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &measured::or_all(&ROWS));
    let images = [image(96, 96, 40), image(150, 60, 90)];
    for row in written.rows.iter().filter(|row| !row.packed) {
        // Some models are shown one image at most.
        let several = row.cases.iter().any(|case| case.case == "two");
        let (engine, model) = (MlxEngine::start(), written.model(&row.name));
        let (mut messages, mut known) = (Vec::new(), 0);
        for turn in 0..6 {
            let shown: Vec<&ImageBytes> = match turn {
                0 => vec![&images[0]],
                3 if several => vec![&images[1]],
                _ => Vec::new(),
            };
            messages.push(question("and what is there to be said of it now?", &shown));
            let all: Vec<&ImageBytes> = images.iter().collect();
            let ask = |messages: &[Message]| request(&model, messages.to_vec(), &all);
            let heard = hear(engine.generate(ask(&messages))).await;
            let usage = heard.done().usage.unwrap();
            // Of the prompt before, all but the token that is read with the first of the answer.
            assert!(
                usage.cached_tokens + 1 >= known || READ_ANEW.contains(&row.model_type.as_str()),
                "{}, turn {turn}: {usage:?}, {known}",
                row.name
            );
            known = usage.prompt_tokens;
            let fresh = MlxEngine::start();
            let cold = hear(fresh.generate(ask(&messages))).await;
            assert_eq!(said(&heard).0, said(&cold).0, "{}, turn {turn}", row.name);
            assert!(
                apart(&said(&heard).1, &said(&cold).1) < 2e-3,
                "{}, turn {turn}",
                row.name
            );
            messages.push(Message::text(Role::Assistant, &heard.text));
        }
        let looks = if several { 2 } else { 1 };
        assert_eq!(engine.inspect().unwrap().encoded_images, looks, "{}", row.name);
        measured::keep("turns", &row.model_type, 0.0);
    }
}

#[tokio::test]
async fn a_chat_goes_to_a_model_for_text_alone_and_back() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &ROWS);
    let one = image(96, 96, 40);
    for row in &written.rows {
        let engine = MlxEngine::with_options(EngineOptions {
            memory_guard: Some(Arc::new(Plenty)),
            ..EngineOptions::default()
        });
        let (model, model_for_text) = (written.model(&row.name), written.model("gemma4"));
        let mut messages = vec![question("what is to be seen here?", &[&one])];
        let ask = |messages: &[Message]| request(&model, messages.to_vec(), &[&one]);
        let first = hear(engine.generate(ask(&messages))).await;
        let known = first.done().usage.unwrap().prompt_tokens;
        messages.push(Message::text(Role::Assistant, &first.text));
        messages.push(question("and what else?", &[]));

        let text_alone = without_vision_weights(&model_for_text);
        let mut without_vision = ask(&messages);
        without_vision.model = source(text_alone.path()).into();
        let told = hear(engine.generate(without_vision)).await;
        assert_eq!(
            told.notices.iter().map(|notice| notice.code).collect::<Vec<_>>(),
            [NoticeCode::ImageLeftOut],
            "{}",
            row.name
        );
        messages.push(Message::text(Role::Assistant, &told.text));
        messages.push(question("and now?", &[]));

        let back = hear(engine.generate(ask(&messages))).await;
        let usage = back.done().usage.unwrap();
        assert!(usage.cached_tokens + 1 >= known, "{}: {usage:?}, {known}", row.name);
        let encoded_images = || engine.inspect().unwrap().encoded_images;
        assert!(
            back.notices.is_empty() && encoded_images() == 1,
            "{}: {:?}",
            row.name,
            back.notices
        );
        // It sees the image, as one does that has never seen it.
        let cold = hear(MlxEngine::start().generate(ask(&messages))).await;
        assert_eq!(said(&back).0, said(&cold).0, "{}", row.name);
        assert!(apart(&said(&back).1, &said(&cold).1) < 2e-3, "{}", row.name);
        // Loaded anew it has forgotten, and looks once more.
        engine.unload_all().await.unwrap();
        let anew = hear(engine.generate(ask(&messages))).await;
        assert_eq!((said(&anew).0, encoded_images()), (said(&cold).0, 1), "{}", row.name);
    }
}

#[tokio::test]
async fn requests_with_different_images_are_answered_together_as_each_alone() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &ROWS);
    let images = [image(96, 96, 40), image(150, 60, 90), image(64, 128, 120)];
    for row in &written.rows {
        let (engine, model) = (MlxEngine::start(), written.model(&row.name));
        let ask = |count: usize| {
            let shown: Vec<&ImageBytes> = images.iter().take(count).collect();
            let words = format!("what is to be seen in {count}?");
            Request {
                max_tokens: Some(12),
                ..request(&model, vec![question(&words, &shown)], &shown)
            }
        };
        let mut alone = Vec::new();
        for count in 0..=3 {
            alone.push(said(&hear(engine.generate(ask(count))).await));
        }
        engine.unload_all().await.unwrap();
        let together = futures::future::join_all((0..=3).map(|count| hear(engine.generate(ask(count))))).await;
        for (count, (alone, heard)) in alone.iter().zip(&together).enumerate() {
            let together = said(heard);
            assert_eq!(alone.0, together.0, "{}, {count} images", row.name);
            assert!(apart(&alone.1, &together.1) < 2e-3, "{}, {count} images", row.name);
        }
    }
}

/// A prompt whose tokens all see each other is read with its last token, and nothing of it is that of a longer one.
#[tokio::test]
async fn a_prompt_that_sees_itself_is_read_as_a_whole() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &["paligemma", "paligemma-2"]);
    let (one, other) = (image(96, 96, 40), image(150, 60, 90));
    for row in &written.rows {
        let (engine, model) = (MlxEngine::start(), written.model(&row.name));
        let ask = |messages: &[Message], images: &[&ImageBytes]| {
            hear(engine.generate(request(&model, messages.to_vec(), images)))
        };
        for images in [vec![], vec![&one], vec![&one, &other]] {
            let mut messages = vec![question("what is to be seen here, in a word or two?", &images)];
            let heard = ask(&messages, &images).await;
            let first = first_token(&engine, &model, &messages, &images);
            assert_eq!(said(&heard).0[0], first, "{}", row.name);
            messages.push(Message::text(Role::Assistant, &heard.text));
            messages.push(question("and now?", &[]));
            let later = ask(&messages, &images).await;
            let first = first_token(&engine, &model, &messages, &images);
            assert_eq!(said(&later).0[0], first, "{}", row.name);
            assert_eq!(later.done().usage.unwrap().cached_tokens, 0);
        }
        let two = [question("which?", &[&one]), question("what?", &[])];
        let alone = [ask(&two[..1], &[&one]).await, ask(&two[1..], &[]).await];
        let together = futures::future::join(ask(&two[..1], &[&one]), ask(&two[1..], &[])).await;
        for (alone, together) in alone.iter().zip([together.0, together.1]) {
            assert_eq!(said(alone).0, said(&together).0, "{}", row.name);
            assert!(apart(&said(alone).1, &said(&together).1) < 2e-3, "{}", row.name);
        }
    }
}

#[tokio::test]
async fn a_model_for_one_image_goes_on_after_it_and_refuses_a_second() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &["falcon_ocr"]);
    let (engine, model) = (MlxEngine::start(), written.model("falcon_ocr"));
    let (one, other) = (image(96, 80, 40), image(96, 80, 90));
    let ask = |messages: &[Message], images: &[&ImageBytes]| {
        hear(engine.generate(request(&model, messages.to_vec(), images)))
    };
    let first = [question("what?", &[&one])];
    let heard = ask(&first, &[&one]).await;
    assert_eq!(said(&heard).0[0], first_token(&engine, &model, &first, &[&one]));
    let moved = ask(&[question("what?", &[&other])], &[&other]).await;
    assert!(apart(&said(&heard).1, &said(&moved).1) > 1e-3, "the image is not seen");
    // The text after it is placed right if the image was read before it or with it.
    let [question_of_one] = first;
    let later = [
        question_of_one,
        Message::text(Role::Assistant, &heard.text),
        question("and then?", &[]),
    ];
    let (warm, fresh) = (ask(&later, &[&one]).await, MlxEngine::start());
    let cold = hear(fresh.generate(request(&model, later.to_vec(), &[&one]))).await;
    assert!(warm.done().usage.unwrap().cached_tokens > 30);
    assert_eq!(said(&warm).0, said(&cold).0);
    assert!(apart(&said(&warm).1, &said(&cold).1) < 2e-3);
    let both = ask(&[question("which?", &[&one, &other])], &[&one, &other]).await;
    assert_eq!(both.error().code, ErrorCode::BadRequest);
}

#[tokio::test]
async fn an_answer_goes_on_between_the_layers_of_a_tower() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &ROWS);
    for row in &written.rows {
        // Llama 3.2 Vision reads tokens that it does not write.
        let vocabulary = if row.name == "mllama" { 312 } else { 320 };
        let (engine, model) = (MlxEngine::start(), written.model(&row.name));
        let shown = image(150, 60, 90);
        let look = || request(&model, vec![question("what?", &[&shown])], &[&shown]);
        let alone = hear(MlxEngine::start().generate(look())).await;
        let talk = Request {
            // Words alone, and none of them again and again.
            sampling: Sampling {
                temperature: Some(1.0),
                seed: Some(7),
                logit_bias: (300..vocabulary).map(|token| (token, -100.0)).collect(),
                ..Sampling::default()
            },
            max_tokens: Some(3000),
            ..request(&model, vec![question("and so on?", &[])], &[])
        };
        hear(engine.generate(request(&model, vec![question("so?", &[])], &[])))
            .await
            .done();
        engine.set_gaps(std::time::Duration::ZERO).unwrap();
        let talking = engine.generate(talk);
        let looked = hear(engine.generate(look())).await;
        let inspected = engine.inspect().unwrap();
        assert_eq!(inspected.encoded_images, 1, "{}", row.name);
        assert!(inspected.steps_between_layers > 0, "{}: {inspected:?}", row.name);
        assert_eq!(said(&looked).0, said(&alone).0, "{}", row.name);
        assert!(apart(&said(&looked).1, &said(&alone).1) < 2e-3, "{}", row.name);
        talking.cancel.cancel();
        hear(talking).await.done();
    }
}

#[tokio::test]
async fn images_are_looked_at_while_somebody_types() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &["gemma4"]);
    let (engine, model) = (MlxEngine::start(), written.model("gemma4"));
    let (shown, attached) = (image(96, 96, 40), image(96, 96, 90));
    let both = [&shown, &attached];
    let first = question("what?", &[&shown]);
    let heard = hear(engine.generate(request(&model, vec![first.clone()], &both))).await;
    let chat = vec![first, Message::text(Role::Assistant, &heard.text)];
    engine.prefetch(request(&model, chat.clone(), &both));
    engine.prefetched().await;
    assert_eq!(engine.inspect().unwrap().encoded_images, 2);
    let next = [chat, vec![question("and this?", &[&attached])]].concat();
    hear(engine.generate(request(&model, next, &both))).await.done();
    assert_eq!(engine.inspect().unwrap().encoded_images, 2);
}

#[tokio::test]
async fn what_cannot_be_seen_is_told_by_name_or_refused() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &["gemma4"]);
    let (engine, model) = (MlxEngine::start(), written.model("gemma4"));
    let broken: ImageBytes = b"GIF89a and then nothing".to_vec().into();
    let heard = hear(engine.generate(request(&model, vec![question("what?", &[&broken])], &[&broken]))).await;
    assert_eq!(heard.error().code, ErrorCode::ImageBroken);
    // A model for text alone is told the image's name, and a seeing one too if the file is gone.
    let gone = hear(engine.generate(request(&model, vec![question("what?", &[&broken])], &[]))).await;
    let whole = image(96, 96, 40);
    let mut without_vision = request(&model, vec![question("what?", &[&whole])], &[&whole]);
    let text_alone = without_vision_weights(&model);
    without_vision.model = source(text_alone.path()).into();
    for heard in [gone, hear(engine.generate(without_vision)).await] {
        heard.done();
        assert_eq!(
            heard.notices.iter().map(|notice| notice.code).collect::<Vec<_>>(),
            [NoticeCode::ImageLeftOut]
        );
    }
    // Of a large one the model sees less, and says so once.
    let large = image(1200, 900, 40);
    let first = question("what?", &[&large]);
    let heard = hear(engine.generate(request(&model, vec![first.clone()], &[&large]))).await;
    assert_eq!(
        heard.notices.iter().map(|notice| notice.code).collect::<Vec<_>>(),
        [NoticeCode::ImageResized]
    );
    let later = vec![
        first,
        Message::text(Role::Assistant, "Stripes."),
        question("Many?", &[]),
    ];
    let heard = hear(engine.generate(request(&model, later, &[&large]))).await;
    assert!(heard.notices.is_empty(), "{:?}", heard.notices);
}

#[tokio::test]
async fn llama_3_2_without_the_layers_that_look_reads_text_as_the_whole_one() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &["mllama"]);
    let with_vision = written.model("mllama");
    let ask = |model: &Path| request(model, vec![question("what is the word?", &[])], &[]);
    let whole = hear(MlxEngine::start().generate(ask(&with_vision))).await;
    for gone in [false, true] {
        let folder = without_its_looks(&with_vision, [1, 3], gone);
        let engine = MlxEngine::start();
        let model = ModelSource::Folder(source(folder.path()));
        let capabilities = engine.capabilities(&model);
        assert_eq!((capabilities.images, capabilities.vision_problem), (false, None));
        let alone = hear(engine.generate(ask(folder.path()))).await;
        alone.done();
        assert_eq!(said(&alone).0, said(&whole).0);
        assert!(apart(&said(&alone).1, &said(&whole).1) < 1e-5);
    }
}

/// So much memory for one step as a test says.
#[derive(Debug)]
struct Room(AtomicU64);

impl MemoryGuard for Room {
    fn before_load(&self, _: &FolderSource, _: &str, _: u64, _: u64) -> protocol::Result<()> {
        Ok(())
    }

    fn before_chunk(&self, bytes: u64, _: &str, _: u64) -> protocol::Result<()> {
        match bytes <= self.0.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(protocol::Error::new(ErrorCode::MemoryShort, "there is no room")),
        }
    }

    fn record_peak(&self, _: &FolderSource, _: u64) {}
}

#[tokio::test]
async fn an_image_that_does_not_fit_is_refused_with_the_detail_that_does() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &["qwen3_vl"]);
    let (room, model) = (Arc::new(Room(AtomicU64::new(0))), written.model("qwen3_vl"));
    let engine = MlxEngine::with_options(EngineOptions {
        memory_guard: Some(room.clone()),
        ..EngineOptions::default()
    });
    let shown = image(1500, 1500, 60);
    let mut refusals = Vec::new();
    for doubled in 10..40 {
        room.0.store(1 << doubled, Ordering::Relaxed);
        let heard = hear(engine.generate(request(&model, vec![question("what?", &[&shown])], &[&shown]))).await;
        let Err(error) = heard.ends[0].clone() else { break };
        assert_eq!(error.code, ErrorCode::MemoryShort);
        refusals.push(error.message);
    }
    let with = |words: &str| refusals.iter().filter(|refusal| refusal.contains(words)).count();
    assert!(with("send a smaller image") > 0, "{refusals:?}");
    assert!(with("look at it with Quick detail") > 0, "{refusals:?}");
}
