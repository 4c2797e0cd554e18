//! Chats of other programs, made of words and bytes. `PONDER_FULL` tries more.
#![allow(clippy::unwrap_used)]

#[path = "../../../../../tests/fuzz/cases.rs"]
mod cases;
mod target;

use cases::cases;
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(300, 20_000))]

    #[test]
    fn imports_of_any_words_are_whole_or_refused(data in prop::collection::vec(any::<u8>(), 0..300)) {
        target::run(&data);
    }
}
