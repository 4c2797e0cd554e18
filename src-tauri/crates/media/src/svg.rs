//! Drawings, which are programs of a kind: drawn on white without scripts, entities and anything from outside the file,
//! and only if what they unfold to is known to be little.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{self, fontdb, roxmltree, Group, ImageHrefResolver, Node, Options, Tree};

use crate::error::{Error, Result};
use crate::pixels::Rgb;
use crate::svg_cost::{broken, check_elements};

/// Drawings have no size of their own worth the name: the longer side is brought between these.
const SMALLEST: f32 = 1024.0;
const LARGEST: f32 = 2048.0;
/// The longest file; drawings are text.
const MAX_BYTES: usize = 8 << 20;
/// XML nodes of a file.
const MAX_NODES: u32 = 500_000;
/// Bytes of all layers that are open at a time.
const MAX_LAYERS: f64 = 128e6;

/// A drawing that was read and found harmless, and the size it is drawn at.
struct Drawing {
    tree: Tree,
    size: (u32, u32),
    scale: f32,
}

/// Width and height at which a drawing is drawn.
pub(crate) fn size(bytes: &[u8]) -> Result<(u32, u32)> {
    Ok(Drawing::read(bytes)?.size)
}

/// Draws it on white.
pub(crate) fn draw(bytes: &[u8]) -> Result<Rgb> {
    let drawing = Drawing::read(bytes)?;
    let (width, height) = drawing.size;
    let mut pixmap = Pixmap::new(width, height).ok_or_else(|| broken("it has no size"))?;
    pixmap.fill(Color::WHITE);
    resvg::render(
        &drawing.tree,
        Transform::from_scale(drawing.scale, drawing.scale),
        &mut pixmap.as_mut(),
    );
    let bytes = pixmap
        .data()
        .chunks_exact(4)
        .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]])
        .collect();
    Ok(Rgb { width, height, bytes })
}

impl Drawing {
    fn read(bytes: &[u8]) -> Result<Self> {
        if bytes.len() > MAX_BYTES {
            return Err(Error::TooLarge(format!(
                "a drawing of more than {} MB is not drawn",
                MAX_BYTES >> 20
            )));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| broken("it is not UTF-8"))?;
        if text.contains("<!ENTITY") {
            return Err(broken("it defines entities, which are not followed"));
        }
        let limits = roxmltree::ParsingOptions {
            allow_dtd: true,
            nodes_limit: MAX_NODES,
            ..Default::default()
        };
        let document =
            roxmltree::Document::parse_with_options(text, limits).map_err(|error| broken(error.to_string()))?;
        check_elements(&document)?;
        let options = Options {
            image_href_resolver: ImageHrefResolver {
                resolve_data: Box::new(|_, _, _| None),
                resolve_string: Box::new(|_, _| None),
            },
            fontdb: if text.contains("<text") {
                fonts()
            } else {
                Arc::default()
            },
            font_family: "sans-serif".into(),
            ..Default::default()
        };
        let tree = Tree::from_xmltree(&document, &options).map_err(|error| broken(error.to_string()))?;
        let (width, height) = (tree.size().width(), tree.size().height());
        let longer = width.max(height);
        let scale = longer.clamp(SMALLEST, LARGEST) / longer;
        let pixels = |side: f32| ((side * scale).round() as u32).clamp(1, LARGEST as u32);
        let drawing = Self {
            size: (pixels(width), pixels(height)),
            tree,
            scale,
        };
        match drawing.layers() > MAX_LAYERS || drawing.patterns() > MAX_LAYERS {
            true => Err(broken("it would take too much memory to draw")),
            false => Ok(drawing),
        }
    }

    /// Bytes of the layers that are open at a time while it is drawn.
    fn layers(&self) -> f64 {
        // resvg draws no layer beyond five times the canvas in either direction.
        let most = f64::from(self.size.0) * f64::from(self.size.1) * 25.0;
        let mut layers = Layers {
            scale: f64::from(self.scale),
            most,
            known: HashMap::new(),
        };
        layers.of(self.tree.root())
    }

