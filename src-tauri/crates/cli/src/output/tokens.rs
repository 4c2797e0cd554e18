/// A context length for people, such as `40K`: in binary thousands where it is a multiple of one.
pub fn context_length(tokens: u32) -> String {
    match tokens {
        0..1000 => tokens.to_string(),
        _ if tokens.is_multiple_of(1024) => format!("{}K", tokens / 1024),
        _ => format!("{}K", (tokens + 500) / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::context_length;

    #[test]
    fn a_context_length_is_told_as_model_cards_tell_it() {
        let lengths = [512, 4096, 16_384, 40_960, 131_072, 200_000, 1_048_576];
        assert_eq!(
            lengths.map(context_length),
            ["512", "4K", "16K", "40K", "128K", "200K", "1024K"]
        );
    }
}
