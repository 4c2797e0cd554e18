//! Processors' files as repositories have them, and as nobody should: sizes and tokens without a pixel.

use checkpoint::image_processor::Sizing;
use checkpoint::{Error, ImagePlan, ImageProcessor};
use protocol::ImageDetail::{self, Full, Normal, Quick};
use serde_json::{json, Value};

const SIZES: [(u32, u32); 5] = [(224, 224), (1280, 720), (1920, 1080), (2940, 1912), (3024, 4032)];

/// A processor read from a folder with this `preprocessor_config.json`.
fn read(file: Value, config: Value) -> Result<Option<ImageProcessor>, Error> {
    thread_local!(static FOLDER: tempfile::TempDir = tempfile::tempdir().expect("a folder"));
    FOLDER.with(|folder| {
        std::fs::write(folder.path().join("preprocessor_config.json"), file.to_string()).expect("a file");
        ImageProcessor::read(folder.path(), &config)
    })
}

fn processor(file: Value, config: Value) -> ImageProcessor {
    let text = file.to_string();
    read(file, config)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .expect("a processor")
}

fn plan(processor: &ImageProcessor, (width, height): (u32, u32), detail: ImageDetail) -> ImagePlan {
    processor
        .plan(width, height, detail)
        .unwrap_or_else(|error| panic!("{width}×{height}: {error}"))
}

