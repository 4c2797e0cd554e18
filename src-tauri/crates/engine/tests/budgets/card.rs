//! A model that is larger than the card: refused with the figures, and computed by the processor if that is set.

use std::sync::Arc;

use crate::common::{hear, pebble, question, story, Plenty};
use engine::{EngineOptions, MlxEngine};
use protocol::{
    Argument, ComputeDevice, Engine, ErrorCode, FolderSource, LoadEvent, LocalEngine, MemoryGuard, Reason, Thinking,
};

use crate::ALONE;

/// Less than Pebble takes.
const CARD: u64 = 10_000_000;

/// A computer without memory for models.
#[derive(Debug)]
struct Little;

impl MemoryGuard for Little {
    fn before_load(&self, _: &FolderSource, device: &str, _: u64, _: u64) -> protocol::Result<()> {
        match device {
            "cpu" => Err(protocol::Error::new(ErrorCode::MemoryShort, "there is no room")),
            _ => Ok(()),
        }
    }

    fn before_chunk(&self, _: u64, _: &str, _: u64) -> protocol::Result<()> {
        Ok(())
    }

    fn record_peak(&self, _: &FolderSource, _: u64) {}
}

/// An engine with a card that is too small for Pebble.
struct SmallCard {
    engine: MlxEngine,
    /// MLX's limit before.
    limit: u64,
}

impl SmallCard {
    fn new(guard: Option<Arc<dyn MemoryGuard>>) -> Self {
        let engine = MlxEngine::with_options(EngineOptions {
            memory_guard: guard,
            ..EngineOptions::default()
        });
        engine.pretend_gpu().unwrap();
        let limit = engine.set_memory_limit(CARD).unwrap();
        Self { engine, limit }
    }
}

impl Drop for SmallCard {
    fn drop(&mut self) {
        self.engine.set_memory_limit(self.limit).unwrap();
    }
}

async fn load(engine: &MlxEngine) -> Result<String, protocol::Error> {
    let mut events = engine.load(pebble());
    loop {
        match events.recv().await.unwrap() {
            LoadEvent::Ready(info) => return Ok(info.device.clone()),
            LoadEvent::Failed(error) => return Err(error),
            LoadEvent::Progress { .. } => {}
        }
    }
}

#[tokio::test]
async fn a_model_larger_than_the_card_is_refused_with_the_figures() {
    let _alone = ALONE.lock().await;
    let guards: [(Option<Arc<dyn MemoryGuard>>, Reason); 3] = [
        (None, Reason::CardMemory),
        (Some(Arc::new(Plenty)), Reason::CardMemory),
        (Some(Arc::new(Little)), Reason::CardAndMemory),
    ];
    for (guard, reason) in guards {
        let card = SmallCard::new(guard);
        for refused in [
            load(&card.engine).await.unwrap_err(),
            hear(card.engine.generate(story(4))).await.error().clone(),
        ] {
            assert_eq!((refused.code, refused.reason), (ErrorCode::MemoryShort, Some(reason)));
            let figure = |name: &str| match refused.arguments.get(name) {
                Some(Argument::Number(figure)) => *figure,
                other => panic!("{name}: {other:?}"),
            };
            assert_eq!(figure("free"), CARD);
            assert!(figure("needed") > CARD, "{refused:?}");
            let offered = refused.message.contains("--device cpu");
            assert_eq!(offered, reason == Reason::CardMemory, "{refused}");
        }
        assert!(card.engine.loaded().is_empty());
    }
}

#[tokio::test]
async fn the_processor_computes_the_model_when_that_is_set() {
    let _alone = ALONE.lock().await;
    let right = hear(MlxEngine::start().generate(question("What is 347 + 589?", Thinking::Off))).await;
    let card = SmallCard::new(Some(Arc::new(Plenty)));
    load(&card.engine).await.unwrap_err();
    card.engine.set_device(ComputeDevice::Cpu);
    // Sent at once, as by the button of the error.
    let heard = hear(card.engine.generate(question("What is 347 + 589?", Thinking::Off))).await;
    assert_eq!(heard.done().tokens, right.done().tokens);
    assert_eq!(heard.text, right.text);
    assert_eq!(card.engine.loaded()[0].device, "cpu");
    assert!(!card.engine.has_card(), "the card is only pretended");
}

#[tokio::test]
async fn another_device_ejects_the_models_once_the_answers_have_ended() {
    let _alone = ALONE.lock().await;
    let engine = MlxEngine::start();
    engine.pretend_gpu().unwrap();
    assert_eq!(load(&engine).await.unwrap(), "cuda");
    engine.set_device(ComputeDevice::Auto);
    assert_eq!(load(&engine).await.unwrap(), "cuda", "that is no change");
    let running = engine.generate(story(30));
    engine.set_device(ComputeDevice::Cpu);
    assert_eq!(hear(running).await.tokens.len(), 30, "it ends as it would have");
    assert_eq!(load(&engine).await.unwrap(), "cpu");
    engine.set_device(ComputeDevice::Cpu);
    assert_eq!(engine.loaded().len(), 1, "that is no change");
    engine.unload_all().await.unwrap();
    assert_eq!(engine.inspect().unwrap().living, 0);
}

#[tokio::test]
async fn a_device_that_the_host_chose_stays() {
    let _alone = ALONE.lock().await;
    let engine = MlxEngine::with_options(EngineOptions {
        device: Some(ComputeDevice::Cpu),
        ..EngineOptions::default()
    });
    assert_eq!(load(&engine).await.unwrap(), "cpu");
    engine.set_device(ComputeDevice::Auto);
    engine.memory().await.unwrap();
    assert_eq!(engine.loaded().len(), 1);
}
