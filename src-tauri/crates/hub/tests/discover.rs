//! Models on a hub: search, verdict, card, and their cached state when the hub is unreachable.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use api::{FitVerdict, HubModel, SearchQuery, Sort};
use hub::{Error, Hub, ModelFolder};
use hub_imitation::{Fault, FaultTarget, Imitation, Origin, Repository, Times};
use net::{Environment, Net, Purpose, Settings};
use protocol::{ErrorCode, Reason};
use serde_json::json;

const CARD: &str = "---\nlicense: mit\ntags: [mlx]\n---\n# Pebble\nA small one.\n";

fn open(hub: &Imitation, data: &Path, token: &str) -> Hub {
    let net = Net::open(Settings {
        environment: Environment::of(&[("HF_ENDPOINT", &hub.endpoint()), ("HF_TOKEN", token)]),
        ..Settings::of_a_test("")
    });
    Hub::open(net, ModelFolder::at(None, Some(data.join("cache"))), data)
}

fn query(text: &str) -> SearchQuery {
    SearchQuery {
        text: text.into(),
        ..SearchQuery::default()
    }
}

fn ids(models: &[HubModel]) -> Vec<&str> {
    models.iter().map(|model| model.id.as_str()).collect()
}

/// A repository that the search finds and that contains no model.
fn empty(hub: &Imitation, id: &str) -> Repository {
    hub.repository(id).field("tags", json!(["mlx"]))
}

#[tokio::test]
async fn a_search_goes_page_by_page_in_the_order_that_was_asked_for() {
    let (imitation, data) = (Imitation::start(), tempfile::tempdir().unwrap());
    for number in 0..65u64 {
        empty(&imitation, &format!("ponder/model-{number}"))
            .field("downloads", json!(number))
            .field("likes", json!(1000 - number))
            .field(
                "lastModified",
                json!(format!("2026-10-{:02}T00:00:00.000Z", 1 + number % 28)),
            );
    }
    empty(&imitation, "ponder/speech").field("pipeline_tag", json!("text-to-speech"));
    imitation.repository("ponder/not-mlx");
    empty(&imitation, "ponder/hostile").field("id", json!("../../etc"));
    let hub = open(&imitation, data.path(), "");

    let mut query = query("ponder");
    let mut seen = Vec::new();
    let mut pages = 0;
    loop {
        let page = hub.search().page(&query).await.unwrap();
        assert!(page.cached_at.is_none());
        pages += 1;
        seen.extend(page.models);
        query.cursor = page.cursor;
        if query.cursor.is_none() {
            break;
        }
    }
    let downloads: Vec<u64> = seen.iter().map(|model| model.downloads).collect();
    assert_eq!((pages, downloads), (3, (0..65).rev().collect::<Vec<u64>>()));
    assert!(seen
        .iter()
        .all(|model| !model.described && model.author == "ponder" && !model.here));

    for (sort, first) in [(Sort::Likes, "ponder/model-0"), (Sort::Updated, "ponder/model-27")] {
        let page = hub.search().page(&SearchQuery { sort, ..query.clone() }).await.unwrap();
        assert_eq!(page.models[0].id, first);
    }
    assert!(hub
        .net()
        .requests()
        .iter()
        .all(|request| request.purpose == Purpose::Search));
}