/// One of each family, with what it takes for the five sizes as transformers counts it.
fn families() -> Vec<(&'static str, ImageProcessor, [usize; 5])> {
    let qwen2 = json!({"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 3136, "max_pixels": 12845056});
    let qwen3 = json!({"image_processor_type": "Qwen2VLImageProcessorFast", "patch_size": 16, "min_pixels": null, "max_pixels": null,
        "size": {"shortest_edge": 65536, "longest_edge": 16777216}});
    let glm = json!({"image_processor_type": "Glm4vImageProcessor", "size": {"shortest_edge": 12544, "longest_edge": 9633792}});
    let paddle = json!({"image_processor_type": "SiglipImageProcessor", "min_pixels": 147384, "max_pixels": 2822400});
    let hunyuan =
        json!({"image_processor_type": "HunYuanVLImageProcessor", "min_pixels": 262144, "max_pixels": 4194304});
    let gemma3 = json!({"image_processor_type": "Gemma3ImageProcessor", "size": {"height": 896, "width": 896}});
    let idefics = json!({"image_processor_type": "Idefics3ImageProcessor"});
    let smol = json!({"image_processor_type": "SmolVLMImageProcessor", "size": {"longest_edge": 2048}, "max_image_size": {"longest_edge": 512}});
    let intern = json!({"image_processor_type": "GotOcr2ImageProcessorFast", "size": {"height": 448, "width": 448}, "crop_to_patches": true});
    let lfm = json!({"image_processor_type": "Lfm2VlImageProcessorFast", "do_resize": false});
    let mllama = json!({"image_processor_type": "MllamaImageProcessor", "size": {"height": 560, "width": 560}});
    vec![
        ("qwen2.5-vl", processor(qwen2, json!({})), [64, 1196, 2691, 7140, 15552]),
        ("qwen3-vl", processor(qwen3, json!({})), [64, 880, 2040, 5520, 11844]),
        ("glm-4.1v", processor(glm, json!({})), [64, 1196, 2691, 6111, 6030]),
        (
            "paddleocr-vl",
            processor(paddle, json!({"model_type": "paddleocr_vl"})),
            [196, 1196, 2691, 3552, 3519],
        ),
        (
            "hunyuanocr",
            processor(hunyuan, json!({})),
            [274, 904, 2076, 4082, 4090],
        ),
        (
            "gemma 3",
            processor(gemma3, json!({"mm_tokens_per_image": 256})),
            [256; 5],
        ),
        (
            "idefics3",
            processor(idefics, json!({"scale_factor": 2, "vision_config": {"patch_size": 14}})),
            [2873, 2197, 2197, 2197, 2197],
        ),
        (
            "smolvlm2",
            processor(smol, json!({"scale_factor": 4, "vision_config": {"patch_size": 16}})),
            [1088, 832, 832, 832, 832],
        ),
        (
            "internvl3",
            processor(intern, json!({"vision_config": {"patch_size": [14, 14]}})),
            [256, 2304, 2304, 1792, 3328],
        ),
        ("lfm2-vl", processor(lfm, json!({})), [64, 764, 2300, 1764, 1770]),
        ("llama 3.2", processor(mllama, json!({})), [0; 5]),
    ]
}

#[test]
fn tokens_are_those_that_transformers_counts() {
    for (name, processor, wanted) in families() {
        assert_eq!(
            SIZES.map(|size| plan(&processor, size, Full).tokens()),
            wanted,
            "{name}"
        );
    }
    let gemma4 = processor(json!({"image_processor_type": "Gemma4ImageProcessor"}), json!({}));
    assert_eq!(
        SIZES.map(|size| plan(&gemma4, size, Normal).tokens()),
        [256, 264, 264, 260, 266]
    );
}

#[test]
fn rows_of_pixtral_and_mistral_are_those_between_breaks() {
    let file =
        json!({"image_processor_type": "PixtralImageProcessor", "size": {"longest_edge": 1540}, "patch_size": 14});
    let mistral = processor(
        file,
        json!({"spatial_merge_size": 2, "vision_config": {"patch_size": 14}}),
    );
    let pixtral = processor(json!({"image_processor_type": "PixtralImageProcessor"}), json!({}));
    let with_breaks = |processor: &ImageProcessor| {
        SIZES.map(|size| {
            let (rows, columns) = plan(processor, size, Full).views[0].tokens;
            rows * (columns + 1)
        })
    };
    assert_eq!(with_breaks(&mistral), [72, 1222, 1736, 2016, 2365]);
    assert_eq!(with_breaks(&pixtral), [210, 2340, 2340, 2730, 3136]);
}

#[test]
fn an_image_takes_no_more_than_its_detail_allows() {
    let gemma4 = processor(json!({"image_processor_type": "Gemma4ImageProcessor"}), json!({}));
    let pixtral = processor(json!({"image_processor_type": "PixtralImageProcessor"}), json!({}));
    let all = families().into_iter().map(|(name, processor, _)| (name, processor));
    for (name, processor) in all.chain([("gemma 4", gemma4), ("pixtral", pixtral)]) {
        for size in SIZES
            .into_iter()
            .chain([(1, 1), (16_384, 100), (100, 16_384), (16_384, 16_384), (37, 4001)])
        {
            for detail in [Quick, Normal, Full] {
                let plan = match processor.plan(size.0, size.1, detail) {
                    Ok(plan) => plan,
                    Err(error) => {
                        assert!(matches!(error, Error::TooNarrow { .. }), "{name} {size:?}: {error}");
                        continue;
                    }
                };
                assert!(
                    plan.tokens() <= detail.most_tokens() as usize,
                    "{name} {size:?} {detail:?}: {} tokens",
                    plan.tokens()
                );
                let tiles = plan.tiles.map_or(1, |(rows, columns)| rows * columns) + u32::from(plan.whole);
                assert_eq!(plan.views.len(), tiles as usize, "{name} {size:?} {detail:?}");
                assert!(plan
                    .views
                    .iter()
                    .all(|view| view.width > 0 && view.height > 0 && view.patches.0 > 0 && view.patches.1 > 0));
            }
        }
    }
}

#[test]
fn canvases_of_tiles_are_those_of_the_file_and_within_the_detail() {
    let config = json!({"model_type": "llava_next", "vision_config": {"patch_size": 14, "image_size": 336}});
    let file = |more: Value| {
        let mut file = json!({"image_processor_type": "LlavaNextImageProcessor", "size": {"shortest_edge": 336},
            "crop_size": {"height": 336, "width": 336}});
        file.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        file
    };
    let next = processor(file(json!({})), config.clone());
    let planned = |size, detail| {
        let plan = plan(&next, size, detail);
        (plan.tiles, plan.tokens())
    };
    // The whole, and 48 rows of 48 features and a mark.
    assert_eq!(planned((1024, 1024), Full), (Some((2, 2)), 576 + 48 * 49));
    // The image covers 27 of the 48 rows, to which one of padding is left.
    assert_eq!(planned((1280, 720), Full), (Some((2, 2)), 576 + 28 * 49));
    // In less detail on a smaller canvas, and at last none.
    assert_eq!(planned((1024, 1024), Normal).0, Some((1, 2)));
    assert_eq!(planned((1024, 1024), Quick), (None, 577));
    for (field, value) in [
        ("image_grid_pinpoints", json!([])),
        ("image_grid_pinpoints", json!([[336]])),
        ("image_grid_pinpoints", json!([[336, 400]])),
        ("image_grid_pinpoints", json!([[336, 0]])),
        ("image_grid_pinpoints", json!([[33_600, 33_600]])),
        ("image_grid_pinpoints", json!([["wide", 336]])),
        ("image_grid_pinpoints", json!(336)),
        ("crop_size", json!(224)),
        ("size", json!({"shortest_edge": 224})),
        ("size", json!({"shortest_edge": 0})),
    ] {
        let mut more = json!({});
        more[field] = value.clone();
        assert!(read(file(more), config.clone()).is_err(), "{field} {value}");
    }
    let onevision = |ratio: Value| {
        let file = json!({"image_processor_type": "LlavaOnevisionImageProcessor"});
        read(
            file,
            json!({"model_type": "llava_onevision", "vision_aspect_ratio": ratio}),
        )
    };
    assert!(onevision(json!("anyres_max_4")).is_ok() && onevision(Value::Null).is_ok());
    for ratio in [json!("square"), json!("anyres_max_0"), json!("anyres_max_-1"), json!(9)] {
        assert!(onevision(ratio.clone()).is_err(), "{ratio}");
    }
    let clip = |more: Value| {
        read(
            more,
            json!({"model_type": "llava", "vision_config": {"patch_size": 14, "image_size": 336}}),
        )
    };
    let sound = json!({"image_processor_type": "CLIPImageProcessor", "size": 336, "crop_size": 336});
    let llava = clip(sound).expect("it is sound").expect("a processor");
    assert_eq!(plan(&llava, (640, 480), Full).steps, [(448, 336)]);
    let error = llava.plan(1, 3000, Full).expect_err("nothing of it would be seen");
    assert!(matches!(error, Error::TooNarrow { .. }), "{error}");
    for more in [
        json!({"size": 224, "crop_size": 336}),
        json!({"size": 336, "crop_size": 224}),
        json!({"size": {"shortest_edge": 336}, "do_center_crop": false}),
        json!({"size": 336, "crop_size": 336, "do_pad": true}),
    ] {
        assert!(clip(more.clone()).is_err(), "{more}");
    }
}

#[test]
fn squares_of_fastvlm_are_whole_tokens_that_its_convolutions_can_cover() {
    let read_sized = |size: Value| {
        let file =
            json!({"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": size}, "crop_size": size});
        read(file, json!({"model_type": "llava_qwen2"}))
    };
    let usual = read_sized(json!(1024)).expect("it is sound").expect("a processor");
    assert_eq!(plan(&usual, (1920, 1080), Full).tokens(), 256);
    for size in [64, 384, 1000] {
        assert!(read_sized(json!(size)).is_err(), "{size}");
    }
}

#[test]
fn full_detail_means_the_largest_budget_of_gemma_4_unless_its_file_names_another() {
    let usual = processor(json!({"image_processor_type": "Gemma4ImageProcessor"}), json!({}));
    let small = processor(
        json!({"image_processor_type": "Gemma4ImageProcessor", "max_soft_tokens": 70}),
        json!({}),
    );
    let tokens = |processor, detail| plan(processor, (1920, 1080), detail).tokens();
    assert!(tokens(&usual, Full) > 1000 && tokens(&usual, Full) <= 1120);
    assert_eq!(tokens(&usual, Quick), tokens(&usual, Normal));
    assert_eq!(tokens(&small, Full), tokens(&small, Normal));
}

#[test]
fn processors_without_a_file_keep_to_the_detail() {
    for config in [
        json!({"model_type": "deepseek_vl_v2", "candidate_resolutions": [[384, 384], [768, 384], [1152, 1152]]}),
        json!({"model_type": "deepseekocr"}),
        json!({"model_type": "phi3_v"}),
        json!({"model_type": "molmo"}),
        json!({"model_type": "phi4mm"}),
        json!({"model_type": "molmo2"}),
        json!({"model_type": "jvlm", "vision_config": {}}),
    ] {
        let processor = processor(json!({}), config.clone());
        for size in SIZES.into_iter().chain([(641, 1), (37, 4001), (16_384, 16_384)]) {
            for detail in [Quick, Normal, Full] {
                let Ok(plan) = processor.plan(size.0, size.1, detail) else {
                    continue;
                };
                assert!(
                    plan.tokens() <= detail.most_tokens() as usize,
                    "{config} {size:?} {detail:?}: {} tokens",
                    plan.tokens()
                );
                let tiles = plan.tiles.map_or(1, |(rows, columns)| rows * columns) + u32::from(plan.whole);
                assert_eq!(plan.views.len(), tiles as usize, "{config} {size:?} {detail:?}");
            }
        }
    }
    let unlike = json!({"model_type": "deepseek_vl_v2", "candidate_resolutions": [[400, 384]]});
    assert!(read(json!({}), unlike).is_err());
}

#[test]
fn tiles_that_overlap_share_four_patches_on_each_side() {
    for margins in [json!([4, 3]), json!([14, 14]), json!([3, 3]), json!(4)] {
        for model_type in ["molmo", "molmo2"] {
            let file = json!({"image_mean": 0.5, "overlap_margins": margins});
            let read = read(file, json!({"model_type": model_type}));
            assert!(read.is_err(), "{model_type} {margins}");
        }
    }
}

#[test]
fn null_never_overrides_a_default() {
    let bare = processor(json!({"image_processor_type": "Qwen2VLImageProcessor"}), json!({}));
    let nulls = json!({"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": null, "max_pixels": null, "size": null, "patch_size": null,
        "image_mean": null, "resample": null, "do_normalize": null, "rescale_factor": null, "temporal_patch_size": null});
    assert_eq!(processor(nulls, json!({"vision_config": null})), bare);
    let edges = json!({"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": null, "max_pixels": null,
        "size": {"shortest_edge": 65536, "longest_edge": null}});
    let Sizing::SmartResize(rule) = processor(edges, json!({})).sizing else {
        panic!("a smart resize")
    };
    assert_eq!((rule.min_pixels, rule.max_pixels), (65536, 1_003_520));
    let numbers = json!({"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 7000, "max_pixels": 9000,
        "size": {"shortest_edge": 65536, "longest_edge": 99999}});
    let Sizing::SmartResize(rule) = processor(numbers, json!({})).sizing else {
        panic!("a smart resize")
    };
    assert_eq!((rule.min_pixels, rule.max_pixels), (7000, 9000));
}

#[test]
fn the_newer_place_is_read_too_and_the_one_for_videos_last() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = || ImageProcessor::read(folder.path(), &json!({"model_type": "qwen3_vl"})).expect("it is sound");
    let write = |name: &str, value: Value| std::fs::write(folder.path().join(name), value.to_string()).expect("a file");
    assert_eq!(read(), None);
    write(
        "processor_config.json",
        json!({"processor_class": "Qwen3VLProcessor", "image_processor": null}),
    );
    write(
        "preprocessor_config.json",
        json!({"processor_class": "Qwen3VLProcessor"}),
    );
    assert_eq!(read(), None);
    write(
        "video_preprocessor_config.json",
        json!({"video_processor_type": "Qwen3VLVideoProcessor", "patch_size": 16, "max_pixels": null,
        "size": {"longest_edge": 25165824, "shortest_edge": 4096}}),
    );
    let Sizing::SmartResize(rule) = read().expect("a processor").sizing else {
        panic!("a smart resize")
    };
    assert_eq!((rule.patch, rule.min_pixels, rule.max_pixels), (16, 3136, 1_003_520));
    write(
        "processor_config.json",
        json!({"image_processor": {"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 16,
        "min_pixels": null, "max_pixels": null, "size": {"longest_edge": 16777216, "shortest_edge": 65536}}}),
    );
    let Sizing::SmartResize(rule) = read().expect("a processor").sizing else {
        panic!("a smart resize")
    };
    assert_eq!((rule.patch, rule.min_pixels, rule.max_pixels), (16, 65536, 16_777_216));
}

