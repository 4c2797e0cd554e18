//! The files of sentence-transformers, as repositories have them.
#![allow(clippy::unwrap_used)]

use super::*;

const BERT: &str = r#"{"architectures": ["BertModel"], "model_type": "bert", "hidden_size": 384, "num_hidden_layers": 6,
    "intermediate_size": 1536, "num_attention_heads": 12, "vocab_size": 30522, "max_position_embeddings": 512}"#;

fn read(files: &[(&str, &str)]) -> Result<EmbeddingConfig> {
    let folder = tempfile::tempdir().unwrap();
    let mut all = vec![("config.json", BERT)];
    all.extend(files);
    for (name, text) in &all {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    EmbeddingConfig::read(folder.path(), &ModelConfig::read(folder.path()).unwrap())
}

fn modules(more: &str) -> String {
    format!(
        r#"[{{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}},
            {{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}}{more}]"#
    )
}

const NORMALIZE: &str =
    r#", {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}"#;

#[test]
fn a_small_model_is_pooled_by_the_mean_and_normalised() {
    let pooling = r#"{"word_embedding_dimension": 384, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true,
        "pooling_mode_max_tokens": false, "pooling_mode_mean_sqrt_len_tokens": false}"#;
    let config = read(&[
        ("modules.json", &modules(NORMALIZE)),
        ("1_Pooling/config.json", pooling),
        (
            "sentence_bert_config.json",
            r#"{"max_seq_length": 256, "do_lower_case": false}"#,
        ),
    ])
    .unwrap();
    assert_eq!(
        (&config.pooling[..], &config.steps[..]),
        (&[Pooling::Mean][..], &[EmbeddingStep::Normalize][..])
    );
    assert_eq!((config.max_tokens, config.width, config.normalizes()), (256, 384, true));
    assert!(config.dimensions.allow(384, 384) && !config.dimensions.allow(128, 384));
}

