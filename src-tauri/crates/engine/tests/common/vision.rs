//! Tiny random models that see, and what the oracle computes with them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkpoint::image_processor::JoinedTiles;
use checkpoint::{ImagePlan, View};
use engine::{ImageViews, PromptImage};
use media::ViewPixels;
use protocol::ImageBytes;
use serde::Deserialize;

use super::oracle::{computed, seed, write};
use super::{read_safetensors, RawTensor};

/// A model that was written.
#[derive(Debug, Clone, Deserialize)]
pub struct Row {
    pub name: String,
    pub model_type: String,
    /// True if some of its weights are quantized.
    pub packed: bool,
    /// True if there is no sound peer.
    pub unverified: bool,
    pub cases: Vec<Case>,
}

/// One prompt.
#[derive(Debug, Clone, Deserialize)]
pub struct Case {
    pub case: String,
    images: Vec<Image>,
}

#[derive(Debug, Clone, Deserialize)]
struct Image {
    run: [usize; 2],
    features: Vec<usize>,
    views: Vec<WrittenView>,
    tiles: Option<(u32, u32)>,
    whole: bool,
    /// Width and height of the image in its tiles, if they are not those of the first view.
    resized: Option<(u32, u32)>,
    /// The part of the grid of all tiles that the image covers, and what it is brought to.
    joined: Option<[(u32, u32); 2]>,
}

#[derive(Debug, Clone, Deserialize)]
struct WrittenView {
    width: u32,
    height: u32,
    patches: (u32, u32),
    tokens: (u32, u32),
    /// As many as there are tokens unless it says otherwise.
    features: Option<u32>,
}

#[derive(Deserialize)]
struct Table {
    versions: std::collections::BTreeMap<String, String>,
    rows: Vec<Row>,
}

/// The oracle's results for one prompt.
pub struct Figures {
    pub ids: Vec<u32>,
    /// Its images, with a hash for each that no other has.
    pub images: Vec<PromptImage>,
    /// In 32 bit floats, all positions one after another.
    pub logits: Vec<f32>,
    /// The tokens that follow, and by how much each was likelier than the next; of some cases.
    pub greedy: Vec<u32>,
    pub margins: Vec<f32>,
}

/// A folder of models and figures.
pub struct Written {
    folder: PathBuf,
    _own: Option<tempfile::TempDir>,
    pub versions: String,
    pub rows: Vec<Row>,
}

impl Written {
    /// Has the rows called `only` written, or all of them.
    pub fn new(python: &Path, seed_of_models: u64, only: &[&str]) -> Self {
        let shared = computed("vision").filter(|folder| seed_of_models == seed() && folder.is_dir());
        let (folder, own) = match shared {
            Some(folder) => (folder, None),
            None => {
                let folder = tempfile::tempdir().unwrap();
                write(python, "vision.py", folder.path(), seed_of_models, only, &[]);
                (folder.path().to_owned(), Some(folder))
            }
        };
        let table = std::fs::read_to_string(folder.join("table.json")).unwrap();
        let mut table: Table = serde_json::from_str(&table).unwrap();
        table
            .rows
            .retain(|row| only.is_empty() || only.contains(&row.name.as_str()));
        assert!(
            only.is_empty() || table.rows.len() == only.len(),
            "{only:?} are not all there"
        );
        let versions: Vec<String> = table
            .versions
            .iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        Self {
            folder,
            _own: own,
            versions: versions.join(", "),
            rows: table.rows,
        }
    }

    /// The folder of all of it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The model's folder.
    pub fn model(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The oracle's results.
    pub fn figures(&self, row: &Row, case: &Case) -> Figures {
        let mut stored = read_safetensors(&self.folder.join(format!("{}.{}.safetensors", row.name, case.case)));
        let mut views = (0..).map_while(|index| Some((index, stored.remove(&format!("pixels.{index}"))?)));
        let images = case
            .images
            .iter()
            .zip(1..)
            .map(|(image, number)| image.image(number, &mut views))
            .collect();
        let mut floats = |name: &str| stored.remove(name).map_or_else(Vec::new, |stored| stored.floats());
        let (logits, margins) = (floats("logits"), floats("margins"));
        Figures {
            ids: stored["ids"].ids(),
            images,
            logits,
            margins,
            greedy: stored.get("greedy").map_or_else(Vec::new, RawTensor::ids),
        }
    }
}

impl Image {
    fn image(&self, number: u8, views: &mut impl Iterator<Item = (usize, RawTensor)>) -> PromptImage {
        let mut hash = [0; 32];
        let mut take = |view: &WrittenView| {
            let (_, stored) = views.next().unwrap();
            hash[0] = number;
            let features = view.features.unwrap_or(view.tokens.0 * view.tokens.1);
            let planned = View {
                width: view.width,
                height: view.height,
                patches: view.patches,
                tokens: view.tokens,
                features,
            };
            let pixels = ViewPixels {
                values: stored.floats(),
                shape: stored.shape,
            };
            (planned, pixels)
        };
        let (planned, views): (Vec<View>, Vec<ViewPixels>) = self.views.iter().map(&mut take).unzip();
        PromptImage {
            run: self.run[0]..self.run[1],
            places: self.features.clone(),
            plan: ImagePlan {
                steps: Vec::new(),
                resized: self.resized.unwrap_or((planned[0].width, planned[0].height)),
                views: planned,
                tiles: self.tiles,
                whole: self.whole,
                joined: self.joined.map(|[covered, shown]| JoinedTiles { covered, shown }),
            },
            less_detail: Vec::new(),
            views: ImageViews::Ready(Arc::new(views)),
            hash,
        }
    }
}

/// The same images with other pixels, and other hashes.
pub fn changed(images: &[PromptImage]) -> Vec<PromptImage> {
    let mut images = images.to_vec();
    for image in &mut images {
        image.hash[31] += 1;
        if let ImageViews::Ready(views) = &mut image.views {
            let values = Arc::make_mut(views).iter_mut().flat_map(|view| &mut view.values);
            values.for_each(|value| *value = *value * 0.5 + 0.25);
        }
    }
    images
}

/// The largest difference of two rows of logits; infinite if one is not a number.
pub fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(
        0.0,
        |worst, one| if one.is_nan() { f32::INFINITY } else { worst.max(one) },
    )
}

/// The largest differences by what was compared.
pub type Worst = HashMap<&'static str, f32>;

/// An image of stripes as a bitmap file.
pub fn image(width: u32, height: u32, shade: u8) -> ImageBytes {
    let row = (3 * width).next_multiple_of(4);
    let mut bytes = b"BM".to_vec();
    bytes.extend((54 + row * height).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(54u32.to_le_bytes());
    bytes.extend(40u32.to_le_bytes());
    bytes.extend(width.to_le_bytes());
    bytes.extend(height.to_le_bytes());
    bytes.extend([1, 0, 24, 0]);
    bytes.extend([0; 24]);
    for y in 0..height {
        for x in 0..row {
            bytes.push(shade.wrapping_mul((1 + (x / 9) % 5 + (y / 7) % 3) as u8));
        }
    }
    bytes.into()
}