#[test]
fn an_unknown_processor_is_named() {
    for (file, named) in [
        (
            json!({"image_processor_type": "KimiK25ImageProcessor"}),
            "KimiK25ImageProcessor",
        ),
        (json!({"image_mean": [0.5, 0.5, 0.5]}), "moondream3"),
    ] {
        let error = read(file, json!({"model_type": "moondream3"})).expect_err("it is not known");
        assert!(matches!(error, Error::UnknownProcessor(_)), "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
}

#[test]
fn hostile_numbers_are_refused_and_never_reckoned_with() {
    let names = [
        "Qwen2VL",
        "Glm4v",
        "PaddleOCRVL",
        "HunYuanVL",
        "Gemma3",
        "Gemma4",
        "Pixtral",
        "Idefics2",
        "Idefics3",
        "GotOcr2",
        "Lfm2Vl",
        "Mllama",
    ];
    let fields = [
        "patch_size",
        "merge_size",
        "temporal_patch_size",
        "min_pixels",
        "max_pixels",
        "max_soft_tokens",
        "pooling_kernel_size",
        "max_patches",
        "min_patches",
        "tile_size",
        "max_tiles",
        "min_tiles",
        "max_image_tokens",
        "min_image_tokens",
        "downsample_factor",
        "encoder_patch_size",
        "max_image_tiles",
        "rescale_factor",
        "image_mean",
        "image_std",
        "resample",
        "do_normalize",
        "max_pixels_tolerance",
    ];
    let values = [
        json!(0),
        json!(-1),
        json!(1e300),
        json!(4294967295u32),
        json!(18446744073709551615u64),
        json!(0.5),
        json!("many"),
        json!([]),
        json!({}),
    ];
    let config = json!({"vision_config": {"patch_size": 14}, "scale_factor": 2});
    for name in names {
        for field in fields {
            for value in &values {
                try_all(
                    json!({"image_processor_type": format!("{name}ImageProcessor"), "crop_to_patches": true, field: value}),
                    &config,
                );
            }
        }
        for value in &values {
            for size in [
                json!({"longest_edge": value}),
                json!({"shortest_edge": value}),
                json!({"height": value, "width": 560}),
                value.clone(),
            ] {
                let file = json!({"image_processor_type": format!("{name}ImageProcessor"), "size": size, "max_image_size": size});
                try_all(file, &config);
            }
            for field in ["patch_size", "image_size"] {
                try_all(
                    json!({"image_processor_type": format!("{name}ImageProcessor")}),
                    &json!({"vision_config": {field: value}, "scale_factor": value,
                    "downsample_ratio": value, "mm_tokens_per_image": value, "spatial_merge_size": value}),
                );
            }
        }
    }
}

/// Whatever it is, it is read or refused, and its plans are bounded.
fn try_all(file: Value, config: &Value) {
    let text = file.to_string();
    let Ok(Some(processor)) = read(file, config.clone()) else {
        return;
    };
    for (width, height) in [
        (1, 1),
        (640, 480),
        (16_384, 16_384),
        (u32::MAX, u32::MAX),
        (1, u32::MAX),
    ] {
        for detail in [Quick, Full] {
            if let Ok(plan) = processor.plan(width, height, detail) {
                let pixels: u64 = plan
                    .views
                    .iter()
                    .map(|view| u64::from(view.width) * u64::from(view.height))
                    .sum();
                assert!(pixels <= 1 << 25, "{text}: {pixels} pixels");
            }
        }
    }
}

#[test]
fn keys_differ_if_and_only_if_settings_do() {
    let with = |size: u32| {
        processor(
            json!({"image_processor_type": "Gemma3ImageProcessor", "size": {"height": size, "width": size}}),
            json!({}),
        )
    };
    assert_eq!(with(896).key(), with(896).key());
    assert_ne!(with(896).key(), with(448).key());
}

#[test]
fn less_detail_takes_fewer_patches() {
    let qwen = processor(
        json!({"image_processor_type": "Qwen2VLImageProcessor", "max_pixels": 12845056}),
        json!({}),
    );
    let size = (3024, 4032);
    let patches = |detail| plan(&qwen, size, detail).most_patches();
    assert!(patches(Quick) < patches(Normal) && patches(Normal) < patches(Full));
    let with = |detail| (detail, patches(detail));
    assert_eq!(qwen.less_detail(size, Full), [with(Normal), with(Quick)]);
    assert_eq!(qwen.less_detail(size, Normal), [with(Quick)]);
    assert_eq!(qwen.less_detail(size, Quick), []);
}
