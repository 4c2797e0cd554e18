//! What looking at a picture takes besides the weights: its views go through the tower one at a time, so that the largest counts.

use protocol::{ErrorCode, ImageDetail};

use super::Backend;
use crate::{ImagePlan, ImageProcessor, View};

/// The most bytes that the scores of queries may take that look together, if no kernel keeps them to itself; the tower's attention takes its queries in
/// turns for it.
pub const MAX_TOWER_SCORES: u64 = 256 << 20;

/// The widths of heads that Metal has a kernel for, which keeps the scores to itself.
pub const TOWER_KERNEL_WIDTHS: [u32; 3] = [64, 80, 128];

/// Batches of a tower's operations that are there at a time: one is computed while the next is made.
const BATCHES: u64 = 2;

/// The widths of a tower on which its working space depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TowerSizes {
    /// Width of its stream.
    pub hidden_size: u32,
    /// Width inside of its networks, twice if they are gated.
    pub inner: u32,
    /// Heads of queries, keys and values.
    pub heads: u32,
    /// Width of a head.
    pub head_dim: u32,
    /// Numbers of a patch as it comes in.
    pub patch: u32,
    /// Width of a feature in the language part, times the sets of them that are made.
    pub features: u32,
}

impl TowerSizes {
    /// The bytes that looking at a picture takes for a moment, its numbers and features included.
    pub fn working(&self, plan: &ImagePlan, backend: Backend) -> u64 {
        let largest = plan
            .views
            .iter()
            .map(|view| self.of_view(patches(view), backend))
            .max()
            .unwrap_or(0);
        let made = plan
            .views
            .iter()
            .map(|view| u64::from(view.tokens.0) * u64::from(view.tokens.1))
            .sum::<u64>();
        // All views wait as numbers of 32 bits, and all features stay until the prompt is read.
        let waiting = plan
            .views
            .iter()
            .map(|view| u64::from(view.width) * u64::from(view.height) * 3 * 4)
            .sum::<u64>();
        let kept = made.saturating_mul(u64::from(self.features) * element(backend));
        largest.saturating_add(waiting).saturating_add(kept)
    }

    /// The bytes of a view of so many patches on its way through the layers.
    pub fn of_view(&self, patches: u64, backend: Backend) -> u64 {
        let element = element(backend);
        let [hidden, inner, heads, width, patch] = [self.hidden_size, self.inner, self.heads, self.head_dim, self.patch].map(u64::from);
        let rows = |numbers: u64| patches.saturating_mul(numbers).saturating_mul(element);
        // Queries, keys and values as they are made, turned, and by head.
        let attention = rows(9 * heads * width).saturating_add(self.scores(patches, backend));
        let network = rows(2 * inner + hidden);
        let layer = attention.max(network).saturating_mul(BATCHES);
        rows(patch).saturating_add(rows(3 * hidden)).saturating_add(layer)
    }

    /// Scores and what softmax makes of them, if no kernel does without.
    fn scores(&self, patches: u64, backend: Backend) -> u64 {
        let kept_by_kernel = match backend {
            Backend::Cpu => false,
            // Narrower heads are padded to the next width.
            Backend::Metal => TOWER_KERNEL_WIDTHS.iter().any(|width| self.head_dim <= *width),
            Backend::Cuda => true,
        };
        if kept_by_kernel {
            return 0;
        }
        let all = patches.saturating_mul(patches).saturating_mul(u64::from(self.heads) * 4);
        all.min(MAX_TOWER_SCORES).saturating_mul(2)
    }
}

fn patches(view: &View) -> u64 {
    u64::from(view.patches.0) * u64::from(view.patches.1)
}

/// Bytes of a number.
fn element(backend: Backend) -> u64 {
    match backend {
        Backend::Cpu => 4,
        Backend::Metal | Backend::Cuda => 2,
    }
}

/// The plan of a picture of this size, if looking at it takes at most `free` bytes.
///
/// # Errors
/// [`ErrorCode::MemoryShort`] with what it needs, what is free, and the detail at which it would fit, if there is one; the errors of
/// [`ImageProcessor::plan`].
pub fn plan_within(
    processor: &ImageProcessor,
    sizes: &TowerSizes,
    (width, height): (u32, u32),
    detail: ImageDetail,
    backend: Backend,
    free: u64,
) -> protocol::Result<ImagePlan> {
    let plan = |detail| processor.plan(width, height, detail).map_err(protocol::Error::from);
    let wanted = plan(detail)?;
    let needed = sizes.working(&wanted, backend);
    if needed <= free {
        return Ok(wanted);
    }
    let less = [ImageDetail::Normal, ImageDetail::Quick]
        .into_iter()
        .filter(|less| less.most_tokens() < detail.most_tokens());
    let mut fitting = None;
    for less in less {
        let bytes = sizes.working(&plan(less)?, backend);
        if bytes <= free {
            fitting = Some((less, bytes));
            break;
        }
    }
    let advice = match fitting {
        Some((less, bytes)) => format!("at {} detail it needs {}", name(less), megabytes(bytes)),
        None => "send it smaller, close other programs, or take a smaller model".into(),
    };
    let error = protocol::Error::new(
        ErrorCode::MemoryShort,
        format!(
            "looking at this picture of {width}×{height} pixels at {} detail needs {} of memory, and {} are free; {advice}",
            name(detail),
            megabytes(needed),
            megabytes(free)
        ),
    );
    let error = error.with("needed", needed).with("free", free);
    Err(match fitting {
        Some((less, _)) => error.with("detail", name(less)),
        None => error,
    })
}

