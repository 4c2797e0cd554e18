//! Values of a file's metadata.

/// A value of the metadata. Whole numbers of every width and sign are one kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(i128),
    /// A number with a fraction.
    Float(f32),
    /// A number of 64 bits with a fraction.
    Double(f64),
    /// True or false.
    Flag(bool),
    /// A text.
    Text(String),
    /// Whole numbers.
    Integers(Vec<i64>),
    /// Numbers with a fraction.
    Floats(Vec<f32>),
    /// Truths.
    Flags(Vec<bool>),
    /// Texts.
    Texts(Vec<String>),
}

impl Value {
    /// A whole number that is not negative; of a list, the one that all its entries are.
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            Self::Integers(numbers) => {
                let first = numbers.first()?;
                let alike = numbers.iter().all(|number| number == first);
                alike.then(|| u64::try_from(*first).ok()).flatten()
            }
            _ => None,
        }
    }

    /// A number; of a 32 bit float the shortest decimal that is read as the same, which is what people wrote.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Float(number) => number.to_string().parse().ok(),
            Self::Double(number) => Some(*number),
            _ => None,
        }
    }

    /// True or false.
    pub fn flag(&self) -> Option<bool> {
        match self {
            Self::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    /// A text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Texts.
    pub fn texts(&self) -> Option<&[String]> {
        match self {
            Self::Texts(texts) => Some(texts),
            _ => None,
        }
    }

    /// Whole numbers.
    pub fn integers(&self) -> Option<&[i64]> {
        match self {
            Self::Integers(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// Truths.
    pub fn flags(&self) -> Option<&[bool]> {
        match self {
            Self::Flags(flags) => Some(flags),
            _ => None,
        }
    }

    /// Numbers with a fraction.
    pub fn floats(&self) -> Option<&[f32]> {
        match self {
            Self::Floats(numbers) => Some(numbers),
            _ => None,
        }
    }
}
