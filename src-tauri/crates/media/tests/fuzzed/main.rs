//! Drawings made of words and bytes. `PONDER_FULL` tries more.
#![allow(clippy::unwrap_used)]

#[path = "../../../../../tests/fuzz/cases.rs"]
mod cases;
mod target;

use cases::cases;
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(100, 10_000))]

    #[test]
    fn drawings_of_any_bytes_end(data in prop::collection::vec(any::<u8>(), 0..120)) {
        target::run(&data);
    }
}
