//! The positions of tokens in a prompt with images, by the rules of the families whose heads rotate by more than the
//! number of tokens before.

use crate::error::{Error, Result};
use crate::layers::{MultimodalRope, Position};
use crate::sequence::prompt_image::PromptImage;

/// The positions of a prompt's tokens.
pub struct ImagePositions {
    kind: MultimodalRope,
    /// Those up to the last one of an image.
    positions: Vec<Position>,
    /// By how much times after the last image differ from the number of tokens before them.
    delta: i32,
}

impl ImagePositions {
    /// Those of a prompt with these images.
    ///
    /// # Errors
    /// If the tokens of an image are no grid.
    pub fn new(kind: MultimodalRope, images: &[PromptImage]) -> Result<Self> {
        let mut positions = Self {
            kind,
            positions: Vec::new(),
            delta: 0,
        };
        for (number, image) in images.iter().enumerate() {
            match kind {
                MultimodalRope::Grid => positions.add_grid(image)?,
                MultimodalRope::Counted => positions.add_counted(image, number)?,
                MultimodalRope::Centred => positions.add_centred(image)?,
            }
        }
        Ok(positions)
    }

    /// By how much the time of the token after `read` others differs from that number.
    pub fn delta(&self, read: usize) -> i32 {
        self.positions
            .get(read)
            .map_or(self.delta, |[time, ..]| *time as i32 - read as i32)
    }

    /// The positions of the tokens from `from` up to `to`.
    pub fn between(&self, from: usize, to: usize) -> Vec<Position> {
        let position = |at: usize| self.positions.get(at).copied().unwrap_or_else(|| self.text(at));
        (from..to).map(position).collect()
    }

    /// The position of token `at`, which is text after all images so far.
    fn text(&self, at: usize) -> Position {
        let time = (at as i32 + self.delta) as f32;
        match self.kind {
            MultimodalRope::Grid | MultimodalRope::Counted => [time; 4],
            MultimodalRope::Centred => [time, 0.0, 0.0, 0.0],
        }
    }

    /// Text up to token `end`.
    fn add_text(&mut self, end: usize) {
        let text: Vec<Position> = (self.positions.len()..end).map(|at| self.text(at)).collect();
        self.positions.extend(text);
    }

    /// An image begins at the time t after what is before it: its tokens have that time, their rows and columns count
    /// from it, and the text goes on after the greatest of them.
    fn add_grid(&mut self, image: &PromptImage) -> Result<()> {
        let mut places = &image.places[..];
        for view in &image.plan.views {
            let (of_view, rest) = places.split_at(places.len().min(view.features as usize));
            places = rest;
            let Some(start) = of_view.first().copied() else {
                continue;
            };
            let (rows, columns) = (view.tokens.0 as i32, view.tokens.1 as i32);
            check_grid(of_view, rows, columns, rows * columns)?;
            self.add_text(start);
            let begin = start as i32 + self.delta;
            self.positions.extend((0..rows * columns).map(|index| {
                let (row, column) = (begin + index / columns, begin + index % columns);
                [begin as f32, row as f32, column as f32, begin as f32]
            }));
            self.delta += rows.max(columns) - rows * columns;
        }
        Ok(())
    }

    /// All tokens have the positions that they would have as text, but those between the first and the last of an image
    /// count rows, columns (of which each row has one more, for its end) and images from 0.
    fn add_counted(&mut self, image: &PromptImage, number: usize) -> Result<()> {
        for view in &image.plan.views {
            let (rows, columns) = (view.tokens.0 as i32, view.tokens.1 as i32 + 1);
            check_grid(&image.places, rows, columns, rows * columns + 2)?;
            let Some(start) = image.places.first() else { continue };
            self.add_text(start + 1);
            let first = self.positions.len() as i32;
            self.positions.extend((0..rows * columns).map(|index| {
                let (row, column) = (index / columns, index % columns);
                [(first + index) as f32, row as f32, column as f32, number as f32]
            }));
        }
        Ok(())
    }

