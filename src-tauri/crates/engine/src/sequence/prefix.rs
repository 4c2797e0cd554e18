//! The beginning of a sequence, as far as it decides the contents of caches: its tokens, and the images among them,
//! whose tokens are all alike.

use std::ops::Range;

/// An image among the tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageKey {
    /// Its tokens, marks included.
    pub run: Range<usize>,
    /// A hash of its file and of what is done with it.
    pub hash: [u8; 32],
    /// True if its tokens see each other, so that caches which end in the middle of it are of no use.
    pub whole: bool,
}

/// The beginning of a sequence.
#[derive(Debug, Clone, Copy)]
pub struct Prefix<'a> {
    /// Its tokens.
    pub tokens: &'a [u32],
    /// The images among them, in order; more may follow after the tokens.
    pub images: &'a [ImageKey],
}

impl<'a> Prefix<'a> {
    /// Its first tokens, at most `most`.
    pub fn first(self, most: usize) -> Self {
        Self {
            tokens: &self.tokens[..most.min(self.tokens.len())],
            ..self
        }
    }
}

impl<'a> From<&'a [u32]> for Prefix<'a> {
    fn from(tokens: &'a [u32]) -> Self {
        Self { tokens, images: &[] }
    }
}

impl<'a, const LENGTH: usize> From<&'a [u32; LENGTH]> for Prefix<'a> {
    fn from(tokens: &'a [u32; LENGTH]) -> Self {
        Self { tokens, images: &[] }
    }
}

impl<'a> From<&'a Vec<u32>> for Prefix<'a> {
    fn from(tokens: &'a Vec<u32>) -> Self {
        Self { tokens, images: &[] }
    }
}

/// How many tokens two sequences begin with in common: the same ids, and the same images in the same places.
pub fn common_prefix<'a>(one: impl Into<Prefix<'a>>, other: impl Into<Prefix<'a>>) -> usize {
    let (one, other) = (one.into(), other.into());
    let mut same = one.tokens.iter().zip(other.tokens).take_while(|(a, b)| a == b).count();
    for index in 0..one.images.len().max(other.images.len()) {
        let (a, b) = (one.images.get(index), other.images.get(index));
        if a != b {
            let first = a.into_iter().chain(b).map(|image| image.run.start).min();
            same = same.min(first.unwrap_or(same));
            break;
        }
    }
    let cut = one
        .images
        .iter()
        .find(|image| image.whole && image.run.start < same && same < image.run.end);
    cut.map_or(same, |image| image.run.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(start: usize, hash: u8, whole: bool) -> ImageKey {
        ImageKey {
            run: start..start + 4,
            hash: [hash; 32],
            whole,
        }
    }

    #[test]
    fn other_images_of_the_same_size_end_what_is_common() {
        let tokens = [1, 2, 9, 9, 9, 9, 3, 9, 9, 9, 9, 4];
        let with = |images: &[ImageKey], others: &[ImageKey]| {
            let prefix = |images| Prefix {
                tokens: &tokens,
                images,
            };
            common_prefix(prefix(images), prefix(others))
        };
        let (first, second) = (image(2, 1, false), image(7, 2, false));
        assert_eq!(
            with(&[first.clone(), second.clone()], &[first.clone(), second.clone()]),
            12
        );
        assert_eq!(
            with(&[first.clone(), second.clone()], &[first.clone(), image(7, 3, false)]),
            7
        );
        assert_eq!(with(&[first.clone(), second.clone()], &[image(2, 3, false), second]), 2);
        assert_eq!(with(std::slice::from_ref(&first), &[]), 2);
        assert_eq!(
            common_prefix(
                Prefix {
                    tokens: &tokens[..5],
                    images: &[]
                },
                &tokens
            ),
            5
        );
    }

    #[test]
    fn an_image_that_sees_itself_is_common_as_a_whole() {
        let (long, short) = ([1, 2, 9, 9, 9, 9, 3], [1, 2, 9, 9, 8]);
        for (whole, expected) in [(false, 4), (true, 2)] {
            let images = [image(2, 1, whole)];
            let prefix = |tokens| Prefix {
                tokens,
                images: &images,
            };
            assert_eq!(common_prefix(prefix(&long), prefix(&short)), expected);
            assert_eq!(common_prefix(prefix(&long), prefix(&long)), 7);
        }
    }
}
