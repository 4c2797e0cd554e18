use std::path::Path;

/// The reference of a model as it is known from anywhere: the path of a folder is made absolute.
pub fn absolute(text: &str) -> String {
    let path = Path::new(text);
    let is_path = text.starts_with('.') || text.starts_with('/');
    match path.canonicalize() {
        Ok(full) if is_path && full.is_dir() => full.to_string_lossy().into_owned(),
        _ => text.trim_end_matches('/').to_owned(),
    }
}
