use std::io::{BufRead, Write};

/// Asks on the terminal, beside the output, which a program may read. Anything but `y` and `yes` is a no.
///
/// # Errors
/// When the terminal cannot be read.
pub fn confirmed(question: &str) -> std::io::Result<bool> {
    eprint!("{question}");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
