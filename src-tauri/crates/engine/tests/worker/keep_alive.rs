//! Models leave memory when nothing used them for their time, and the worker sleeps until then.

use std::time::Duration;

use engine::MlxEngine;
use protocol::{Engine, LocalEngine, Request};
use tokio::time::timeout;

use crate::common::{hear, pebble, story};

/// Hangs end after this.
const LIMIT: Duration = Duration::from_secs(300);

const HOUR: Duration = Duration::from_secs(3600);

fn kept(time: Option<Duration>) -> Request {
    Request {
        keep_alive: time,
        ..story(8)
    }
}

async fn loaded() -> MlxEngine {
    let engine = MlxEngine::start();
    let mut events = engine.load(pebble());
    while events.recv().await.is_some() {}
    assert!(stays(&engine).await);
    engine
}

/// True if the model is loaded once the worker has nothing to do.
async fn stays(engine: &MlxEngine) -> bool {
    let mut activity = engine.follow();
    timeout(LIMIT, activity.wait_for(|activity| !activity.busy))
        .await
        .unwrap()
        .unwrap();
    // The second call is taken after whatever was due at the first has left.
    engine.inspect().unwrap();
    engine.inspect().unwrap();
    !engine.loaded().is_empty()
}

async fn leaves(engine: &MlxEngine) {
    let mut activity = engine.follow();
    timeout(LIMIT, activity.wait_for(|activity| activity.loaded.is_empty()))
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_model_leaves_after_its_time_and_the_worker_sleeps_until_then() {
    let engine = loaded().await;
    hear(engine.generate(kept(None))).await.done();
    assert!(stays(&engine).await);
    hear(engine.generate(kept(Some(HOUR)))).await.done();
    engine.unload_after(Some(2 * HOUR));
    assert!(stays(&engine).await);
    assert_eq!(engine.wakeups(), 0, "nothing is due");

    hear(engine.generate(kept(Some(Duration::from_millis(20)))))
        .await
        .done();
    leaves(&engine).await;
    assert!(engine.wakeups() <= 1, "it sleeps until the time");
    let woken = engine.wakeups();

    // The time of a request ends with the model that it was given to.
    hear(engine.generate(kept(None))).await.done();
    engine.unload_after(None);
    assert!(stays(&engine).await);
    assert_eq!(engine.wakeups(), woken);
}

#[tokio::test]
async fn a_later_time_replaces_an_earlier_one_and_no_time_changes_nothing() {
    let engine = loaded().await;
    hear(engine.generate(kept(Some(HOUR)))).await.done();
    hear(engine.generate(kept(Some(Duration::MAX)))).await.done();
    hear(engine.generate(kept(None))).await.done();
    assert!(stays(&engine).await);
    hear(engine.generate(kept(Some(Duration::ZERO)))).await.done();
    leaves(&engine).await;
}

#[tokio::test]
async fn the_time_for_all_models_limits_that_of_a_request() {
    let engine = loaded().await;
    hear(engine.generate(kept(Some(Duration::MAX)))).await.done();
    engine.unload_after(Some(Duration::ZERO));
    leaves(&engine).await;
    assert_eq!(engine.wakeups(), 0, "what is due at once is not waited for");
}

#[tokio::test]
async fn a_model_in_use_stays_whatever_its_time() {
    let engine = loaded().await;
    engine.unload_after(Some(Duration::ZERO));
    leaves(&engine).await;
    let (one, other) = (story(60), kept(Some(Duration::ZERO)));
    let (one, other) = tokio::join!(hear(engine.generate(one)), hear(engine.generate(other)));
    let loads = [one, other].map(|heard| usize::from(heard.done().timing.load_ms > 0.0));
    assert_eq!(loads.iter().sum::<usize>(), 1, "it stays until both have ended");
    leaves(&engine).await;
}

#[tokio::test]
async fn an_idle_model_is_unloaded_at_once_by_request() {
    let engine = loaded().await;
    assert!(!engine.unload_idle("another").await.unwrap());
    let mut activity = engine.follow();
    let answer = tokio::spawn(hear(engine.generate(story(200))));
    timeout(LIMIT, activity.wait_for(|activity| activity.busy))
        .await
        .unwrap()
        .unwrap();
    assert!(!engine.unload_idle("pebble").await.unwrap(), "it answers");
    answer.await.unwrap().done();
    assert!(stays(&engine).await);
    assert!(engine.unload_idle("pebble").await.unwrap());
    assert!(engine.loaded().is_empty());
    assert!(!engine.unload_idle("pebble").await.unwrap());
}
