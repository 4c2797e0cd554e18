//! Models that Ponder is for and does not run yet.

use super::Model;

/// Models that answer from text alone.
pub(super) const TEXT: &[Model] = &[
    ("DeepSeek V4.1", &["deepseek_v41", "deepseek_v41_text"]),
    ("Limite", &["limite"]),
    ("LLaDA 2, which writes by diffusion", &["llada2_moe"]),
    ("Nemotron H Puzzle", &["nemotron_h_puzzle"]),
    ("Nemotron, which writes by diffusion", &["nemotron_labs_diffusion"]),
    ("Qwen 3.5 with rotated weights", &["prism_hadamard_qwen35"]),
    ("Z1T", &["z1t"]),
];

/// Models that answer questions about images, too.
pub(super) const VISION: &[Model] = &[
    ("Cohere Compass", &["cohere_compass"]),
    (
        "DeepSeek-OCR 2, Unlimited-OCR",
        &["deepseekocr_2", "unlimited_ocr", "unlimited-ocr"],
    ),
    ("DiffusionGemma", &["diffusion_gemma"]),
    ("Flint", &["flint"]),
    ("Florence 2", &["florence2"]),
    ("GLM 5 with vision", &["glm5_next"]),
    ("GOT-OCR", &["got"]),
    ("IndicOCR", &["indic_ocr"]),
    ("Inkling", &["inkling", "inkling_mm_model"]),
    ("Kimi K3", &["kimi_k3"]),
    ("LLM-jp-VL", &["llmjpvl"]),
    ("Mage-VL", &["mage_vl"]),
    ("MiniCPM-V and MiniCPM-o", &["minicpmv4_7", "minicpmo"]),
    ("MolmoPoint", &["molmo_point"]),
    ("Moondream", &["moondream1", "moondream2", "moondream3"]),
    ("Muse Spark", &["muse_spark", "muse_spark_open"]),
    ("Nemotron Nano Omni in the form of transformers", &["nemotron_h_omni"]),
    ("Nemotron Parse", &["nemotron_parse"]),
    ("PLaMo 2 VL", &["plamo2vl"]),
    ("ZAYA1-VL", &["zaya1_vl"]),
];

/// Models that turn text or images into vectors, for search.
pub(super) const EMBEDDINGS: &[Model] = &[
    ("ColIdefics 3", &["colidefics3"]),
    ("ColQwen 2.5", &["colqwen2_5"]),
    ("LFM2, a vector for each token", &["lfm2_colbert"]),
    (
        "Llama Nemotron for embeddings of images",
        &["llama_nemotron_vl_embedding"],
    ),
    ("SigLIP", &["siglip"]),
];

/// Small models that guess the next tokens of a large one.
pub(super) const DRAFTS: &[Model] = &[
    ("a draft for DeepSeek V4", &["deepseek_v4_dspark", "deepseek_v4_mtp"]),
    (
        "a draft by block diffusion",
        &["dflash2", "dspark", "qwen3_dflash", "qwen3_dspark", "laguna_dflash"],
    ),
    ("a draft by EAGLE 3", &["eagle3"]),
    (
        "a draft for Gemma 4 by block diffusion",
        &["gemma4_dflash", "gemma4_dspark"],
    ),
    (
        "a draft for GLM",
        &["glm4_moe_lite_mtp", "glm5_next_mtp", "glm_moe_dsa_mtp"],
    ),
    ("a draft for Hunyuan 4", &["hy_v4_mtp"]),
    ("a draft for Inkling", &["inkling_mtp"]),
    ("a draft for Muse Glimmer", &["muse_glimmer_assistant"]),
    ("a draft for Nemotron H", &["nemotron_h_mtp"]),
    ("a draft for Qwen 4 Exp", &["qwen4_exp_mtp"]),
];