    /// Bytes of its largest pattern, drawn once at the largest scale anything has.
    fn patterns(&self) -> f64 {
        let largest = f64::from(largest_scale(self.tree.root()) * self.scale);
        let area = |pattern: &Arc<usvg::Pattern>| {
            let (across, down) = pattern.transform().get_scale();
            f64::from(pattern.rect().width() * across)
                * f64::from(pattern.rect().height() * down)
                * largest
                * largest
                * 4.0
        };
        self.tree.patterns().iter().map(area).fold(0.0, f64::max)
    }
}

/// Counts the bytes of layers.
struct Layers {
    scale: f64,
    /// Pixels of the largest layer.
    most: f64,
    /// Bytes that were counted, by where the group lies: masks and patterns are shared, and may be used by each other.
    known: HashMap<*const Group, f64>,
}

impl Layers {
    fn of(&mut self, group: &Group) -> f64 {
        if let Some(bytes) = self.known.get(&std::ptr::from_ref(group)) {
            return *bytes;
        }
        let mut below: f64 = 0.0;
        for node in group.children() {
            if let Node::Group(group) = node {
                below = below.max(self.of(group));
            }
            node.subroots(|root| below = below.max(self.of(root)));
        }
        let bytes = match group.should_isolate() {
            true => below + self.own(group),
            false => below,
        };
        self.known.insert(std::ptr::from_ref(group), bytes);
        bytes
    }

    /// Bytes of a group's own layer, with those of its filters and masks.
    fn own(&self, group: &Group) -> f64 {
        let region = group.abs_layer_bounding_box();
        let (width, height) = (f64::from(region.width()), f64::from(region.height()));
        let pixels = (width * height * self.scale * self.scale).min(self.most);
        let steps: usize = group.filters().iter().map(|filter| filter.primitives().len() + 2).sum();
        let masks = 2 * usize::from(group.mask().is_some()) + usize::from(group.clip_path().is_some());
        pixels * 4.0 * (1 + steps + masks) as f64
    }
}

fn largest_scale(group: &Group) -> f32 {
    let of = |transform: usvg::Transform| {
        let (across, down) = transform.get_scale();
        across.max(down)
    };
    let below = group.children().iter().map(|node| match node {
        Node::Group(group) => largest_scale(group),
        node => of(node.abs_transform()),
    });
    below.fold(of(group.abs_transform()).max(1.0), f32::max)
}

/// The fonts of this computer, read once.
fn fonts() -> Arc<fontdb::Database> {
    static FONTS: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    let read = || {
        let mut fonts = fontdb::Database::new();
        fonts.load_system_fonts();
        let families: Vec<String> = fonts
            .faces()
            .flat_map(|face| face.families.iter().map(|(name, _)| name.clone()))
            .collect();
        let first = |wanted: &[&str]| {
            let found = wanted.iter().find(|name| families.iter().any(|family| family == *name));
            found
                .map(|name| (*name).to_owned())
                .or_else(|| families.first().cloned())
        };
        // Fonts that a drawing names are seldom installed; these look alike on most computers.
        if let Some(family) = first(&["Helvetica", "Arial", "Liberation Sans", "DejaVu Sans", "Noto Sans"]) {
            fonts.set_sans_serif_family(family);
        }
        if let Some(family) = first(&[
            "Times New Roman",
            "Times",
            "Liberation Serif",
            "DejaVu Serif",
            "Noto Serif",
            "DejaVu Sans",
        ]) {
            fonts.set_serif_family(family);
        }
        if let Some(family) = first(&[
            "Menlo",
            "Courier New",
            "Liberation Mono",
            "DejaVu Sans Mono",
            "Noto Sans Mono",
        ]) {
            fonts.set_monospace_family(family);
        }
        Arc::new(fonts)
    };
    FONTS.get_or_init(read).clone()
}