    /// All of an image's run has one position. Rows lie from minus to plus the root of how much higher than wide it is,
    /// columns likewise.
    fn add_centred(&mut self, image: &PromptImage) -> Result<()> {
        self.add_text(image.run.start);
        let [time, ..] = self.text(image.run.start);
        let first = self.positions.len();
        self.positions.resize(image.run.end, [time, 0.0, 0.0, 0.0]);
        for view in &image.plan.views {
            let (rows, columns) = (view.tokens.0 as i32, view.tokens.1 as i32);
            check_grid(&image.places, rows, columns, rows * columns)?;
            let (high, wide) = (rows as f32, columns as f32);
            let (tallest, widest) = ((high / wide).sqrt(), (wide / high).sqrt());
            let along =
                |index: i32, count: i32, most: f32| -most + 2.0 * most * index as f32 / (count - 1).max(1) as f32;
            for (index, at) in (0..).zip(&image.places) {
                let (row, column) = (index / columns, index % columns);
                self.positions[*at] = [time, along(row, rows, tallest), along(column, columns, widest), 0.0];
            }
        }
        self.delta += 1 - (image.run.end - first) as i32;
        Ok(())
    }
}

/// Refuses tokens that do not lie one after another, or are not as many as this grid has.
fn check_grid(places: &[usize], rows: i32, columns: i32, count: i32) -> Result<()> {
    let joined = places
        .iter()
        .zip(places.first().copied().unwrap_or(0)..)
        .all(|(place, expected)| *place == expected);
    if joined && places.len() as i32 == count && rows > 0 && columns > 0 {
        return Ok(());
    }
    Err(Error::BadRequest(format!(
        "an image's {} tokens are no grid of {rows} by {columns}",
        places.len()
    )))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sequence::prompt_image::tests::image;

    #[test]
    fn text_goes_on_after_the_longer_side_of_an_image() {
        // Two tokens, an image of 2 by 3, a token, an image of 1 by 2.
        let positions = ImagePositions::new(MultimodalRope::Grid, &[image(2, 2, 3), image(9, 1, 2)]).unwrap();
        let expected = [
            [0, 0, 0],
            [1, 1, 1],
            [2, 2, 2],
            [2, 2, 3],
            [2, 2, 4],
            [2, 3, 2],
            [2, 3, 3],
            [2, 3, 4],
            [5, 5, 5],
            [6, 6, 6],
            [6, 6, 7],
        ];
        let found: Vec<[i32; 3]> = positions
            .positions
            .iter()
            .map(|[time, row, column, _]| [*time as i32, *row as i32, *column as i32])
            .collect();
        assert_eq!(found, expected);
        // The token after them, the twelfth, stands at position 8.
        assert_eq!((positions.delta(11), positions.delta(3)), (8 - 11, 2 - 3));
    }

    #[test]
    fn counted_positions_begin_anew_in_each_image_and_text_goes_on() {
        // An image of 1 by 2 at 2 has a row of 3 and two around it.
        let mut wide = image(2, 1, 2);
        wide.places = (2..7).collect();
        let positions = ImagePositions::new(MultimodalRope::Counted, &[wide]).unwrap();
        let expected = [
            [2.0; 4],
            [3.0, 0.0, 0.0, 0.0],
            [4.0, 0.0, 1.0, 0.0],
            [5.0, 0.0, 2.0, 0.0],
            [6.0; 4],
        ];
        assert_eq!(positions.between(2, 7), expected);
        assert_eq!((positions.delta(4), positions.delta(9)), (0, 0));
    }

    #[test]
    fn centred_positions_hold_the_time_for_a_whole_run() {
        // A mark at 1, an image of 1 by 4, a mark at 6.
        let positions = ImagePositions::new(MultimodalRope::Centred, &[image(2, 1, 4)]).unwrap();
        let found = positions.between(0, 8);
        let times: Vec<f32> = found.iter().map(|[time, ..]| *time).collect();
        assert_eq!(times, [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0]);
        assert_eq!(found[2], [1.0, -0.5, -2.0, 0.0]);
        assert_eq!(found[5], [1.0, -0.5, 2.0, 0.0]);
        assert_eq!((positions.delta(7), positions.delta(20)), (-5, -5));
    }
}
