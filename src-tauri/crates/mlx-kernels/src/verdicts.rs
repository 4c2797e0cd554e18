//! Comparisons of kernels that came out right, kept beside the compiled programs, because a load would wait for each of
//! them anew. They hold for a platform: the version of MLX, the card and its driver.

use std::fs;
use std::path::Path;

/// True if the kernel with these numbers was right on this platform.
pub fn is_kept(file: &Path, platform: &str, numbers: &[i32]) -> bool {
    let line = line(numbers);
    fs::read_to_string(file).is_ok_and(|text| holds(&text, platform) && text.lines().any(|known| known == line))
}

/// Keeps that the kernel with these numbers is right. Where that fails, it is compared again.
pub fn keep(file: &Path, platform: &str, numbers: &[i32]) {
    let known = fs::read_to_string(file).ok().filter(|text| holds(text, platform));
    let text = known.unwrap_or_else(|| format!("{platform}\n")) + &line(numbers) + "\n";
    let partial = file.with_extension(format!("right.{}", std::process::id()));
    if let Err(error) = fs::write(&partial, text).and_then(|()| fs::rename(&partial, file)) {
        tracing::warn!(%error, file = %file.display(), "a kernel is compared again by the next process");
    }
}

fn holds(text: &str, platform: &str) -> bool {
    text.lines().next() == Some(platform)
}

fn line(numbers: &[i32]) -> String {
    let words: Vec<String> = numbers.iter().map(i32::to_string).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_hold_for_their_platform() {
        let folder = std::env::temp_dir().join(format!("ponder-verdicts-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("kernel.right");
        assert!(!is_kept(&file, "MLX 1; card", &[1, 2]));
        keep(&file, "MLX 1; card", &[1, 2]);
        keep(&file, "MLX 1; card", &[1, 3]);
        assert!(is_kept(&file, "MLX 1; card", &[1, 2]) && is_kept(&file, "MLX 1; card", &[1, 3]));
        // Numbers that another line begins with, and another driver.
        assert!(!is_kept(&file, "MLX 1; card", &[1]) && !is_kept(&file, "MLX 2; card", &[1, 2]));
        // A new driver forgets what the old one did.
        keep(&file, "MLX 2; card", &[5]);
        assert!(is_kept(&file, "MLX 2; card", &[5]) && !is_kept(&file, "MLX 1; card", &[1, 2]));
        fs::write(&file, [0xff, 0]).unwrap();
        assert!(!is_kept(&file, "MLX 2; card", &[5]));
        fs::remove_dir_all(&folder).unwrap();
    }
}
