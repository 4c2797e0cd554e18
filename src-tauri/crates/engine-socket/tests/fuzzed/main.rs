//! Connections of words and bytes. `PONDER_FULL` tries more.
#![allow(clippy::unwrap_used)]

#[path = "../../../../../tests/fuzz/cases.rs"]
mod cases;
mod target;

use cases::cases;
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(60, 2000))]

    #[test]
    fn the_socket_serves_on_after_any_bytes(data in prop::collection::vec(any::<u8>(), 0..60)) {
        target::run(&data);
    }
}
