//! Images in prompts: the runs of every family, beside transformers' own processors and written by hand, and what
//! nobody may type.

mod families;

use std::path::Path;
use std::process::Command;

use self::families::{families, feature};
use checkpoint::{ImagePlan, View};
use prompt::{ChatProcessor, Error, Prompt, RenderRequest};
use proptest::prelude::*;
use protocol::{Content, ErrorCode, Message, Role};
use serde_json::{json, Value};

/// A template that knows images, with this in their place.
fn template(image: &str) -> String {
    format!(
        "{{% for m in messages %}}<|{{{{ m.role }}}}|>{{% if m.content is string %}}{{{{ m.content }}}}{{% else %}}{{% for p in m.content %}}\
         {{% if p.type == 'image' %}}{image}{{% else %}}{{{{ p.text }}}}{{% endif %}}{{% endfor %}}{{% endif %}}{{% endfor %}}"
    )
}

/// One that takes nothing but texts.
const TEXTS_ALONE: &str = "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}{% endfor %}";

fn image(name: &str) -> Content {
    Content::Image {
        attachment: name.into(),
        media_type: "image/png".into(),
        width: 8,
        height: 8,
        alt: name.into(),
    }
}

fn message(role: Role, content: Vec<Content>) -> Message {
    Message {
        content,
        ..Message::text(role, "")
    }
}

fn view((rows, columns): (u32, u32)) -> View {
    View {
        width: 8,
        height: 8,
        patches: (rows, columns),
        tokens: (rows, columns),
        features: rows * columns,
    }
}

/// One view of this many rows and columns.
fn grid(rows: u32, columns: u32) -> ImagePlan {
    ImagePlan {
        resized: (8, 8),
        steps: vec![(8, 8)],
        views: vec![view((rows, columns))],
        tiles: None,
        whole: false,
        joined: None,
    }
}

/// Tiles of one feature, and the whole.
fn tiles(rows: u32, columns: u32) -> ImagePlan {
    ImagePlan {
        resized: (8, 8),
        steps: vec![(8, 8)],
        views: vec![view((1, 1)); (rows * columns + 1) as usize],
        tiles: (rows * columns > 0).then_some((rows, columns)),
        whole: true,
        joined: None,
    }
}

fn asked<'a>(messages: &'a [Message], images: &'a [ImagePlan]) -> RenderRequest<'a> {
    RenderRequest {
        messages,
        tools: &[],
        thinking: None,
        add_generation_prompt: true,
        images,
    }
}

/// A model of a family whose tokens are its marks and single bytes.
fn model(model_type: &str, template: &str, marks: &[&str]) -> ChatProcessor {
    let turns = ["<|user|>", "<|assistant|>", "<|system|>", "<|tool|>"];
    let marks: Vec<&str> = turns.iter().chain(marks).copied().collect();
    crate::common::byte_model(&marks, template, &json!({"model_type": model_type})).0
}

fn spelled(model: &ChatProcessor, prompt: &Prompt) -> String {
    model.decode(&prompt.ids).unwrap()
}

/// Spans lie in the ids one after another, and hold as many places for features as their images have.
fn check_spans(model: &ChatProcessor, prompt: &Prompt, plans: &[ImagePlan], feature: &str) {
    assert_eq!(prompt.images.len(), plans.len());
    let feature = model.tokenizer().id(feature).unwrap();
    let mut end = 0;
    for (index, (span, plan)) in prompt.images.iter().zip(plans).enumerate() {
        assert!(span.image == index && span.range.start >= end && !span.range.is_empty());
        end = span.range.end;
        let places: Vec<usize> = span.features.iter().cloned().flatten().collect();
        assert_eq!(places.len(), plan.tokens());
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(places
            .iter()
            .all(|place| span.range.contains(place) && prompt.ids[*place] == feature));
    }
    let all = prompt.ids.iter().filter(|id| **id == feature).count();
    let marked: usize = plans.iter().map(ImagePlan::tokens).sum();
    // Llama keeps its placeholder, which takes none.
    assert!(all == marked || marked == 0, "{all} {marked}");
}

