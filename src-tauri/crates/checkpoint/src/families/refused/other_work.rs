//! Models that write no text, and what they do instead.

use super::Model;

pub(super) const MAKES_IMAGES: &[Model] = &[
    ("Bonsai", &["bonsai"]),
    ("ERNIE Image", &["ernie_image"]),
    ("FLUX", &["flux2", "flux3"]),
    ("Ideogram 4", &["ideogram4"]),
    ("LLaDA Image", &["llada_image"]),
    ("Mage Flow", &["mage_flow"]),
    ("Ming Image", &["ming_image"]),
    ("MOSS Image", &["moss_image"]),
    ("Qwen-Image", &["qwen_image"]),
    ("Z-Image", &["z_image"]),
];

pub(super) const MAKES_VIDEO: &[Model] = &[("MiniMax H3", &["minimax_h3"])];

pub(super) const FINDS_OBJECTS: &[Model] = &[
    ("Falcon Perception", &["falcon_perception", "falcon-perception"]),
    ("LocateAnything", &["locateanything"]),
    ("PP-DocLayout", &["pp_doclayout_v3"]),
    ("RF-DETR", &["rfdetr", "rf-detr"]),
    ("RT-DETR", &["rt_detr_v2"]),
    (
        "Segment Anything 3",
        &["sam3", "sam3_1", "sam3.1", "sam3_video", "sam3.1_video"],
    ),
    ("YOLO 11", &["yolo11"]),
];

pub(super) const MEASURES_IMAGES: &[Model] = &[
    ("DINOv2", &["dinov2", "dinov2_with_registers"]),
    ("MoGe 3", &["moge3"]),
    ("SAM 3D", &["sam3d_body", "sam3d_objects"]),
    ("Sapiens 2", &["sapiens2"]),
    ("Video Depth Anything", &["video_depth_anything"]),
];

pub(super) const DECIDES: &[Model] = &[
    ("Clef", &["clef"]),
    ("D1", &["d1", "d1_omni"]),
    ("Decider 2", &["decider2"]),
    ("GLiNER 2.5", &["gliner2_5"]),
    ("Laya", &["laya"]),
    ("Privacy Filter", &["openai_privacy_filter"]),
];

pub(super) const SPEAKS: &[Model] = &[
    ("Nemotron VoiceChat", &["nemotron_voicechat"]),
    ("Whisper", &["whisper"]),
    ("Kokoro", &["kokoro"]),
    ("Parakeet", &["parakeet"]),
];
