//! Ids of tool calls.

use uuid::Uuid;

const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Nine random letters and digits, which is the form that Mistral's templates ask for.
pub(crate) fn call_id() -> String {
    let mut random = Uuid::now_v7().as_u128();
    let digit = std::iter::from_fn(|| {
        let digit = DIGITS[(random % 62) as usize];
        random /= 62;
        Some(char::from(digit))
    });
    digit.take(9).collect()
}