/// As people choose it.
fn name(detail: ImageDetail) -> &'static str {
    match detail {
        ImageDetail::Quick => "quick",
        ImageDetail::Normal => "normal",
        ImageDetail::Full => "full",
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Qwen3-VL 4B's tower and processor.
    fn qwen3() -> (ImageProcessor, TowerSizes) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = json!({"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 16, "size": {"shortest_edge": 65536, "longest_edge": 16777216}});
        std::fs::write(folder.path().join("preprocessor_config.json"), file.to_string()).expect("a file");
        let processor = ImageProcessor::read(folder.path(), &json!({}))
            .expect("it is sound")
            .expect("a processor");
        let sizes = TowerSizes {
            hidden_size: 1024,
            inner: 4096,
            heads: 16,
            head_dim: 64,
            patch: 1536,
            features: 2560 * 4,
        };
        (processor, sizes)
    }

    #[test]
    fn scores_never_take_more_than_those_of_queries_in_turns() {
        let (_, sizes) = qwen3();
        // 4,096 patches of 16 heads would have 1 GB of scores.
        let wide = TowerSizes { head_dim: 72, ..sizes };
        let with = wide.of_view(4096, Backend::Cpu);
        let without = wide.of_view(4096, Backend::Cuda) * 2;
        assert_eq!(with - without, 2 * BATCHES * MAX_TOWER_SCORES);
        assert_eq!(wide.of_view(4096, Backend::Metal), wide.of_view(4096, Backend::Cuda));
        assert!(TowerSizes { head_dim: 256, ..sizes }.of_view(4096, Backend::Metal) > sizes.of_view(4096, Backend::Metal));
    }

    #[test]
    fn more_detail_never_takes_less() {
        let (processor, sizes) = qwen3();
        for backend in [Backend::Cpu, Backend::Metal, Backend::Cuda] {
            let of = |detail| sizes.working(&processor.plan(3024, 4032, detail).expect("a plan"), backend);
            let [quick, normal, full] = [ImageDetail::Quick, ImageDetail::Normal, ImageDetail::Full].map(of);
            assert!(quick < normal && normal < full, "{backend:?}: {quick} {normal} {full}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        let (processor, sizes) = qwen3();
        let ask = |detail, free| plan_within(&processor, &sizes, (3024, 4032), detail, Backend::Metal, free);
        let need = |detail| sizes.working(&processor.plan(3024, 4032, detail).expect("a plan"), Backend::Metal);
        let normal = need(ImageDetail::Normal);
        assert!(ask(ImageDetail::Full, need(ImageDetail::Full)).is_ok());
        let error = ask(ImageDetail::Full, normal).expect_err("it is too large");
        assert_eq!(error.code, ErrorCode::MemoryShort);
        assert_eq!(error.arguments.get("detail"), Some(&protocol::Argument::from("normal")));
        assert!(error.message.contains("at normal detail it needs"), "{error}");
        let error = ask(ImageDetail::Normal, need(ImageDetail::Quick)).expect_err("it is too large");
        assert_eq!(error.arguments.get("detail"), Some(&protocol::Argument::from("quick")));
        let error = ask(ImageDetail::Quick, 1).expect_err("nothing fits");
        assert!(
            !error.arguments.contains_key("detail") && error.message.contains("smaller"),
            "{error}"
        );
    }

    #[test]
    fn the_largest_widths_are_summed_without_overflow() {
        let most = TowerSizes {
            hidden_size: u32::MAX,
            inner: u32::MAX,
            heads: 1 << 16,
            head_dim: 1 << 12,
            patch: u32::MAX,
            features: u32::MAX,
        };
        let (processor, _) = qwen3();
        let plan = processor.plan(16_384, 16_384, ImageDetail::Full).expect("a plan");
        assert!(most.working(&plan, Backend::Cpu) > 1 << 40);
    }
}
