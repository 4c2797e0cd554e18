//! The memory of weights that stay quantized.

use engine::MlxEngine;
use protocol::{Engine, LocalEngine, Thinking};

use crate::common::{hear, question};

#[tokio::test]
async fn quantized_weights_take_as_much_memory_as_their_file() {
    let _alone = crate::ALONE.lock().await;
    let engine = MlxEngine::start();
    engine.pretend_gpu().unwrap();
    hear(engine.generate(question("What is 347 + 589?", Thinking::On)))
        .await
        .done();
    let info = engine.loaded().remove(0);
    assert!(info.resident_bytes < 22_000_000, "{info:?}");
}