#[test]
fn projections_follow_one_another_and_their_widths_have_to_fit() {
    let more = r#", {"path": "2_Dense", "type": "sentence_transformers.models.Dense"},
        {"path": "3_Dense", "type": "sentence_transformers.models.Dense"},
        {"path": "4_Normalize", "type": "sentence_transformers.models.Normalize"}"#;
    let dense = |inputs: u32, outputs: u32, activation: &str| {
        format!(
            r#"{{"in_features": {inputs}, "out_features": {outputs}, "bias": false, "activation_function": "torch.nn.modules.{activation}"}}"#
        )
    };
    let with = |second: &str, last: &str| {
        read(&[
            ("modules.json", &modules(more)),
            ("1_Pooling/config.json", r#"{"pooling_mode": "lasttoken"}"#),
            ("2_Dense/config.json", second),
            ("3_Dense/config.json", last),
        ])
    };
    let config = with(
        &dense(384, 1536, "linear.Identity"),
        &dense(1536, 128, "activation.Tanh"),
    )
    .unwrap();
    assert_eq!(
        (&config.pooling[..], config.width, config.steps.len()),
        (&[Pooling::LastToken][..], 128, 3)
    );
    let EmbeddingStep::Dense(last) = &config.steps[1] else {
        panic!("{:?}", config.steps)
    };
    let place = DensePlace::Folder("3_Dense".into());
    assert_eq!(
        (&last.place, last.activation, last.bias),
        (&place, DenseActivation::Tanh, false)
    );
    assert!(with(&dense(384, 1536, "linear.Identity"), &dense(99, 128, "linear.Identity")).is_err());
    let error = with(
        &dense(384, 1536, "activation.Mish"),
        &dense(1536, 128, "linear.Identity"),
    )
    .unwrap_err();
    assert!(error.to_string().contains("Mish"), "{error}");
}

#[test]
fn several_poolings_stand_side_by_side() {
    let pooling =
        r#"{"pooling_mode_lasttoken": true, "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}"#;
    let config = read(&[("modules.json", &modules("")), ("1_Pooling/config.json", pooling)]).unwrap();
    assert_eq!(
        (&config.pooling[..], config.width),
        (&[Pooling::FirstToken, Pooling::LastToken][..], 768)
    );
    assert!(!config.normalizes());
    assert!(read(&[
        ("modules.json", &modules("")),
        ("1_Pooling/config.json", r#"{"pooling_mode_mean_tokens": false}"#)
    ])
    .is_err());
}

#[test]
fn a_model_without_modules_is_pooled_by_the_mean() {
    let config = read(&[]).unwrap();
    assert_eq!(
        (&config.pooling[..], config.steps.len(), config.max_tokens),
        (&[Pooling::Mean][..], 0, 512)
    );
}

#[test]
fn vectors_are_cut_if_the_config_says_that_they_may_be() {
    let with = |field: &str| {
        read(&[("config.json", &BERT.replacen('{', &format!("{{{field},"), 1))])
            .unwrap()
            .dimensions
    };
    assert_eq!(with(r#""is_matryoshka": true"#), Dimensions::AtLeast(1));
    let listed = with(r#""matryoshka_dimensions": [64, 128]"#);
    assert!(listed.allow(64, 384) && listed.allow(384, 384) && !listed.allow(65, 384));
    let any = Dimensions::AtLeast(1);
    assert!(!any.allow(0, 384) && !any.allow(385, 384));
}

/// Qwen3-Embedding says "MRL support" and dimensions from 32 on in its card; EmbeddingGemma says 768, 512, 256 and 128.
#[test]
fn vectors_are_cut_if_the_model_is_known_to_be_trained_for_it() {
    let of = |base: &str| {
        let card = format!("---\nbase_model: {base}\n---\n");
        read(&[("README.md", &card)]).unwrap().dimensions
    };
    assert_eq!(of("Qwen/Qwen3-Embedding-0.6B"), Dimensions::AtLeast(32));
    assert_eq!(
        of("google/embeddinggemma-300m"),
        Dimensions::Listed(vec![128, 256, 512])
    );
    assert_eq!(of("BAAI/bge-small-en-v1.5"), Dimensions::Whole);
    let qwen = of("Qwen/Qwen3-Embedding-0.6B");
    assert!(qwen.allow(32, 1024) && qwen.allow(1000, 1024) && !qwen.allow(31, 1024) && !qwen.allow(1025, 1024));
}

#[test]
fn what_mlx_lm_leaves_of_qwens_embedding_models_is_pooled_as_with_its_modules() {
    const QWEN: &str = r#"{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 1,
        "intermediate_size": 64, "num_attention_heads": 2, "vocab_size": 64, "tie_word_embeddings": true}"#;
    let pooling =
        r#"{"word_embedding_dimension": 64, "pooling_mode_mean_tokens": false, "pooling_mode_lasttoken": true}"#;
    let whole = [
        ("config.json", QWEN),
        ("modules.json", &modules(NORMALIZE)),
        ("1_Pooling/config.json", pooling),
    ];
    assert_eq!(read(&whole).unwrap(), read(&[("config.json", QWEN)]).unwrap());
}

#[test]
fn modules_that_are_not_known_or_lead_elsewhere_are_refused() {
    let one = |kind: &str, path: &str| {
        let more = format!(r#", {{"path": "{path}", "type": "sentence_transformers.models.{kind}"}}"#);
        read(&[("modules.json", &modules(&more)), ("1_Pooling/config.json", "{}")])
    };
    assert!(one("LayerNorm", "2_LayerNorm")
        .unwrap_err()
        .to_string()
        .contains("LayerNorm"));
    for path in ["../other", "/etc", "a/b", ".."] {
        assert!(matches!(one("Dense", path), Err(Error::InvalidModule { .. })), "{path}");
    }
    for text in ["{}", "[", "[{}]", "7"] {
        assert!(
            matches!(read(&[("modules.json", text)]), Err(Error::InvalidModule { .. })),
            "{text}"
        );
    }
}

#[test]
fn a_classifier_with_one_label_is_a_reranker() {
    let read = |change: &str| {
        let folder = tempfile::tempdir().unwrap();
        let config = BERT.replace("\"architectures\": [\"BertModel\"], ", change);
        std::fs::write(folder.path().join("config.json"), config).unwrap();
        let config = ModelConfig::read(folder.path()).unwrap();
        (config.kind, EmbeddingConfig::read(folder.path(), &config))
    };
    let one = r#""architectures": ["BertForSequenceClassification"], "id2label": {"0": "LABEL_0"}, "#;
    let (kind, config) = read(one);
    let config = config.unwrap();
    assert_eq!((kind, config.width, config.steps.len()), (ModelKind::Reranker, 1, 2));
    assert_eq!(config.pooling, [Pooling::FirstToken]);
    // Two labels are classes, and their head is left aside, as every task's.
    for other in [
        r#""architectures": ["BertForSequenceClassification"], "#,
        r#""architectures": ["BertForSequenceClassification"], "id2label": {"0": "a", "1": "b"}, "#,
        r#""architectures": ["BertModel"], "id2label": {"0": "LABEL_0"}, "#,
    ] {
        assert_eq!(read(other).0, ModelKind::Embedding, "{other}");
    }
}
