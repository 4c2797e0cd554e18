//! Files made of words that mean something, so that few bytes of a fuzzer reach deep.

/// A byte below this is a word; another one is itself.
const LITERAL: u8 = 0xC0;

/// The file that the bytes stand for.
pub fn spelled(bytes: &[u8], words: &[&str]) -> Vec<u8> {
    let mut file = Vec::new();
    for byte in bytes {
        match *byte {
            ..LITERAL => file.extend(words[usize::from(*byte) % words.len()].bytes()),
            literal => file.push(literal),
        }
    }
    file
}
