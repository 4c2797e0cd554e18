//! Drawings made of words and bytes. `PONDER_FULL` tries more.
#![allow(clippy::unwrap_used)]

mod target;

use proptest::prelude::*;

fn cases() -> ProptestConfig {
    ProptestConfig {
        cases: if std::env::var_os("PONDER_FULL").is_some() {
            10_000
        } else {
            100
        },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn drawings_of_any_bytes_end(data in prop::collection::vec(any::<u8>(), 0..120)) {
        target::run(&data);
    }
}
