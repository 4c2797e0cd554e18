//! Templates and answers made of words and bytes. `PONDER_FULL` tries more.
#![allow(clippy::unwrap_used)]

mod template;
mod tool_calls;
#[path = "../../../../../tests/fuzz/words.rs"]
mod words;

use proptest::prelude::*;

fn cases() -> ProptestConfig {
    ProptestConfig {
        cases: if std::env::var_os("PONDER_FULL").is_some() {
            20_000
        } else {
            200
        },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn templates_of_any_text_end(data in prop::collection::vec(any::<u8>(), 0..120)) {
        template::run(&data);
    }

    #[test]
    fn answers_of_any_text_are_the_same_in_pieces(data in prop::collection::vec(any::<u8>(), 0..100)) {
        tool_calls::run(&data);
    }
}
