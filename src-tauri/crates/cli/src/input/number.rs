use std::fmt::Display;
use std::str::FromStr;

use protocol::SAMPLING_OPTIONS;

/// A parser of whole numbers from `low` to `high`.
pub fn whole<N>(low: N, high: N) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static
where
    N: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static,
{
    move |text| match text.parse::<N>() {
        Ok(number) if number >= low && number <= high => Ok(number),
        // A number that this type cannot have is out of its bounds, too.
        _ if text.parse::<i128>().is_ok() => Err(format!("it must be between {low} and {high}")),
        _ => Err("it is not a whole number".to_owned()),
    }
}

/// A parser of whole numbers from `low` up.
pub fn at_least(low: u32) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    let within = whole(low, u32::MAX);
    move |text| match within(text) {
        Err(_) if text.parse::<i128>().is_ok_and(|number| number < i128::from(low)) => {
            Err(format!("it must be {low} or more"))
        }
        outcome => outcome,
    }
}

/// A parser of a field of [`protocol::Sampling`], within its bounds.
pub(super) fn sampling_option(field: &'static str) -> impl Fn(&str) -> Result<f32, String> + Clone + Send + Sync {
    move |text| {
        let number: f32 = text.parse().map_err(|_| "it is not a number".to_owned())?;
        let option = SAMPLING_OPTIONS.iter().find(|option| option.field == field);
        match option.and_then(|option| option.bounds.as_ref()) {
            Some(bounds) if !bounds.contains(&number) => {
                Err(format!("it must be between {} and {}", bounds.start(), bounds.end()))
            }
            _ => Ok(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_their_bounds_are_refused_with_the_bounds() {
        assert_eq!(whole(1u16, 256)("256"), Ok(256));
        assert_eq!(whole(1u16, 256)("0"), Err("it must be between 1 and 256".into()));
        assert_eq!(
            whole(0u16, 65535)("80000"),
            Err("it must be between 0 and 65535".into())
        );
        assert_eq!(at_least(512)("512"), Ok(512));
        assert_eq!(at_least(512)("20"), Err("it must be 512 or more".into()));
        assert_eq!(at_least(1)("-1"), Err("it must be 1 or more".into()));
        assert_eq!(at_least(1)("few"), Err("it is not a whole number".into()));
        assert_eq!(sampling_option("top_p")("0.5"), Ok(0.5));
        assert_eq!(sampling_option("top_p")("2"), Err("it must be between 0 and 1".into()));
        assert_eq!(
            sampling_option("temperature")("nan"),
            Err("it must be between 0 and 100".into())
        );
        assert_eq!(sampling_option("temperature")("hot"), Err("it is not a number".into()));
    }

    #[test]
    fn every_option_with_a_flag_has_bounds() {
        for field in [
            "temperature",
            "top_p",
            "min_p",
            "repetition_penalty",
            "presence_penalty",
            "frequency_penalty",
        ] {
            assert!(sampling_option(field)("1000").is_err(), "{field}");
        }
    }
}
