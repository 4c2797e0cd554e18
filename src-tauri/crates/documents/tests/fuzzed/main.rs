//! Documents made of words, marks and bytes. `PONDER_FULL` tries more.
#![allow(clippy::unwrap_used)]

mod archives;
#[path = "../../../../../tests/fuzz/cases.rs"]
mod cases;
mod messages;
mod target;
#[path = "../../../../../tests/fuzz/words.rs"]
mod words;

use cases::cases;
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(60, 4000))]

    #[test]
    fn pdfs_of_any_bytes_end(data in prop::collection::vec(any::<u8>(), 0..400)) {
        target::run(&data);
    }

    #[test]
    fn archives_of_any_marks_end(data in prop::collection::vec(any::<u8>(), 0..400)) {
        archives::run(&data);
    }

    #[test]
    fn messages_of_any_words_end(data in prop::collection::vec(any::<u8>(), 0..400)) {
        messages::run(&data);
    }
}
