//! The order of passages by a reranker, and without one.

use std::sync::atomic::Ordering;

use api::{LocalModel, ModelPlace};
use protocol::ModelKind;

use super::engine::Shelf;
use super::World;

fn reranker(reference: &str, bytes: u64) -> LocalModel {
    LocalModel {
        reference: reference.into(),
        name: reference.into(),
        kind: ModelKind::Reranker,
        built_in: false,
        path: "/models".into(),
        revision: None,
        family: None,
        quantization: None,
        bytes,
        context: Some(512),
        thinking: None,
        thought: None,
        sampling: Default::default(),
        sampling_by_makers: true,
        supports_vision: false,
        vision_problem: None,
        problem: None,
        incomplete: false,
        place: ModelPlace::Cache,
        last_used_at: None,
        revisions: Vec::new(),
        quantizable: false,
        adapter_of: None,
    }
}

async fn ferries(world: &World) -> String {
    // The words of the first fit the question best.
    world.write("a.md", "The ferry sails: ferry, ferry. rank 1 it is.");
    world.write("b.md", "The ferry sails at noon. rank 3 it is.");
    world.write("c.md", "No number, so that a ferry here has no score.");
    world.write("d.md", "Boats, and one ferry among many of them. rank 2 it is.");
    world.added().await
}

#[tokio::test]
async fn a_reranker_decides_which_passages_come_first() {
    let world = World::with(Shelf(vec![reranker("large", 9), reranker("small", 2)]));
    let id = ferries(&world).await;
    let found = world.found(&id, "when does the ferry sail").await;
    let ranks: Vec<bool> = ["rank 3", "rank 2", "rank 1", "no score"]
        .iter()
        .zip(&found)
        .map(|(wanted, text)| text.contains(wanted))
        .collect();
    assert_eq!((ranks, found.len()), (vec![true; 4], 4), "{found:#?}");
    let view = world.knowledge.view().await.unwrap().reranking;
    assert_eq!((view.model.as_deref(), view.problem), (Some("small"), None));
    // A few are wanted: they are the best of all that were found.
    let best = world.knowledge.search(&[&id], "ferry", 1).await.unwrap().passages;
    assert!(best.len() == 1 && best[0].text.contains("rank 3"), "{best:?}");
}

#[tokio::test]
async fn without_a_reranker_and_with_a_broken_one_the_order_is_that_of_the_search() {
    let plain = World::new();
    let id = ferries(&plain).await;
    let wanted = plain.found(&id, "when does the ferry sail").await;
    assert!(wanted[0].contains("rank 1"), "{wanted:#?}");
    let mut incomplete = reranker("incomplete", 1);
    incomplete.problem = Some(protocol::Error::new(
        protocol::ErrorCode::ModelBroken,
        "a file is missing",
    ));
    let world = World::with(Shelf(vec![incomplete]));
    let id = ferries(&world).await;
    assert_eq!(world.found(&id, "when does the ferry sail").await, wanted);

    let world = World::with(Shelf(vec![reranker("broken", 1)]));
    let id = ferries(&world).await;
    world.engine.is_broken.store(true, Ordering::SeqCst);
    assert_eq!(world.found(&id, "when does the ferry sail").await, wanted);
    let problem = world.knowledge.view().await.unwrap().reranking.problem;
    assert_eq!(problem.as_deref(), Some("a file of the reranker is missing"));
    world.engine.is_broken.store(false, Ordering::SeqCst);
    assert!(world.found(&id, "when does the ferry sail").await[0].contains("rank 3"));
    assert_eq!(world.knowledge.view().await.unwrap().reranking.problem, None);
}
