//! The families whose models see, as their templates and processors have them.

use checkpoint::ImagePlan;

use super::{grid, tiles};

/// Every family: model type, the text that its template writes, control tokens, a plan, and the run that it becomes.
pub fn families() -> Vec<(&'static str, &'static str, Vec<&'static str>, ImagePlan, &'static str)> {
    let qwen = vec!["<|vision_start|>", "<|image_pad|>", "<|vision_end|>"];
    let gemma3 = vec!["<start_of_image>", "<image_soft_token>", "<end_of_image>"];
    let idefics = vec![
        "<image>",
        "<fake_token_around_image>",
        "<global-img>",
        "<row_1_col_1>",
        "<row_1_col_2>",
        "<row_2_col_1>",
        "<row_2_col_2>",
    ];
    let lfm2 = vec![
        "<image>",
        "<|image_start|>",
        "<|image_end|>",
        "<|img_thumbnail|>",
        "<|img_row_1_col_1|>",
        "<|img_row_1_col_2|>",
    ];
    let molmo = vec![
        "<|image|>",
        "<im_patch>",
        "<low_res_im_start>",
        "<im_start>",
        "<im_end>",
        "<im_col>",
    ];
    vec![
        (
            "qwen3_vl",
            "<|vision_start|><|image_pad|><|vision_end|>",
            qwen,
            grid(1, 2),
            "<|vision_start|><|image_pad|><|image_pad|><|vision_end|>",
        ),
        (
            "gemma4",
            "<|image|>",
            vec!["<|image|>", "<|image>", "<image|>"],
            grid(1, 3),
            "<|image><|image|><|image|><|image|><image|>",
        ),
        (
            "gemma3",
            "<start_of_image>",
            gemma3.clone(),
            grid(1, 2),
            "\n\n<start_of_image><image_soft_token><image_soft_token><end_of_image>\n\n",
        ),
        (
            "gemma3n",
            "<image_soft_token>",
            gemma3,
            grid(1, 2),
            "\n\n<start_of_image><image_soft_token><image_soft_token><end_of_image>\n\n",
        ),
        (
            "glm_ocr",
            "<|begin_of_image|><|image|><|end_of_image|>",
            vec!["<|begin_of_image|>", "<|image|>", "<|end_of_image|>"],
            grid(2, 1),
            "<|begin_of_image|><|image|><|image|><|end_of_image|>",
        ),
        (
            "mistral3",
            "[IMG]",
            vec!["[IMG]", "[IMG_BREAK]", "[IMG_END]"],
            grid(2, 3),
            "[IMG][IMG][IMG][IMG_BREAK][IMG][IMG][IMG][IMG_END]",
        ),
        (
            "smolvlm",
            "<image>",
            idefics.clone(),
            tiles(2, 2),
            "<fake_token_around_image><row_1_col_1><image><fake_token_around_image><row_1_col_2><image>\n\
             <fake_token_around_image><row_2_col_1><image><fake_token_around_image><row_2_col_2><image>\n\n\
             <fake_token_around_image><global-img><image><fake_token_around_image>",
        ),
        (
            "idefics3",
            "<image>",
            idefics,
            tiles(0, 0),
            "<fake_token_around_image><global-img><image><fake_token_around_image>",
        ),
        (
            "lfm2_vl",
            "<image>",
            lfm2.clone(),
            tiles(1, 2),
            "<|image_start|><|img_row_1_col_1|><image><|img_row_1_col_2|><image><|img_thumbnail|><image><|image_end|>",
        ),
        ("lfm2-vl", "<image>", lfm2, tiles(0, 0), "<|image_start|><image><|image_end|>"),
        (
            "internvl",
            "<IMG_CONTEXT>\n",
            vec!["<IMG_CONTEXT>", "<img>", "</img>"],
            tiles(1, 2),
            "<img><IMG_CONTEXT><IMG_CONTEXT><IMG_CONTEXT></img>\n",
        ),
        (
            "paddleocr_vl",
            "<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>",
            vec!["<|IMAGE_START|>", "<|IMAGE_PLACEHOLDER|>", "<|IMAGE_END|>"],
            grid(1, 2),
            "<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>",
        ),
        (
            "ernie4_5_vl_moe",
            "<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>",
            vec!["<|IMAGE_START|>", "<|IMAGE_PLACEHOLDER|>", "<|IMAGE_END|>"],
            grid(1, 2),
            "<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>",
        ),
        (
            "ernie4_5_moe_vl",
            "<|IMAGE_START|><|image@placeholder|><|IMAGE_END|>",
            vec!["<|IMAGE_START|>", "<|IMAGE_PLACEHOLDER|>", "<|IMAGE_END|>"],
            grid(2, 1),
            "<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>",
        ),
        ("granite4_vision", "<image>\n", vec!["<image>"], grid(1, 2), "<image><image>\n"),
        (
            "hunyuan_vl",
            "<｜hy_place▁holder▁no▁100｜><｜hy_place▁holder▁no▁102｜><｜hy_place▁holder▁no▁101｜>",
            vec![
                "<｜hy_place▁holder▁no▁100｜>",
                "<｜hy_place▁holder▁no▁101｜>",
                "<｜hy_place▁holder▁no▁102｜>",
            ],
            grid(1, 2),
            "<｜hy_place▁holder▁no▁100｜><｜hy_place▁holder▁no▁102｜><｜hy_place▁holder▁no▁102｜><｜hy_place▁holder▁no▁101｜>",
        ),
        ("llava_next", "<image>\n", vec!["<image>"], grid(1, 2), "<image><image>\n"),
        (
            "cohere2_vision",
            "<|IMG_PATCH|>",
            vec!["<|IMG_PATCH|>", "<|START_OF_IMG|>", "<|END_OF_IMG|>", "<|IMG_LINE_BREAK|>"],
            tiles(1, 1),
            "<|START_OF_IMG|><|IMG_PATCH|><|IMG_LINE_BREAK|><|IMG_PATCH|><|IMG_LINE_BREAK|><|END_OF_IMG|>",
        ),
        (
            "aya_vision",
            "<|IMG_PATCH|>",
            vec!["<|IMG_PATCH|>", "<|START_OF_IMG|>", "<|END_OF_IMG|>"],
            tiles(1, 1),
            "<|START_OF_IMG|>TILE_1<|IMG_PATCH|>TILE_GLOBAL<|IMG_PATCH|><|END_OF_IMG|>",
        ),
        (
            "minicpmv4_6",
            "<|image_pad|>",
            vec![
                "<|image_pad|>",
                "<image>",
                "</image>",
                "<slice>",
                "</slice>",
                "<image_id>",
                "</image_id>",
            ],
            tiles(2, 1),
            "<image_id>0</image_id><image><|image_pad|></image><slice><|image_pad|></slice>\n<slice><|image_pad|></slice>",
        ),
        (
            "multi_modality",
            "<image_placeholder>\n",
            vec!["<image_placeholder>", "<begin_of_image>", "<end_of_image>"],
            grid(1, 2),
            "<begin_of_image><image_placeholder><image_placeholder><end_of_image>\n",
        ),
        (
            "idefics2",
            "<image>",
            vec!["<image>", "<fake_token_around_image>"],
            tiles(1, 1),
            "<fake_token_around_image><image><fake_token_around_image><image><fake_token_around_image> ",
        ),
        (
            "molmo2",
            "<|image|>",
            molmo.clone(),
            tiles(1, 1),
            "<low_res_im_start><im_patch><im_col><im_end><im_start><im_patch><im_col><im_end>",
        ),
        (
            "jvlm",
            "<|image|>",
            molmo,
            tiles(1, 1),
            "<im_start><im_patch><im_col><im_end><im_start><im_patch><im_col><im_end>",
        ),
        (
            "phi4mm",
            "<|endoftext10|>",
            vec!["<|endoftext10|>"],
            grid(1, 2),
            "<|endoftext10|><|endoftext10|>",
        ),
        (
            "nemotron_h_nano_omni",
            "<image>",
            vec!["<image>", "<img>", "</img>"],
            grid(1, 2),
            "<img><image><image></img>",
        ),
        ("paligemma", "<image>", vec!["<image>"], grid(1, 2), "<image><image>"),
        ("mllama", "<|image|>", vec!["<|image|>"], grid(0, 0), "<|image|>"),
    ]
}

/// The token that takes a feature.
pub fn feature(model_type: &str) -> &'static str {
    match model_type {
        "gemma3" | "gemma3n" => "<image_soft_token>",
        "mistral3" => "[IMG]",
        "smolvlm"
        | "idefics2"
        | "idefics3"
        | "lfm2_vl"
        | "lfm2-vl"
        | "llava_next"
        | "granite4_vision"
        | "nemotron_h_nano_omni"
        | "paligemma" => "<image>",
        "qwen3_vl" | "minicpmv4_6" => "<|image_pad|>",
        "aya_vision" | "cohere2_vision" => "<|IMG_PATCH|>",
        "molmo2" | "jvlm" => "<im_patch>",
        "phi4mm" => "<|endoftext10|>",
        "multi_modality" => "<image_placeholder>",
        "internvl" => "<IMG_CONTEXT>",
        "paddleocr_vl" | "ernie4_5_moe_vl" | "ernie4_5_vl_moe" => "<|IMAGE_PLACEHOLDER|>",
        "hunyuan_vl" => "<｜hy_place▁holder▁no▁102｜>",
        _ => "<|image|>",
    }
}
