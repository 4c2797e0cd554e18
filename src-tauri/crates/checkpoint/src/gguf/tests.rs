//! Imports of files that are put together here: what each architecture's row makes, and what is refused.
#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::architecture::{Architecture, ARCHITECTURES};
use super::file::tests::Writer;
use super::*;
use crate::error::{Error, Result};

fn planned(writer: &Writer) -> Result<GgufImport> {
    let folder = tempfile::tempdir().unwrap();
    GgufImport::plan(&writer.write(&folder, "model.gguf"))
}

/// The sizes of a small model, without tensors and tokens.
fn sizes(row: &Architecture) -> Writer {
    let key = |key: &str| format!("{}.{key}", row.name);
    let mut writer = Writer::default().text("general.architecture", row.name);
    let mut known = vec!["attention.layer_norm_rms_epsilon", "rope.freq_base"];
    writer = writer
        .float(&key("attention.layer_norm_rms_epsilon"), 1e-6)
        .float(&key("rope.freq_base"), 10_000.0);
    for (name, count) in [
        ("block_count", 1),
        ("embedding_length", 64),
        ("feed_forward_length", 64),
        ("attention.head_count", 2),
        ("attention.head_count_kv", 2),
        ("attention.key_length", 32),
        ("attention.value_length", 32),
        ("context_length", 128),
    ] {
        writer = writer.number(&key(name), count);
        known.push(name);
    }
    for (_, name) in row.fields {
        let is_count = ["count", "length", "window"].iter().any(|end| name.ends_with(end));
        writer = match is_count {
            _ if known.contains(name) => writer,
            true => writer.number(&key(name), 4),
            false => writer.float(&key(name), 2.0),
        };
        known.push(name);
    }
    match row.experts && !known.contains(&"expert_count") {
        true => writer.number(&key("expert_count"), 4),
        false => writer,
    }
}

fn tokens(writer: Writer) -> Writer {
    writer
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "llama-bpe")
        .texts("tokenizer.ggml.tokens", &["<s>", "a", "b", "ab", "<tool>"])
        .integers("tokenizer.ggml.token_type", &[3, 1, 1, 1, 4])
        .texts("tokenizer.ggml.merges", &["a b"])
        .number("tokenizer.ggml.bos_token_id", 0)
        .number("tokenizer.ggml.eos_token_id", 0)
        .number("tokenizer.ggml.eot_token_id", 4)
        .text("tokenizer.chat_template", "{{ messages }}")
}

fn llama() -> Writer {
    let row = ARCHITECTURES[0];
    tokens(sizes(&row)).tensor("token_embd.weight", &[64, 5], 0, &[0; 64 * 5 * 4])
}

fn refused(writer: &Writer) -> String {
    planned(writer).unwrap_err().to_string()
}

#[test]
fn every_row_makes_a_config_that_is_read() {
    // Those of several kinds of layers need more, and `tests/gguf.rs` has whole files of them.
    for row in ARCHITECTURES.iter().filter(|row| row.hybrid.is_none()) {
        let writer = tokens(sizes(row)).tensor("token_embd.weight", &[64, 5], 30, &[0; 64 * 5 * 2]);
        let import = planned(&writer).unwrap_or_else(|error| panic!("{}: {error}", row.name));
        assert_eq!(
            (&import.config["model_type"], &import.config["vocab_size"]),
            (&json!(row.model_type), &json!(5))
        );
        assert_eq!(import.config["torch_dtype"], "bfloat16");
        let constants: serde_json::Value = serde_json::from_str(row.constants).unwrap();
        assert!(constants.is_object(), "{}", row.name);
    }
}

#[test]
fn formats_of_single_tensors_are_told_as_mlx_lm_does() {
    let q4 = [0; 18 * 2 * 64];
    let writer = llama()
        .tensor("blk.0.attn_q.weight", &[64, 64], 2, &q4)
        .tensor("blk.0.attn_k.weight", &[64, 64], 2, &q4)
        .tensor("blk.0.attn_v.weight", &[64, 64], 8, &[0; 34 * 2 * 64])
        .tensor("output.weight", &[64, 5], 0, &[0; 64 * 5 * 4]);
    let import = planned(&writer).unwrap();
    let format = |bits: u32| json!({"group_size": 32, "bits": bits, "mode": "affine"});
    let mut expected = format(4);
    expected["model.layers.0.self_attn.v_proj"] = format(8);
    assert_eq!(
        (&import.config["quantization"], &import.config["quantization_config"]),
        (&expected, &expected)
    );
    assert_eq!(import.config["tie_word_embeddings"], false);
    assert_eq!(import.config["eos_token_id"], json!([0, 4]));
    let names: Vec<&str> = import.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names[0], "model.embed_tokens.weight");
    assert_eq!(names[4], "lm_head.weight");
    assert_eq!(
        (import.targets[4].dtype, import.bytes() > import.source_bytes() / 2),
        ("F16", true)
    );
}

