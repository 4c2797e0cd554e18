//! Holding sleep off.

/// Holds off the sleep that comes when nobody touches the computer, until it is dropped. Whoever closes the lid or
/// chooses sleep gets it.
#[must_use]
pub struct KeepAwake(#[expect(dead_code, reason = "it is held, not read")] keepawake::KeepAwake);

impl KeepAwake {
    /// Holds sleep off for `reason`, which the system shows to people who ask what does. Waits for the system's answer.
    ///
    /// # Errors
    /// If this system has no service for it.
    pub fn new(reason: &str) -> Result<Self, keepawake::Error> {
        keepawake::Builder::default()
            .idle(true)
            .app_name("Ponder")
            .reason(reason)
            .create()
            .map(Self)
    }
}
