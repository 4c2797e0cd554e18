use clap::builder::RangedU64ValueParser;

/// The value of an option that counts something that has to be there.
pub fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

/// The value of an option that counts no more than this.
pub fn up_to(most: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=most)
}

/// The tokens of an answer whose speed is measured between the first and the last.
pub fn at_least_two() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(2..)
}
