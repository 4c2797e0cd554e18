//! PDFs made of words and bytes. `PONDER_FULL` tries more.
#![allow(clippy::unwrap_used)]

#[path = "../../../../../tests/fuzz/cases.rs"]
mod cases;
mod target;

use cases::cases;
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(60, 4000))]

    #[test]
    fn pdfs_of_any_bytes_end(data in prop::collection::vec(any::<u8>(), 0..400)) {
        target::run(&data);
    }
}
