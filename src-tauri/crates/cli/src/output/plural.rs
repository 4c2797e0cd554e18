/// A count with its noun, such as `1 chat` or `2 chats`.
pub fn plural(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}
