//! `ponder ask` on a tiny random model of each family.

use crate::family_models::family_models;
use crate::support::pebble::text;
use crate::support::run_json;

#[test]
fn every_family_answers() {
    let Some(models) = family_models() else { return };
    let mut tokens = 0;
    for model in &models.folders {
        let ask = [
            "ask",
            "--json",
            "--model",
            text(model),
            "--temperature",
            "0",
            "--max-tokens",
            "12",
            "Hello!",
        ];
        let events = run_json(models.home.path(), &ask);
        let done = events.last().expect("there are events");
        assert_eq!(done["type"], "done", "{model:?}: {events:?}");
        tokens += done["usage"]["completion_tokens"].as_u64().expect("a count");
    }
    let kinds = models.folders.len();
    // A random model may end at once; not all do.
    assert!(tokens > 6 * kinds as u64, "{tokens} tokens");
    println!("report: ponder ask answered for {kinds} kinds of model with {tokens} tokens");
}