#[test]
fn a_placeholder_becomes_the_run_of_its_family() {
    for (model_type, written, marks, plan, run) in families() {
        let model = model(model_type, &template(written), &marks);
        assert!(model.takes_images());
        let question = message(Role::User, vec![Content::text("Which"), image("a"), Content::text("?")]);
        let plans = [plan];
        let prompt = model.prompt(&asked(std::slice::from_ref(&question), &plans)).unwrap();
        // Images come before the words, wherever they stand.
        assert_eq!(spelled(&model, &prompt), format!("<|user|>{run}Which?"), "{model_type}");
        check_spans(&model, &prompt, &plans, feature(model_type));
        // Nobody sees: it is told by name, in a text.
        let without_vision = model.prompt(&asked(&[question], &[])).unwrap();
        assert_eq!(
            spelled(&model, &without_vision),
            "<|user|>Which[image: a]?",
            "{model_type}"
        );
        assert!(without_vision.images.is_empty());
    }
}

#[test]
fn a_template_that_takes_texts_alone_is_given_one() {
    for (model_type, written, marks, plan, run) in families() {
        let model = model(model_type, TEXTS_ALONE, &marks);
        let messages = [
            message(Role::User, vec![image("a"), Content::text("Which?")]),
            message(Role::Assistant, vec![Content::text("That.")]),
            message(Role::User, vec![Content::text("And now?")]),
        ];
        let prompt = model.prompt(&asked(&messages, &[plan])).unwrap();
        let run = run.trim_start();
        let said = spelled(&model, &prompt);
        assert_eq!(
            said.replace("\n\n<start", "<start"),
            format!("<|user|>{run}Which?<|assistant|>That.<|user|>And now?"),
            "{model_type} {written}"
        );
    }
}

#[test]
fn an_image_that_a_tool_gives_is_shown_in_its_text() {
    let (model_type, written, marks, plan, run) = families().remove(0);
    let model = model(model_type, &template(written), &marks);
    let messages = [
        message(Role::User, vec![image("a"), Content::text("Look.")]),
        message(Role::Tool, vec![Content::text("Here."), image("b")]),
    ];
    let prompt = model.prompt(&asked(&messages, &[plan.clone(), plan])).unwrap();
    assert_eq!(
        spelled(&model, &prompt),
        format!("<|user|>{run}Look.<|tool|>{run}Here.")
    );
}

#[test]
fn images_are_counted_against_placeholders() {
    let (model_type, written, marks, plan, _) = families().remove(0);
    let with_vision = model(model_type, &template(written), &marks);
    let question = [message(Role::User, vec![image("a"), Content::text("?")])];
    let error = with_vision
        .prompt(&asked(&question, &[plan.clone(), plan.clone()]))
        .unwrap_err();
    assert!(
        matches!(
            error,
            Error::ImageCount {
                images: 2,
                placeholders: 1
            }
        ),
        "{error}"
    );
    assert_eq!(protocol::Error::from(error).code, ErrorCode::TemplateRefused);
    // A template of its own that writes a placeholder too many.
    let twice = model(model_type, &format!("{}<|image_pad|>", template(written)), &marks);
    let error = twice
        .prompt(&asked(&question, std::slice::from_ref(&plan)))
        .unwrap_err();
    assert!(matches!(error, Error::ImageCount { images: 1, .. }), "{error}");
    let without_vision = model("llama", &template(written), &marks);
    let error = without_vision.prompt(&asked(&question, &[plan])).unwrap_err();
    assert_eq!(
        (without_vision.takes_images(), protocol::Error::from(error).code),
        (false, ErrorCode::ImageNotSeen)
    );
    let marks = [
        "<|image|>",
        "<|image_cls|>",
        "<|image_reg_1|>",
        "<|image_reg_2|>",
        "<|image_reg_3|>",
        "<|image_reg_4|>",
        "<|end_of_image|>",
    ];
    let (one, plan) = (model("falcon_ocr", &template("<|image|>"), &marks), grid(1, 2));
    let two = [message(Role::User, vec![image("a"), image("b")])];
    let error = one.prompt(&asked(&two, &[plan.clone(), plan])).unwrap_err();
    assert!(matches!(error, Error::TooManyImages { images: 2, most: 1 }), "{error}");
}

