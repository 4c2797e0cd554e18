//! The memory of a quantization, on a model much larger than it may be.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use checkpoint::conversion::Recipe;
use checkpoint::Mode;
use engine::MlxEngine;
use protocol::CancelFlag;
use serde_json::{json, Map, Value};

/// Tensors of a Qwen 3 of about 3.5 GB: an embedding of 622 MB, and layers.
fn shapes(layers: usize) -> Vec<(String, Vec<usize>)> {
    let mut all = vec![
        ("model.embed_tokens.weight".to_owned(), vec![151_936, 2048]),
        ("model.norm.weight".to_owned(), vec![2048]),
    ];
    for layer in 0..layers {
        for (name, shape) in [
            ("self_attn.q_proj", &[2048, 2048][..]),
            ("self_attn.k_proj", &[1024, 2048]),
            ("self_attn.v_proj", &[1024, 2048]),
            ("self_attn.o_proj", &[2048, 2048]),
            ("self_attn.q_norm", &[128]),
            ("self_attn.k_norm", &[128]),
            ("mlp.gate_proj", &[6144, 2048]),
            ("mlp.up_proj", &[6144, 2048]),
            ("mlp.down_proj", &[2048, 6144]),
            ("input_layernorm", &[2048]),
            ("post_attention_layernorm", &[2048]),
        ] {
            all.push((format!("model.layers.{layer}.{name}.weight"), shape.to_vec()));
        }
    }
    all
}

/// Writes it in one file, a tensor at a time.
fn write_model(folder: &Path, layers: usize) -> u64 {
    fs::create_dir(folder).unwrap();
    let config = json!({
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 2048, "intermediate_size": 6144,
        "num_hidden_layers": layers, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
        "rms_norm_eps": 1e-6, "vocab_size": 151_936, "max_position_embeddings": 40960, "tie_word_embeddings": true,
        "torch_dtype": "bfloat16",
    });
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let (shapes, mut header, mut end) = (shapes(layers), Map::new(), 0);
    for (name, shape) in &shapes {
        let start = end;
        end += 2 * shape.iter().product::<usize>();
        header.insert(
            name.clone(),
            json!({"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}),
        );
    }
    let header = Value::Object(header).to_string();
    let mut file = File::create(folder.join("model.safetensors")).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    let mut state = 1_u64;
    for (_, shape) in &shapes {
        let numbers = (0..shape.iter().product::<usize>()).flat_map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let number = (state >> 40) as f32 / (1 << 24) as f32 - 0.5;
            ((number.to_bits() >> 16) as u16).to_le_bytes()
        });
        file.write_all(&numbers.collect::<Vec<u8>>()).unwrap();
    }
    end as u64
}

/// The most memory that this process has had, in bytes.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

#[test]
#[ignore = "writes more than 4 GB; run with --ignored --nocapture"]
fn a_model_of_gigabytes_is_quantized_in_less_than_two() {
    let folder = tempfile::tempdir_in(std::env::var_os("PONDER_LARGE").unwrap_or(std::env::temp_dir().into())).unwrap();
    let source = folder.path().join("model");
    let bytes = write_model(&source, 28);
    // Writing has a peak of its own, which is forgotten.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let began = std::time::Instant::now();
    let recipe = Recipe::new(Mode::Affine, Some(4), Some(64), None).unwrap();
    let made = MlxEngine::start()
        .quantize(
            &source,
            &folder.path().join("copy"),
            recipe,
            CancelFlag::default(),
            |_| {},
        )
        .unwrap();
    let peak = peak().unwrap();
    println!(
        "{:.2} GB became {:.2} GB in {:.0} s, peak {:.0} MB",
        bytes as f64 / 1e9,
        made.bytes as f64 / 1e9,
        began.elapsed().as_secs_f64(),
        peak as f64 / 1e6
    );
    assert!(bytes > 3 << 30 && peak < 2 << 30);
}
