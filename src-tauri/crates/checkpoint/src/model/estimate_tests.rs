#![allow(clippy::unwrap_used)]

use protocol::KvBits;
use serde_json::{json, Value};

use super::*;

fn config(json: Value) -> ModelConfig {
    ModelConfig::parse(&json.to_string()).unwrap()
}

fn qwen3() -> ModelConfig {
    config(
        json!({"model_type": "qwen3", "hidden_size": 2560, "num_hidden_layers": 36, "intermediate_size": 9728,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-6, "vocab_size": 151_936,
        "max_position_embeddings": 40960, "rope_theta": 1_000_000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
        "quantization": {"group_size": 64, "bits": 4, "mode": "affine"}}),
    )
}

fn wanted(context: u32, kv_bits: Option<KvBits>, backend: Backend) -> Workload {
    Workload {
        context,
        kv_bits,
        backend,
        prefix_cached: false,
    }
}

#[test]
fn keys_of_full_attention_are_counted_by_hand() {
    let model = qwen3();
    let kv = |context, bits, backend| model.estimate_memory(0, &wanted(context, bits, backend)).kv;
    // 36 layers, 8 heads of 128 numbers, keys and values.
    assert_eq!(kv(4096, None, Backend::Metal), 36 * 8 * 128 * 2 * 2 * 4096);
    assert_eq!(kv(4096, None, Backend::Cpu), 36 * 8 * 128 * 2 * 2 * 4096);
    assert_eq!(kv(1, None, Backend::Metal), 36 * 8 * 128 * 2 * 2 * 256);
    // 8 bits with a scale and a bias of 16 bits for every 64.
    let eight = KvBits::try_from(8).unwrap();
    assert_eq!(kv(4096, Some(eight), Backend::Metal), 36 * 8 * 2 * (128 + 8) * 4096);
    let both = Workload {
        prefix_cached: true,
        ..wanted(4096, None, Backend::Metal)
    };
    assert_eq!(model.estimate_memory(0, &both).kv, 2 * 36 * 8 * 128 * 2 * 2 * 4096);
}

#[test]
fn parameters_are_those_of_the_published_model() {
    // Qwen3 4B has 4.02 billion, 3.6 without its embedding.
    let billions = qwen3().parameters() as f64 / 1e9;
    assert!((4.0..4.05).contains(&billions), "{billions}");
    for backend in [Backend::Cpu, Backend::Metal, Backend::Cuda] {
        let need = qwen3().estimate_memory(2_263_000_000, &wanted(1024, None, backend));
        assert_eq!(need.weights, 2_263_000_000, "{backend:?}");
    }
}

#[test]
fn more_context_never_takes_less_and_the_most_is_the_most() {
    let model = qwen3();
    for backend in [Backend::Cpu, Backend::Metal, Backend::Cuda] {
        let sum = |context| {
            model
                .estimate_memory(2_263_000_000, &wanted(context, None, backend))
                .total()
        };
        let sums: Vec<u64> = (1..=160).map(|steps| sum(steps * 256)).collect();
        assert!(sums.is_sorted(), "{backend:?}");
        for bytes in [sums[0], sums[17], sums[90] + 1] {
            let most = model
                .max_context(2_263_000_000, &wanted(1, None, backend), bytes)
                .unwrap();
            assert!(sum(most) <= bytes && sum(most + 256) > bytes, "{backend:?} {most}");
        }
        assert_eq!(
            model.max_context(2_263_000_000, &wanted(1, None, backend), u64::MAX),
            Some(40960)
        );
        assert_eq!(
            model.max_context(2_263_000_000, &wanted(1, None, backend), 1 << 30),
            None
        );
    }
}

#[test]
fn the_largest_shapes_that_a_config_may_claim_are_summed_without_overflow() {
    let huge = config(
        json!({"model_type": "llama", "hidden_size": 8_388_608, "num_hidden_layers": 4096, "intermediate_size": 8_388_608,
        "num_attention_heads": 4096, "num_key_value_heads": 2048, "head_dim": 2048, "rms_norm_eps": 1e-5, "vocab_size": 16_777_216,
        "max_position_embeddings": 4_294_967_295u32}),
    );
    for backend in [Backend::Cpu, Backend::Metal, Backend::Cuda] {
        assert!(
            huge.estimate_memory(1, &wanted(u32::MAX, None, backend)).total() > 1 << 50,
            "{backend:?}"
        );
    }
}