/// The tokenizers of Phi 3 and 4, of FastVLM and of Bunny have no token for an image, whose place is told by the texts around it.
#[test]
fn a_placeholder_that_no_tokenizer_has_is_a_place_between_texts() {
    let sources = |token: &str| [TEXTS_ALONE.to_owned(), template(&format!("{token}\n"))];
    let families = [
        ("phi3_v", "<|image|>"),
        ("phi4-siglip", "<image>"),
        ("llava_qwen2", "<image>"),
        ("llava-qwen2", "<image>"),
    ];
    for (model_type, token, source) in families
        .into_iter()
        .flat_map(|(name, token)| sources(token).map(|source| (name, token, source)))
    {
        let model = model(model_type, &source, &[]);
        assert!(model.takes_images());
        let plans = [grid(1, 3)];
        let asked_with = |text: &str| {
            let messages = [message(Role::User, vec![image("a"), Content::text(text)])];
            model.prompt(&asked(&messages, &plans)).unwrap()
        };
        let prompt = asked_with("Which?");
        let places = prompt.images[0].range.clone();
        assert_eq!(
            (places.len(), prompt.images[0].features.clone()),
            (3, vec![places.clone()])
        );
        // Ids that any model embeds stand where features do.
        assert!(prompt.ids[places.clone()].iter().all(|id| *id == 0));
        let after = model.decode(&prompt.ids[places.end..]).unwrap();
        assert_eq!(after.trim_start(), "Which?");
        let twice = format!("{token} {token}");
        let typed = asked_with(&twice);
        assert_eq!((typed.images.len(), typed.images[0].range.len()), (1, 3));
        assert!(model.decode(&typed.ids[places.end..]).unwrap().contains(&twice));
        let most = typed.ids.iter().max().unwrap();
        assert!(model.tokenizer().id(token).unwrap() > *most);
    }
}

/// PaliGemma's repositories bring no template: all images stand before the first token, and the last question after it.
#[test]
fn a_family_without_a_template_has_one_here() {
    let marks = ["<image>", "<bos>"];
    let (model, _) = crate::common::byte_model(&marks, "", &json!({"model_type": "paligemma"}));
    let plans = [grid(1, 2), grid(1, 1)];
    let messages = [
        message(Role::User, vec![image("a"), Content::text("What is it?")]),
        message(Role::Assistant, vec![Content::text("A cat.")]),
        message(Role::User, vec![Content::text("answer <image>"), image("b")]),
    ];
    let prompt = model.prompt(&asked(&messages, &plans)).unwrap();
    assert_eq!(spelled(&model, &prompt), "<image><image><image><bos>answer <image>\n");
    check_spans_of(&prompt, &[2, 1]);
    let alone = model.prompt(&asked(&messages[..1], &plans[..1])).unwrap();
    assert_eq!(spelled(&model, &alone), "<image><image><bos>What is it?\n");
    let text = [message(Role::User, vec![Content::text("Which?")])];
    assert_eq!(
        spelled(&model, &model.prompt(&asked(&text, &[])).unwrap()),
        "<bos>Which?\n"
    );
}

/// The first templates of ERNIE 4.5 VL know no part but an image by its address, and write marks that belong to the run.
#[test]
fn a_template_may_know_images_by_their_address_alone() {
    let families = families().into_iter();
    for (model_type, written, marks, plan, run) in families.filter(|family| family.0.starts_with("ernie")) {
        let source = template(written)
            .replace("'image'", "'image_url'")
            .replace("{% if p", "{% if loop.first %}1:{% endif %}{% if p");
        let model = model(model_type, &source, &marks);
        let question = [message(Role::User, vec![Content::text("Which?"), image("a")])];
        let prompt = model.prompt(&asked(&question, &[plan])).unwrap();
        assert_eq!(
            spelled(&model, &prompt),
            format!("<|user|>1:{run}Which?"),
            "{model_type}"
        );
        assert_eq!(prompt.images[0].range.len(), 4);
        // Typed by the user, the same is text.
        let typed = [message(Role::User, vec![Content::text(written), image("a")])];
        let prompt = model.prompt(&asked(&typed, &[grid(1, 2)])).unwrap();
        assert_eq!((prompt.images.len(), prompt.images[0].range.len()), (1, 4));
    }
}