#[tokio::test]
async fn a_model_that_will_run_is_described_whole_and_only_once() {
    let (imitation, data) = (Imitation::start(), tempfile::tempdir().unwrap());
    let pebble = imitation
        .repository("ponder/pebble")
        .pebble()
        .file("README.md", CARD)
        .file("extra.gguf", "left out");
    let hub = open(&imitation, data.path(), "");
    let model = hub.catalog().describe("ponder/pebble").await.unwrap();
    assert_eq!(model.problem, None);
    assert_eq!(
        (
            model.family.as_deref(),
            model.quantization.as_deref(),
            model.context,
            model.licence.as_deref()
        ),
        (Some("gemma4"), Some("8 bit"), Some(4096), Some("apache-2.0"))
    );
    assert_eq!(model.commit.as_deref(), Some(pebble.commit().as_str()));
    let fetched = pebble.paths().into_iter().filter(|path| path != "extra.gguf");
    let bytes: usize = fetched.map(|path| pebble.bytes(&path).unwrap().len()).sum();
    assert_eq!(model.bytes, Some(bytes as u64));
    assert!(model.thinking.is_some() && model.described && !model.here && model.cached_at.is_none());
    let fit = model.fit.unwrap();
    assert!(
        fit.word != FitVerdict::WillNotFit && fit.weights > 1_000_000 && fit.needed < 1 << 30,
        "{fit:?}"
    );
    assert!(
        imitation.sent() < 400_000,
        "the weights were not fetched: {}",
        imitation.sent()
    );

    imitation.forget_requests();
    assert_eq!(
        hub.catalog().describe("ponder/pebble").await.unwrap().bytes,
        model.bytes
    );
    assert_eq!(imitation.requests().len(), 0);
    let later = open(&imitation, data.path(), "");
    later.catalog().describe("ponder/pebble").await.unwrap();
    assert_eq!(
        imitation.requests().len(),
        1,
        "what lies at a commit is not asked for again"
    );

    let changed = pebble.new_commit().file("config.json", "{\"model_type\": \"novel\"}");
    let newest = open(&imitation, data.path(), "")
        .catalog()
        .describe("ponder/pebble")
        .await
        .unwrap();
    assert_eq!(newest.commit, Some(changed.commit()));
    let problem = newest.problem.unwrap();
    assert_eq!(problem.reason, Some(Reason::ModelFamily));
    assert_eq!(problem.arguments["family"], "novel".into());
}

