//! Text files that are read whole, up to a limit: a device may never end.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{ensure, Context, Result};

/// The most bytes of a file of messages, a schema or a response, images in it included.
const LONGEST: u64 = 256 << 20;

/// The text of a file; `file` is its name in errors, such as "messages file".
///
/// # Errors
/// When it cannot be read, is longer than 256 MB, or is no text.
pub(super) fn read_text(path: &Path, file: &str) -> Result<String> {
    let unread = || format!("the {file} {} cannot be read", path.display());
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text))
        .with_context(unread)?;
    ensure!(
        text.len() as u64 <= LONGEST,
        "the {file} {} is larger than 256 MB",
        path.display()
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_never_ends_is_refused() {
        let error = read_text(Path::new("/dev/zero"), "messages file").unwrap_err();
        assert_eq!(error.to_string(), "the messages file /dev/zero is larger than 256 MB");
    }
}
