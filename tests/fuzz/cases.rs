//! The number of files that proptest tries of each fuzz target.

use proptest::prelude::ProptestConfig;

/// `quick` with every test, `full` with `PONDER_FULL`.
pub fn cases(quick: u32, full: u32) -> ProptestConfig {
    let all = std::env::var_os("PONDER_FULL").is_some();
    ProptestConfig {
        cases: if all { full } else { quick },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
