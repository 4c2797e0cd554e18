//! MiniCPM-V: the whole image at about the size of a square, then slices of about that size if it has more pixels.

use protocol::ImageDetail;
use serde::Serialize;

use super::view::{merged, single};
use super::ImagePlan;

/// How an image is cut into slices (`image_processing_pil_minicpmv4_6.py` of transformers).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slices {
    /// The side of the square that has about as many pixels as a view.
    pub scale: u32,
    /// The most slices; 1: none.
    pub most: u32,
    /// The side of a patch.
    pub patch: u32,
    /// Patches on a side of a token.
    pub merge: u32,
}

impl Slices {
    pub(super) fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> ImagePlan {
        let plans = (1..=self.most.max(1))
            .rev()
            .map(|most| self.at_most(width, height, most));
        let mut smallest = None;
        for plan in plans {
            if plan.tokens() <= detail.most_tokens() as usize {
                return plan;
            }
            smallest = Some(plan);
        }
        smallest.unwrap_or_else(|| self.at_most(width, height, 1))
    }

    fn at_most(&self, width: u32, height: u32, most: u32) -> ImagePlan {
        let (w, h) = (f64::from(width), f64::from(height));
        let size = |size: (f64, f64)| merged(self.whole(size.0), self.whole(size.1), self.patch, self.merge);
        let Some((rows, columns)) = self.grid(w, h, most) else {
            return single(size(self.scaled(w, h)));
        };
        // It has more pixels than the square, so that it is scaled in any case.
        let whole = size(self.scaled(w, h));
        let part = |side: f64, parts: u32| {
            let parts = f64::from(parts);
            ((side / parts).round_ties_even() * parts).max(parts) / parts
        };
        let slice = size(self.scaled(part(w, columns), part(h, rows)));
        let mut views = vec![slice; (rows * columns) as usize];
        views.push(whole);
        let canvas = (columns * slice.width, rows * slice.height);
        ImagePlan {
            resized: canvas,
            steps: vec![canvas],
            views,
            tiles: Some((rows, columns)),
            whole: true,
            joined: None,
        }
    }

    /// Width and height of this shape with about as many pixels as the square.
    fn scaled(&self, width: f64, height: f64) -> (f64, f64) {
        let ratio = width / height;
        let height = (f64::from(self.scale) / ratio.sqrt()).trunc();
        ((height * ratio).trunc(), height)
    }

    /// The closest number of whole tokens, in pixels.
    fn whole(&self, side: f64) -> u32 {
        let unit = f64::from(self.patch * self.merge);
        ((side / unit).round_ties_even() * unit).max(unit) as u32
    }

    /// Rows and columns of slices whose shape is closest to the image's; of equal ones the most rows.
    fn grid(&self, width: f64, height: f64, most: u32) -> Option<(u32, u32)> {
        let ratio = (width / height).ln();
        let square = f64::from(self.scale) * f64::from(self.scale);
        let count = (width * height / square).ceil().min(f64::from(most)) as u32;
        if count <= 1 {
            return None;
        }
        let (mut best, mut least) = ((1, 1), f64::INFINITY);
        for count in [count - 1, count, count + 1] {
            if count == 1 || count > most {
                continue;
            }
            for rows in (1..=count).filter(|rows| count.is_multiple_of(*rows)) {
                let columns = count / rows;
                let error = (ratio - (f64::from(columns) / f64::from(rows)).ln()).abs();
                if error < least || (error == least && rows > best.0) {
                    (best, least) = ((rows, columns), error);
                }
            }
        }
        Some(best)
    }
}
