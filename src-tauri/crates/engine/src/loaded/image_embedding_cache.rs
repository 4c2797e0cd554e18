//! The embeddings of images, kept for the next prompt with the same one: after another model was loaded, or an earlier
//! turn was edited.

use std::rc::Rc;

use crate::models::vision::ImageEmbeddings;

/// The most bytes of all images of a model.
const BUDGET: u64 = 256 << 20;

/// The features of images by their hash; those that were used least recently go first.
#[derive(Default)]
pub struct ImageEmbeddingCache {
    /// The one that was used last comes last.
    entries: Vec<([u8; 32], Rc<ImageEmbeddings>)>,
}

impl ImageEmbeddingCache {
    /// The features of the image with this hash.
    pub fn get(&mut self, hash: &[u8; 32]) -> Option<Rc<ImageEmbeddings>> {
        let index = self.entries.iter().position(|(other, _)| other == hash)?;
        let entry = self.entries.remove(index);
        let features = entry.1.clone();
        self.entries.push(entry);
        Some(features)
    }

    /// Keeps the features of an image, unless they alone are too large.
    pub fn insert(&mut self, hash: [u8; 32], features: Rc<ImageEmbeddings>) {
        if features.bytes() > BUDGET {
            return;
        }
        self.entries.retain(|(other, _)| *other != hash);
        self.entries.push((hash, features));
        while self.bytes() > BUDGET {
            self.entries.remove(0);
        }
    }

    /// The bytes that it holds.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|(_, features)| features.bytes()).sum()
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use mlx::device::connect;
    use mlx::tensor::Tensor;
    use mlx::Dtype;

    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        connect().unwrap();
        let features = |megabytes: i32| {
            let embeddings = Tensor::zeros(&[megabytes, 1 << 18], Dtype::Float32).unwrap();
            Rc::new(ImageEmbeddings {
                embeddings,
                deep: Vec::new(),
                deep_layers: Vec::new(),
            })
        };
        let mut cache = ImageEmbeddingCache::default();
        for hash in 0..4 {
            cache.insert([hash; 32], features(64));
        }
        assert!(cache.get(&[0; 32]).is_some() && cache.bytes() == BUDGET);
        cache.insert([4; 32], features(64));
        let found: Vec<bool> = (0..5).map(|hash| cache.get(&[hash; 32]).is_some()).collect();
        assert_eq!(found, [true, false, true, true, true]);
        cache.insert([5; 32], features(300));
        assert!(cache.get(&[5; 32]).is_none() && cache.bytes() == BUDGET);
    }
}