/// Molmo's images stand before all texts, which its templates know nothing of.
#[test]
fn images_that_come_first_stand_before_everything_else() {
    let marks = ["<|image|>", "<im_patch>", "<im_start>", "<im_end>", "<im_col>"];
    let run = "<im_start><im_patch><im_col><im_end><im_start><im_patch><im_col><im_end>";
    for source in [TEXTS_ALONE.to_owned(), template("<|image|>")] {
        let model = model("molmo", &source, &marks);
        let messages = [
            message(Role::User, vec![image("a"), Content::text("Which?")]),
            message(Role::Assistant, vec![Content::text("That.")]),
            message(Role::User, vec![image("b"), Content::text("And now?")]),
        ];
        let plans = [tiles(1, 1), tiles(1, 1)];
        let prompt = model.prompt(&asked(&messages, &plans)).unwrap();
        assert_eq!(
            spelled(&model, &prompt),
            format!("{run}{run}<|user|>Which?<|assistant|>That.<|user|>And now?")
        );
        check_spans(&model, &prompt, &plans, "<im_patch>");
    }
}

fn check_spans_of(prompt: &Prompt, lengths: &[usize]) {
    let found: Vec<usize> = prompt.images.iter().map(|span| span.range.len()).collect();
    assert_eq!(found, lengths);
}

/// A conversation with an image in its first and in its third turn.
fn long() -> [Message; 3] {
    [
        message(
            Role::User,
            vec![image("a"), Content::text("Which is it, of all these?")],
        ),
        message(Role::Assistant, vec![Content::text("The left one.")]),
        message(Role::User, vec![image("b"), image("c"), Content::text("And here?")]),
    ]
}

#[test]
fn places_where_prompts_part_are_never_inside_an_image() {
    for (model_type, written, marks, plan, _) in families() {
        let model = model(model_type, &template(written), &marks);
        let messages = long();
        let plans = [plan.clone(), plan.clone(), plan];
        let request = asked(&messages, &plans);
        let prompt = model.prompt(&request).unwrap();
        let boundaries = model.boundaries(&request, &prompt);
        assert!(
            boundaries.len() > 1 && boundaries.is_sorted(),
            "{model_type} {boundaries:?}"
        );
        assert!(boundaries.iter().all(|at| *at < prompt.ids.len()));
        for span in &prompt.images {
            assert!(
                !boundaries
                    .iter()
                    .any(|at| span.range.start < *at && *at < span.range.end),
                "{model_type} {boundaries:?} {span:?}"
            );
        }
        // Up to a place, the ids of the next turn are the same.
        let mut next = messages.to_vec();
        next.extend([
            message(Role::Assistant, vec![Content::text("Yes.")]),
            message(Role::User, vec![Content::text("More?")]),
        ]);
        let later = model.prompt(&asked(&next, &plans)).unwrap();
        let common = prompt.ids.iter().zip(&later.ids).take_while(|(a, b)| a == b).count();
        assert!(
            boundaries
                .iter()
                .any(|at| *at <= common && *at >= prompt.images[2].range.end),
            "{model_type} {boundaries:?} {common}"
        );

        // The prefetched ids are the beginning of the next question's prompt, images included.
        let mut answered = messages.to_vec();
        answered.push(message(Role::Assistant, vec![Content::text("Yes.")]));
        let ahead = model.next_prompt(&asked(&answered, &plans)).unwrap();
        assert!(later.ids.starts_with(&ahead.ids), "{model_type}");
        assert_eq!(ahead.images, later.images, "{model_type}");
        assert!(ahead.boundaries.iter().all(|at| *at <= ahead.ids.len()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("PONDER_FULL").is_some() { 2000 } else { 40 }))]

    /// Whatever is typed, all that steers is what the template and the images wrote.
    #[test]
    fn a_typed_placeholder_stays_text(
        pieces in proptest::collection::vec((0..64usize, "[a-z \n<|>]{0,6}"), 0..6),
        family in 0..20usize,
        inline in any::<bool>(),
    ) {
        let (model_type, written, marks, plan, _) = families().remove(family);
        let source = if inline { TEXTS_ALONE.to_owned() } else { template(written) };
        let model = model(model_type, &source, &marks);
        let typed: String = pieces.iter().map(|(mark, words)| format!("{words}{}", marks.get(*mark).copied().unwrap_or("\u{FDEF}\u{FDD0}"))).collect();
        let ids = |text: &str| {
            let messages = [message(Role::User, vec![image("a"), Content::text(text)])];
            model.prompt(&asked(&messages, std::slice::from_ref(&plan))).unwrap()
        };
        let control = |prompt: &Prompt| {
            let ids = prompt.ids.iter().copied();
            ids.filter(|id| model.tokenizer().is_control(*id)).collect::<Vec<_>>()
        };
        let (plain, hostile) = (ids("x"), ids(&format!("x{typed}x")));
        prop_assert_eq!(control(&plain), control(&hostile));
        prop_assert_eq!(&plain.images, &hostile.images);
        prop_assert!(model.decode(&hostile.ids).unwrap().contains(&typed));
    }
}

