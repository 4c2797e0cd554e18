//! Products with packed numbers that a device computes wrongly: found at load, never used.

use crate::common::{hear, question};
use engine::{EngineOptions, MlxEngine};
use protocol::{Engine, LocalEngine, Thinking};

const SUM: &str = "What is 347 + 589?";

/// The inputs of Pebble's output projections of attention.
const INPUTS: i32 = 256;

#[tokio::test]
async fn a_wrong_product_costs_speed_and_never_an_answer() {
    let cache = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        cache_dir: Some(cache.path().join("mlx")),
        ..EngineOptions::default()
    };
    let right = MlxEngine::with_options(options.clone());
    right.pretend_gpu().unwrap();
    let heard = hear(right.generate(question(SUM, Thinking::Off))).await;
    let expected = heard.text;
    assert_eq!(right.loaded().remove(0).wrong_products, Vec::<String>::new());

    // The fault matters: a model that was checked before it came answers something else.
    right.set_prefix_cache_budget(0).unwrap();
    right.inject_fault(INPUTS).unwrap();
    assert_ne!(hear(right.generate(question(SUM, Thinking::Off))).await.text, expected);
    drop(right);

    std::fs::remove_dir_all(cache.path().join("mlx")).unwrap();
    let planted = MlxEngine::with_options(options);
    planted.pretend_gpu().unwrap();
    planted.inject_fault(INPUTS).unwrap();
    let heard = hear(planted.generate(question(SUM, Thinking::Off))).await;
    assert_eq!(heard.text, expected);
    let info = planted.loaded().remove(0);
    assert!(
        matches!(&info.wrong_products[..], [one] if one.contains(&format!(" {INPUTS} to "))),
        "{:?}",
        info.wrong_products
    );
    assert_eq!(planted.inspect().unwrap().unevaluated, 0);
}