#[test]
fn rows_of_heads_are_put_back_in_order() {
    let rows: Vec<u8> = (0..64_u32)
        .flat_map(|row| [(row as f32).to_le_bytes(); 64])
        .flatten()
        .collect();
    let bias: Vec<u8> = (0..64_u32).flat_map(|row| (row as f32).to_le_bytes()).collect();
    let writer = llama()
        .tensor("blk.0.attn_q.weight", &[64, 64], 0, &rows)
        .tensor("blk.0.attn_q.bias", &[64], 0, &bias)
        .tensor("blk.0.attn_output.bias", &[64], 0, &bias);
    let folder = tempfile::tempdir().unwrap();
    let import = GgufImport::plan(&writer.write(&folder, "model.gguf")).unwrap();
    for (target, columns) in [(1, 64), (2, 1)] {
        let mut bytes = Vec::new();
        import
            .read::<Error>(target, |parts, _| {
                bytes.extend(parts.weight);
                Ok(())
            })
            .unwrap();
        let first = bytes
            .chunks_exact(4 * columns)
            .map(|row| f32::from_le_bytes(row[..4].try_into().unwrap()));
        // Two heads of 32: even rows are the first half of what turns.
        let head = |start: u32| (0..2).flat_map(move |half| (0..16).map(move |row| (start + 2 * row + half) as f32));
        assert_eq!(
            first.collect::<Vec<f32>>(),
            head(0).chain(head(32)).collect::<Vec<f32>>()
        );
    }
}

#[test]
fn tokens_that_are_no_text_and_the_first_of_every_text_are_kept() {
    let import = planned(&llama()).unwrap();
    let (name, tokenizer) = &import.others[0];
    assert_eq!(*name, "tokenizer.json");
    let added = tokenizer["added_tokens"].as_array().unwrap();
    let added: Vec<_> = added
        .iter()
        .map(|token| (token["content"].as_str().unwrap(), &token["special"]))
        .collect();
    assert_eq!(added, [("<s>", &json!(true)), ("<tool>", &json!(false))]);
    assert_eq!(tokenizer["model"]["merges"], json!([["a", "b"]]));
    assert_eq!(
        tokenizer["post_processor"]["single"][0],
        json!({"SpecialToken": {"id": "<s>", "type_id": 0}})
    );
    let plain = planned(&llama().raw("tokenizer.ggml.add_bos_token", 7, &[0])).unwrap();
    assert_eq!(plain.others[0].1["post_processor"], json!(null));
    assert_eq!(import.others[1].1["chat_template"], "{{ messages }}");
}

#[test]
fn texts_begin_with_a_blank_unless_the_model_or_its_file_says_otherwise() {
    let normalizer = |name: &str, said: Option<u8>| {
        let row = ARCHITECTURES.iter().find(|row| row.name == name).unwrap();
        let scores = [&6_u32.to_le_bytes()[..], &3_u64.to_le_bytes(), &[0; 12]].concat();
        let mut writer = sizes(row)
            .tensor("token_embd.weight", &[64, 3], 30, &[0; 64 * 3 * 2])
            .text("tokenizer.ggml.model", "llama")
            .texts("tokenizer.ggml.tokens", &["<unk>", "▁", "a"])
            .raw("tokenizer.ggml.scores", 9, &scores)
            .text("tokenizer.chat_template", "{{ messages }}");
        if let Some(said) = said {
            writer = writer.raw("tokenizer.ggml.add_space_prefix", 7, &[said]);
        }
        planned(&writer).unwrap().others[0].1["normalizer"]["type"].clone()
    };
    assert_eq!(normalizer("llama", None), "Sequence");
    assert_eq!(normalizer("llama", Some(0)), "Replace");
    assert_eq!(normalizer("gemma3", None), "Replace");
    assert_eq!(normalizer("gemma3", Some(1)), "Sequence");
}

