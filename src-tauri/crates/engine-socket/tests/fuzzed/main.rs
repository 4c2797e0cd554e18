//! Connections of words and bytes. `PONDER_FULL` tries more.
#![allow(clippy::unwrap_used)]

mod target;

use proptest::prelude::*;

fn cases() -> ProptestConfig {
    ProptestConfig {
        cases: if std::env::var_os("PONDER_FULL").is_some() {
            2000
        } else {
            60
        },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn the_socket_serves_on_after_any_bytes(data in prop::collection::vec(any::<u8>(), 0..60)) {
        target::run(&data);
    }
}
