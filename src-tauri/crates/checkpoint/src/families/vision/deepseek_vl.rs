//! DeepSeek-VL2: SigLIP by timm's names on tiles and on the whole, beside DeepSeek V2.

use serde_json::Map;

use super::llava::{tower, LlavaConfig};
use super::{check_width, LlavaProjector, VisionConfig};
use crate::config::{Family, Fields};
use crate::error::Error;
use crate::families::row::{FamilyRow, ProcessorRow, VisionRow};
use crate::families::{deepseek, Source};
use crate::image_processor::parts::{room_for_a_token, CENTRED, MERGE, PATCH, SIDE, TILES};
use crate::image_processor::{Filter, ImageProcessor, Layout, PaddedTiles, ProcessorConfig, Sizing};
use crate::image_prompt::ImagePrompt;

/// The rows of the family.
pub(in crate::families) const FAMILIES: &[FamilyRow] = &[FamilyRow::vision(
    "DeepSeek-VL2",
    &["deepseek_vl_v2"],
    language_part,
    VisionRow {
        encoder: parse,
        processor: ProcessorRow::fixed(&["DeepseekVLV2"], processor),
        prompt: ImagePrompt {
            written: "<image>\n",
            template: Some(TEMPLATE),
            ..ImagePrompt::new("<image>")
        },
    },
)];

/// The form of a conversation, which the original repositories have in code (`conversation.py`, `deepseek`).
const TEMPLATE: &str = "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}<|User|>: \
    {{ message['content'] }}{{ '\\n\\n' }}{% elif message['role'] == 'assistant' %}<|Assistant|>: \
    {{ message['content'] }}{{ eos_token }}{% endif %}{% endfor %}{% if add_generation_prompt %}<|Assistant|>:{% endif %}";

/// Pixels of a side, and of a patch, in all published models.
const PIXELS: u32 = 384;
const PATCH_SIDE: u32 = 14;

/// DeepSeek V2, in the smallest model with Llama's attention.
pub(super) fn language_part(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let plain = text.flag("use_mla")? == Some(false) || text.number("qk_nope_head_dim")? == Some(0u32);
    if plain {
        return deepseek::deepseek_v1(source);
    }
    let values = text.number("v_head_dim")?.unwrap_or(128);
    deepseek::decoder(text, Some(deepseek::LATENT_EPS), values, deepseek::INTERLEAVED)?.family()
}

fn parse(_: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let unsupported = |what: &str| Err(Error::Unsupported(what.into()));
    let nothing = Map::new();
    let object = |field| Ok::<_, Error>(top.object(field)?.unwrap_or(Fields::new(&nothing)));
    let (vision, projector) = (object("vision_config")?, object("projector_config")?);
    let name = vision.text("model_name")?;
    if name.is_some_and(|name| name != "siglip_so400m_patch14_384") {
        return unsupported("another tower of DeepSeek-VL2 than SigLIP (`vision_config.model_name`)");
    }
    let order = top.text("global_view_pos")?;
    if top.text("tile_tag")?.is_some_and(|tag| tag != "2D") || order.is_some_and(|order| order != "head") {
        return unsupported("another order of tiles of DeepSeek-VL2 (`tile_tag`, `global_view_pos`)");
    }
    let kind = projector.text("projector_type")?;
    if kind.is_some_and(|kind| kind != "downsample_mlp_gelu")
        || projector.number("depth")?.unwrap_or(2u32) != 2
        || projector.flag("token_pooling")? == Some(true)
    {
        return unsupported("another projector of DeepSeek-VL2 than `downsample_mlp_gelu` of two projections");
    }
    // The tower's own names, as in timm.
    let hidden: u32 = vision.number("width")?.unwrap_or(1152);
    let ratio: f32 = vision.number("mlp_ratio")?.unwrap_or(3.7362);
    let width = (f64::from(hidden) * f64::from(ratio)) as u32;
    let mut shape = vision.without("width");
    let fields = [
        ("hidden_size", hidden),
        ("num_hidden_layers", vision.number("layers")?.unwrap_or(27)),
        ("num_attention_heads", 16),
        ("intermediate_size", width),
        ("patch_size", PATCH_SIDE),
        ("image_size", PIXELS),
    ];
    for (field, usual) in fields {
        shape.entry(field).or_insert(usual.into());
    }
    shape.insert("model_type".to_owned(), "siglip_vision_model".into());
    let outputs: u32 = projector.number("n_embed")?.unwrap_or(2048);
    let times: u32 = projector.number("mlp_ratio")?.unwrap_or(1);
    check_width("n_embed", u64::from(outputs) * u64::from(times))?;
    let unfolded = LlavaProjector::Unfolded {
        merge: super::shape::merge("downsample_ratio", projector.number("downsample_ratio")?)?,
        width: outputs * times,
    };
    Ok(VisionConfig::Llava(LlavaConfig {
        post_norm: true,
        row_ends: true,
        ..tower(Fields::new(&shape), Fields::new(&nothing), "full", -1, unfolded)?
    }))
}

/// Canvases are in `config.json`: repositories have a file of a processor that says nothing else.
fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    const FIELD: &str = "candidate_resolutions";
    let tile = processor.model_number(&["vision_config.image_size"], PIXELS, SIDE)?;
    let patch = processor.model_number(&["vision_config.patch_size"], PATCH_SIDE, PATCH)?;
    let merge = processor.model_number(&["projector_config.downsample_ratio"], 2, MERGE)?;
    room_for_a_token(tile, patch)?;
    let canvases = processor.model_pairs(FIELD, 256, 1..=1 << 14)?;
    let in_tiles = |(width, height): (u32, u32)| {
        let (columns, rows) = (width / tile, height / tile);
        match (columns * tile, rows * tile) == (width, height) && TILES.contains(&(columns * rows)) {
            true => Ok((columns, rows)),
            false => Err(Error::InvalidProcessor {
                field: FIELD,
                reason: format!("{width}×{height} pixels are not some tiles of {tile}"),
            }),
        }
    };
    let canvases = canvases.unwrap_or_else(|| vec![(tile, tile)]).into_iter().map(in_tiles);
    Ok(ImageProcessor {
        sizing: Sizing::PaddedTiles(PaddedTiles {
            canvases: canvases.collect::<Result<_, _>>()?,
            tile,
            patch,
            merge,
        }),
        filter: Filter::Bicubic,
        scaling: processor.scaling(Some(CENTRED))?,
        layout: Layout::Planes,
    })
}