#[test]
fn what_cannot_be_imported_is_refused_by_name() {
    let row = ARCHITECTURES[0];
    let other = |name: &'static str| Architecture { name, ..row };
    let embedding = |writer: Writer| writer.tensor("token_embd.weight", &[64, 5], 0, &[0; 64 * 5 * 4]);
    for (writer, words) in [
        (embedding(tokens(sizes(&other("mamba9")))), "the architecture `mamba9`"),
        (
            llama()
                .number("llama.expert_shared_count", 1)
                .tensor("v.blk.0.x", &[1], 0, &[0; 4]),
            "",
        ),
        (
            llama().tensor("blk.0.ssm_a.weight", &[4], 0, &[0; 16]),
            "`blk.0.ssm_a.weight`",
        ),
        (
            llama().tensor("blk.7.attn_q.weight", &[64, 64], 0, &[0; 64 * 64 * 4]),
            "`blk.7.attn_q.weight`",
        ),
        (
            llama().tensor("blk.0.attn_q.other", &[4], 0, &[0; 16]),
            "`blk.0.attn_q.other`",
        ),
        (
            llama().tensor("blk.0.attn_norm.weight", &[64], 2, &[0; 36]),
            "`blk.0.attn_norm.weight`",
        ),
        (
            llama().tensor("blk.0.attn_q.weight", &[64, 63], 0, &[0; 63 * 64 * 4]),
            "63 rows",
        ),
        (
            llama().tensor("blk.0.attn_q.bias", &[64], 0, &[0; 256]),
            "biases of some",
        ),
        (llama().text("llama.rope.scaling.type", "ntk"), "type `ntk`"),
        (sizes(&row), "lacks `token_embd.weight`"),
        (embedding(sizes(&row)), "no list of tokens"),
        (
            embedding(sizes(&row)).texts("tokenizer.ggml.tokens", &["a"]),
            "kind `none`",
        ),
        (
            embedding(Writer::default().text("general.architecture", "llama")),
            "lacks `llama.block_count`",
        ),
        (Writer::default().text("general.architecture", "clip"), "`mmproj`"),
        (
            Writer::default()
                .text("general.architecture", "llama")
                .text("general.type", "adapter"),
            "adapters",
        ),
    ] {
        match words {
            "" => assert!(planned(&writer).unwrap().text_only),
            words => {
                let error = refused(&writer);
                assert!(error.contains(words), "{error} has not {words}");
            }
        }
    }
    let bare = |model: &str, pre: &str| {
        let writer = embedding(sizes(&row)).texts("tokenizer.ggml.tokens", &["a", "b", "ab"]);
        writer
            .text("tokenizer.ggml.model", model)
            .text("tokenizer.ggml.pre", pre)
    };
    let base = |model: &str, pre: &str| bare(model, pre).text("tokenizer.chat_template", "{{ messages }}");
    for (writer, words) in [
        (base("gpt2", "superbpe"), "the pre-tokenizer `superbpe`"),
        (base("bert", ""), "kind `bert`"),
        (base("gpt2", "qwen2"), "no merges"),
        (
            base("gpt2", "qwen2").texts("tokenizer.ggml.merges", &["a c"]),
            "no tokens",
        ),
        (
            base("gpt2", "qwen2").texts("tokenizer.ggml.merges", &["ab"]),
            "no tokens",
        ),
        (base("gpt2", "qwen2").texts("tokenizer.ggml.merges", &[""]), "no tokens"),
        (
            bare("gpt2", "qwen2").texts("tokenizer.ggml.merges", &["a b"]),
            "no chat template",
        ),
        (base("llama", ""), "scores"),
        (
            base("gpt2", "qwen2").integers("tokenizer.ggml.token_type", &[1]),
            "kinds of tokens",
        ),
    ] {
        let error = refused(&writer);
        assert!(error.contains(words), "{error} has not {words}");
    }
}

#[test]
fn absurd_sizes_of_layers_of_several_kinds_are_refused() {
    let keys = [
        "ssm.conv_kernel",
        "ssm.state_size",
        "ssm.group_count",
        "ssm.time_step_rank",
        "ssm.inner_size",
        "full_attention_interval",
        "nextn_predict_layers",
        "attention.shared_kv_layers",
        "expert_count",
    ];
    for row in ARCHITECTURES.iter().filter(|row| row.hybrid.is_some()) {
        for changed in keys {
            for absurd in [0, 3, u32::MAX] {
                let mut writer = tokens(sizes(row)).number(&format!("{}.rope.dimension_count", row.name), 32);
                for key in keys
                    .into_iter()
                    .filter(|key| *key != "nextn_predict_layers" || *key == changed)
                {
                    writer = writer.number(&format!("{}.{key}", row.name), if key == changed { absurd } else { 8 });
                }
                let writer = writer
                    .tensor("token_embd.weight", &[64, 5], 0, &[0; 64 * 5 * 4])
                    .tensor("blk.0.attn_qkv.weight", &[64, 48], 0, &[0; 64 * 48 * 4])
                    .tensor("blk.0.ssm_a", &[8], 0, &[0; 32])
                    .tensor("blk.0.ssm_out.weight", &[8, 64], 0, &[0; 64 * 8 * 4])
                    .tensor("blk.0.ffn_gate_up_exps.weight", &[64, 2, 8], 0, &[0; 64 * 2 * 8 * 4]);
                let error = refused(&writer);
                assert!(!error.is_empty(), "{}: {changed} {absurd}", row.name);
            }
        }
    }
}

#[test]
fn the_document_has_every_architecture() {
    let document = include_str!("../../../../../docs/models.md");
    for row in ARCHITECTURES {
        assert!(document.contains(&format!("`{}`", row.name)), "{}", row.name);
    }
}
