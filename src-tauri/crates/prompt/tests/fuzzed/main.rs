//! Templates and answers made of words and bytes. `PONDER_FULL` tries more.
#![allow(clippy::unwrap_used)]

#[path = "../../../../../tests/fuzz/cases.rs"]
mod cases;
mod template;
mod tool_calls;
#[path = "../../../../../tests/fuzz/words.rs"]
mod words;

use cases::cases;
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(200, 20_000))]

    #[test]
    fn templates_of_any_text_end(data in prop::collection::vec(any::<u8>(), 0..120)) {
        template::run(&data);
    }

    #[test]
    fn answers_of_any_text_are_the_same_in_pieces(data in prop::collection::vec(any::<u8>(), 0..100)) {
        tool_calls::run(&data);
    }
}