/// Processors of transformers, as `tests/oracle/image_prompts.py` asks them.
#[test]
fn ids_are_those_of_transformers_processors() {
    let Some(python) = std::env::var_os("PONDER_ORACLE_PYTHON") else {
        println!("skipped: PONDER_ORACLE_PYTHON names no Python with transformers; `./dev test` provides one");
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/oracle/image_prompts.py");
    let mut command = Command::new(python);
    assert!(command
        .arg(script)
        .arg(out.path())
        .env_remove("LD_LIBRARY_PATH")
        .status()
        .unwrap()
        .success());
    let (mut families, mut equal) = (0, 0);
    for entry in std::fs::read_dir(out.path()).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        let name = folder.file_name().unwrap().to_str().unwrap();
        let model = ChatProcessor::open(&folder).unwrap();
        let cases: Vec<Value> =
            serde_json::from_str(&std::fs::read_to_string(folder.with_extension("json")).unwrap()).unwrap();
        for case in &cases {
            let plans: Vec<ImagePlan> = case["plans"].as_array().unwrap().iter().map(plan_of).collect();
            let messages: Vec<Message> = case["messages"].as_array().unwrap().iter().map(message_of).collect();
            let prompt = model.prompt(&asked(&messages, &plans)).unwrap();
            let theirs: Vec<u32> = serde_json::from_value(case["ids"].clone()).unwrap();
            assert_eq!(prompt.ids, theirs, "{name}: {}", case["messages"]);
            assert_eq!(prompt.images.len(), plans.len());
            equal += 1;
        }
        families += 1;
    }
    assert!(families >= 13 && equal >= 500, "{families} {equal}");
    println!(
        "report: images: {equal} conversations with images in {families} families get exactly the ids of transformers' processors"
    );
}

fn plan_of(plan: &Value) -> ImagePlan {
    let number = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    let views = plan["views"].as_array().unwrap().iter().map(|one| View {
        features: number(&one["features"]),
        ..view((number(&one["rows"]), number(&one["columns"])))
    });
    ImagePlan {
        resized: (8, 8),
        steps: vec![(8, 8)],
        views: views.collect(),
        tiles: plan["tiles"]
            .as_array()
            .map(|tiles| (number(&tiles[0]), number(&tiles[1]))),
        whole: plan["whole"].as_bool().unwrap(),
        joined: None,
    }
}

fn message_of(value: &Value) -> Message {
    let role = serde_json::from_value(value["role"].clone()).unwrap();
    let part = |part: &Value| match part["text"].as_str() {
        Some(text) => Content::text(text),
        None => image("a"),
    };
    match &value["content"] {
        Value::String(text) => Message::text(role, text.as_str()),
        parts => message(role, parts.as_array().unwrap().iter().map(part).collect()),
    }
}
