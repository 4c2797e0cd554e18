//! Multimodal positions: which pairs of a head turn by what of an image token's place.

use crate::config::fields::Fields;
use crate::error::{unusable, Error};

/// The coordinates by which pairs rotate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sections {
    /// How many pairs turn by the time (or, if they are [counted](SectionOrder::Counted), by the place in the prompt),
    /// by the row, by the column and by the number of the image.
    pub pairs: [u32; 4],
    /// Their order within a head.
    pub order: SectionOrder,
}

/// The order of the pairs, and what is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectionOrder {
    /// Blocks: time, row, column (Qwen2-VL).
    Blocks,
    /// The three take turns (Qwen3-VL).
    Interleaved,
    /// Rows and columns take turns, before the time (ERNIE 4.5 VL).
    TimeLast,
    /// Blocks: place in the prompt, column, row, image. Rows, columns and images count from 0, and the place goes
    /// on with every token (HunyuanOCR).
    Counted,
}

impl Sections {
    /// The coordinate by which a pair rotates: 0 the position, 1 the row, 2 the column, 3 the image.
    pub fn axis(&self, pair: usize) -> usize {
        let [first, rows, columns, _] = self.pairs.map(|pairs| pairs as usize);
        match (self.order, pair % 3) {
            (SectionOrder::Interleaved, 1) if pair < 3 * rows => 1,
            (SectionOrder::Interleaved, 2) if pair < 3 * columns => 2,
            (SectionOrder::Interleaved, _) => 0,
            (SectionOrder::TimeLast, _) if pair >= rows + columns => 0,
            (SectionOrder::TimeLast, _) => 1 + pair % 2,
            (_, _) if pair < first => 0,
            (SectionOrder::Blocks, _) if pair < first + rows => 1,
            (SectionOrder::Blocks, _) => 2,
            (SectionOrder::Counted, _) if pair < first + columns => 2,
            (SectionOrder::Counted, _) if pair < first + columns + rows => 1,
            (SectionOrder::Counted, _) => 3,
        }
    }

    pub(crate) fn parse(table: Fields<'_>) -> Result<Option<Self>, Error> {
        const FIELD: &str = "mrope_section";
        if let Some(parts) = table.numbers("xdrope_section")? {
            return Self::counted("xdrope_section", &parts).map(Some);
        }
        match table.numbers(FIELD)?.as_deref() {
            None => Ok(None),
            Some([time, rows, columns]) => Ok(Some(Self {
                pairs: [*time as u32, *rows as u32, *columns as u32, 0],
                order: match table.flag("mrope_interleaved")? {
                    Some(true) => SectionOrder::Interleaved,
                    _ => SectionOrder::Blocks,
                },
            })),
            // The name that transformers gives it.
            Some(parts) => Self::counted(FIELD, parts).map(Some),
        }
    }

    /// Parts for the place, column, row and image; the place may be left out.
    fn counted(field: &'static str, parts: &[f32]) -> Result<Self, Error> {
        let (place, column, row, image) = match *parts {
            [place, column, row, image] => (place, column, row, image),
            [column, row, image] => (0.0, column, row, image),
            _ => return unusable(field, format!("it has {} parts, not 3 or 4", parts.len())),
        };
        Ok(Self {
            pairs: [place, row, column, image].map(|pairs| pairs as u32),
            order: SectionOrder::Counted,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{SectionOrder, Sections};

    #[test]
    fn counted_parts_lie_as_they_are_written() {
        let axes = |parts: &[f32]| -> Vec<usize> {
            let sections = Sections::counted("xdrope_section", parts).unwrap();
            assert_eq!(sections.order, SectionOrder::Counted);
            (0..parts.iter().sum::<f32>() as usize)
                .map(|pair| sections.axis(pair))
                .collect()
        };
        assert_eq!(axes(&[2.0, 1.0, 3.0, 2.0]), [0, 0, 2, 1, 1, 1, 3, 3]);
        assert_eq!(axes(&[1.0, 2.0, 1.0]), [2, 1, 1, 3]);
        assert!(Sections::counted("xdrope_section", &[4.0, 4.0]).is_err());
    }

    #[test]
    fn rows_and_columns_take_turns_before_the_time() {
        let sections = Sections {
            pairs: [2, 3, 3, 0],
            order: SectionOrder::TimeLast,
        };
        let axes: Vec<usize> = (0..8).map(|pair| sections.axis(pair)).collect();
        assert_eq!(axes, [1, 2, 1, 2, 1, 2, 0, 0]);
    }
}