#[tokio::test]
async fn what_will_not_run_says_why() {
    let imitation = Imitation::start();
    let config = |text: &'static str| imitation.repository("o/n").pebble().file("config.json", text);
    let without = |path: &str| imitation.repository("o/n").pebble().without(path);
    let listed = |entry| imitation.repository("o/n").pebble().entry(entry);
    let file = |path: &str| json!({"type": "file", "oid": "a".repeat(40), "size": 1, "path": path});
    type Make<'a> = Box<dyn Fn() -> Repository + 'a>;
    let of = |reason: Reason| (reason.code(), Some(reason));
    let (broken, format) = ((ErrorCode::ModelBroken, None), of(Reason::ModelFormat));
    let (refused, task) = (of(Reason::RepositoryRefused), of(Reason::ModelTask));
    let pipeline = || without("config.json").file("model_index.json", "{}");
    type Case<'a> = (Make<'a>, &'a str, (ErrorCode, Option<Reason>));
    let cases: Vec<Case> = vec![
        (
            Box::new(|| config(r#"{"model_type": "novel9"}"#)),
            "novel9",
            of(Reason::ModelFamily),
        ),
        (
            Box::new(|| config("{\"model_type\": \"novel9\", \"auto_map\": {\"AutoModel\": \"x.X\"}}")),
            "code",
            of(Reason::ModelCode),
        ),
        (Box::new(|| config("[[[")), "config.json", broken),
        (Box::new(|| config(r#"{"model_type": "flux2"}"#)), "makes images", task),
        (Box::new(pipeline), "pipeline of diffusers", task),
        (Box::new(|| without("config.json")), "no config.json", format),
        (Box::new(|| without("tokenizer.json")), "tokenizer.json", broken),
        (
            Box::new(|| without("model.safetensors").file("model-q4.gguf", "x")),
            ".gguf",
            format,
        ),
        (Box::new(|| without("model.safetensors")), "model.safetensors", broken),
        (
            Box::new(|| {
                imitation
                    .repository("o/n")
                    .pebble()
                    .generated("config.json", 50 << 20, 1)
            }),
            "52428800",
            refused,
        ),
        (
            Box::new(|| listed(file("../../.ssh/authorized_keys"))),
            "leads out",
            refused,
        ),
        (Box::new(|| listed(file("/etc/passwd"))), "absolute", refused),
        (Box::new(|| listed(file("a\nb"))), "line break", refused),
        (
            Box::new(|| listed(json!({"type": "symlink", "oid": "a".repeat(40), "size": 1, "path": "x"}))),
            "neither",
            refused,
        ),
        (
            Box::new(|| {
                imitation
                    .repository("o/n")
                    .files((0..100_000).map(|number| (format!("f{number}"), "x")))
            }),
            "10000",
            refused,
        ),
    ];
    for (make, says, kind) in cases {
        make();
        imitation.forget_requests();
        // A hostile entry of the list does not change the commit, and the files of a commit are not requested again.
        let data = tempfile::tempdir().unwrap();
        let hub = open(&imitation, data.path(), "");
        let model = hub.catalog().describe("o/n").await.unwrap();
        let problem = model.problem.unwrap();
        assert!(problem.message.contains(says), "{says}: {problem:?}");
        assert_eq!((problem.code, problem.reason), kind, "{says}: {problem:?}");
        assert!(model.described && model.fit.is_none() && model.thinking.is_none());
        assert!(
            imitation.sent() < 400_000,
            "{says}: {} bytes were fetched",
            imitation.sent()
        );
    }
}

#[tokio::test]
async fn a_gated_model_says_how_to_get_in_and_a_token_opens_it() {
    let (imitation, data) = (Imitation::start(), tempfile::tempdir().unwrap());
    imitation.repository("o/gated").pebble().gated();
    imitation.let_in("hf_mine");
    let outside = open(&imitation, data.path(), "");
    let model = outside.catalog().describe("o/gated").await.unwrap();
    assert!(
        model.gated && model.problem.is_none() && model.fit.is_none(),
        "{model:?}"
    );
    assert!(model.bytes.is_some_and(|bytes| bytes > 10_000_000));
    let error = outside
        .memory()
        .fit("o/gated", &hub::memory_fit::Question::new(), 0)
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Gated { .. }) && error.to_string().contains("/o/gated"),
        "{error}"
    );
    let inside = open(&imitation, data.path(), "hf_mine")
        .catalog()
        .describe("o/gated")
        .await
        .unwrap();
    assert!(inside.gated && inside.context == Some(4096) && inside.fit.is_some());
}

#[tokio::test]
async fn an_id_or_an_address_leads_to_its_model() {
    let (imitation, data) = (Imitation::start(), tempfile::tempdir().unwrap());
    let pebble = imitation.repository("ponder/pebble").pebble();
    let first = pebble.commit();
    pebble.new_commit().file("README.md", "newer");
    imitation.repository("old/name").renamed_to("ponder/pebble");
    imitation.repository("ponder/other").pebble();
    let hub = open(&imitation, data.path(), "");
    let endpoint = imitation.endpoint();
    for text in [
        "ponder/pebble".to_owned(),
        format!("{endpoint}/ponder/pebble"),
        format!("{endpoint}/ponder/pebble/tree/main?x=1"),
        "https://huggingface.co/ponder/pebble".into(),
        "hf://ponder/pebble".into(),
        "old/name".into(),
    ] {
        let page = hub.search().page(&query(&text)).await.unwrap();
        assert_eq!(ids(&page.models), ["ponder/pebble"], "{text}");
        assert!(page.models[0].described);
    }
    let at = hub
        .search()
        .page(&query(&format!("{endpoint}/ponder/pebble/tree/{first}")))
        .await
        .unwrap();
    assert_eq!(
        (at.models[0].commit.as_ref(), at.models[0].revision.as_ref()),
        (Some(&first), Some(&first))
    );
    let owners = hub.search().page(&query(&format!("{endpoint}/ponder"))).await.unwrap();
    assert_eq!(owners.models.len(), 2);

    assert!(matches!(
        hub.search().page(&query("https://huggingface.co/o/none")).await,
        Err(Error::NotOnHub(_))
    ));
    for hostile in [
        "../etc",
        "https://huggingface.co/..%2F../x",
        "https://evil.example/o/n",
        "hf://",
        "o/n\u{202e}",
    ] {
        let code = protocol::Error::from(hub.search().page(&query(hostile)).await.unwrap_err()).code;
        assert_eq!(code, ErrorCode::BadRequest, "{hostile}");
    }
    assert!(matches!(
        hub.catalog().describe("../etc").await,
        Err(Error::Name { .. })
    ));
    assert!(matches!(hub.catalog().card("o/n/x").await, Err(Error::Name { .. })));
}

#[tokio::test]
async fn filters_look_at_each_model_and_say_how_many_they_left_out() {
    let (imitation, data) = (Imitation::start(), tempfile::tempdir().unwrap());
    imitation.repository("a/pebble-8bit").pebble();
    let huge = imitation.repository("a/huge-8bit").pebble();
    let mut config: serde_json::Value = serde_json::from_slice(&huge.bytes("config.json").unwrap()).unwrap();
    for place in ["/vocab_size", "/text_config/vocab_size"] {
        if let Some(words) = config.pointer_mut(place) {
            *words = json!(4_000_000_000u32);
        }
    }
    huge.file("config.json", config.to_string());
    imitation.repository("b/broken-4bit").pebble().without("tokenizer.json");
    imitation
        .repository("b/plain")
        .pebble()
        .file("chat_template.jinja", "{{ messages[0].content }}");
    let hub = open(&imitation, data.path(), "");
    let found = |query: SearchQuery| {
        let hub = hub.clone();
        async move {
            let page = hub.search().page(&query).await.unwrap();
            let mut ids: Vec<String> = page.models.iter().map(|model| model.id.clone()).collect();
            ids.sort();
            (ids.join(" "), page.left_out)
        }
    };
    let all = SearchQuery::default;
    let fits = SearchQuery {
        fits_only: true,
        ..all()
    };
    assert_eq!(found(fits).await, ("a/pebble-8bit b/plain".into(), 2));
    let thinks = SearchQuery {
        thinks_only: true,
        fits_only: true,
        ..all()
    };
    assert_eq!(found(thinks).await, ("a/pebble-8bit".into(), 3));
    let author = SearchQuery {
        author: Some("b".into()),
        ..all()
    };
    assert_eq!(found(author).await, ("b/broken-4bit b/plain".into(), 0));
    let bits = SearchQuery {
        quantization: Some("8 bit".into()),
        author: Some("a".into()),
        ..all()
    };
    assert_eq!(found(bits).await, ("a/huge-8bit a/pebble-8bit".into(), 0));
    let sizes = hub
        .search()
        .page(&SearchQuery {
            sort: Sort::Size,
            fits_only: true,
            ..all()
        })
        .await
        .unwrap();
    assert!(sizes.models.windows(2).all(|pair| pair[0].bytes <= pair[1].bytes));
}

#[tokio::test]
async fn what_was_seen_is_there_when_the_hub_is_not() {
    let (imitation, data) = (Imitation::start(), tempfile::tempdir().unwrap());
    imitation.repository("ponder/pebble").pebble().file("README.md", CARD);
    imitation.repository("ponder/bare").pebble().without("README.md");
    let hub = open(&imitation, data.path(), "");
    let page = hub.search().page(&query("peb")).await.unwrap();
    let model = hub.catalog().describe("ponder/pebble").await.unwrap();
    assert_eq!(
        hub.catalog().card("ponder/pebble").await.unwrap(),
        "# Pebble\nA small one.\n"
    );
    assert_eq!(hub.catalog().card("ponder/bare").await.unwrap(), "");

    hub.net().set_offline(true).unwrap();
    imitation.forget_requests();
    for code in [ErrorCode::Offline, ErrorCode::Network] {
        if code == ErrorCode::Network {
            hub.net().set_offline(false).unwrap();
            imitation.disappear(Origin::Hub);
        }
        // A new `Hub` has nothing in memory, as after a start of the app.
        let hub = if code == ErrorCode::Network {
            open(&imitation, data.path(), "")
        } else {
            hub.clone()
        };
        let cached = hub.search().page(&query("peb")).await.unwrap();
        assert_eq!(ids(&cached.models), ids(&page.models));
        assert!(cached.cached_at.is_some_and(|at| at > 1_700_000_000_000));
        assert_eq!(cached.cached_because.map(|error| error.code), Some(code));
        // A new query is answered from the described models.
        let by_word = hub.search().page(&query("ponder pebble")).await.unwrap();
        assert_eq!(ids(&by_word.models), ["ponder/pebble"]);
        assert!(by_word.models[0].described && by_word.models[0].cached_at.is_some());
        let cached = hub.catalog().describe("ponder/pebble").await.unwrap();
        assert!(cached.cached_at.is_some() && cached.context == model.context && cached.fit.is_some());
        assert_eq!(
            hub.catalog().card("ponder/pebble").await.unwrap(),
            "# Pebble\nA small one.\n"
        );
        let by_id = hub.search().page(&query("ponder/pebble")).await.unwrap();
        assert_eq!(ids(&by_id.models), ["ponder/pebble"]);
        for error in [
            hub.search().page(&query("never seen")).await.err(),
            hub.catalog().describe("never/seen").await.err(),
            hub.catalog().card("never/seen").await.err(),
        ] {
            assert_eq!(protocol::Error::from(error.unwrap()).code, code);
        }
    }
    assert_eq!(imitation.requests().len(), 0);
}

#[tokio::test]
async fn a_hub_that_answers_nonsense_is_named() {
    let (imitation, data) = (Imitation::start(), tempfile::tempdir().unwrap());
    imitation.repository("ponder/pebble").pebble();
    let hub = open(&imitation, data.path(), "");
    imitation.fault_at(FaultTarget::Api, None, None, Fault::Portal, Times::Always);
    for error in [
        hub.search().page(&query("x")).await.err(),
        hub.catalog().describe("ponder/pebble").await.err(),
    ] {
        let error = protocol::Error::from(error.unwrap());
        assert!(
            error.code == ErrorCode::Network && error.message.contains("sign in"),
            "{error}"
        );
    }
    imitation.clear_faults();
    let wait = Fault::Status {
        code: 429,
        retry_after: Some(9),
    };
    imitation.fault_at(FaultTarget::Api, None, None, wait, Times::Always);
    let error = hub.search().page(&query("x")).await.unwrap_err();
    assert!(error.to_string().contains("9 seconds"), "{error}");
}

#[tokio::test]
async fn many_are_described_at_once_and_few_at_a_time() {
    let (imitation, data) = (Imitation::start(), tempfile::tempdir().unwrap());
    for number in 0..20 {
        imitation.repository(&format!("ponder/m{number}")).pebble();
    }
    let hub = open(&imitation, data.path(), "");
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let hub = hub.clone();
            tokio::spawn(async move { hub.catalog().describe(&format!("ponder/m{number}")).await })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap().problem, None);
    }
}

#[tokio::test]
async fn first_models_suit_the_computer() {
    let (imitation, data) = (Imitation::start(), tempfile::tempdir().unwrap());
    let hub = open(&imitation, data.path(), "");
    let of = |total: u64| {
        hub.catalog().recommended(&hub::memory_fit::Memory {
            total,
            free: total,
            swap: 0,
        })
    };
    assert!(of(4 << 30).is_empty());
    let (small, large) = (of(8 << 30), of(128 << 30));
    assert!(!small.is_empty() && large.len() > small.len());
    assert!(large.windows(2).all(|pair| pair[0].bytes > pair[1].bytes));
    assert!(large
        .iter()
        .all(|model| model.note.is_some() && model.quantization.is_some() && !model.described && model.fit.is_some()));
    assert_eq!(imitation.requests().len(), 0);
}
