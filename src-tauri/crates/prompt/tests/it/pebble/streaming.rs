//! Pebble's ids, decoded one by one.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

static PEBBLE: LazyLock<ChatProcessor> = LazyLock::new(pebble);
static LIBRARY: LazyLock<tokenizers::Tokenizer> =
    LazyLock::new(|| tokenizers::Tokenizer::from_file(folder().join("tokenizer.json")).unwrap());

fn stream(ids: &[u32]) -> Vec<String> {
    let mut detokenizer = Detokenizer::new(PEBBLE.tokenizer().clone());
    let mut pieces: Vec<String> = ids.iter().map(|id| detokenizer.push(*id)).collect();
    pieces.push(detokenizer.finish());
    pieces
}

#[test]
fn a_cat_arrives_whole() {
    let ids = PEBBLE.encode(" 🐱!").unwrap();
    assert!(ids.len() > 4);
    let pieces: Vec<String> = stream(&ids).into_iter().filter(|piece| !piece.is_empty()).collect();
    assert_eq!(pieces, [" ", "🐱", "!"]);
    let cut = PEBBLE.encode("a🐱").unwrap();
    assert_eq!(stream(&cut[..3]).concat(), "a\u{FFFD}");
}

proptest! {
    #[test]
    fn any_text_survives_encoding_and_streaming(text in "(\\PC|[a-z <|>\\n▁]){0,40}") {
        let ids = PEBBLE.encode(&text).unwrap();
        let pieces = stream(&ids);
        prop_assert_eq!(pieces.concat(), text.replace('▁', " "));
        prop_assert_eq!(pieces.concat(), LIBRARY.decode(&ids, false).unwrap());
    }

    #[test]
    fn any_ids_stream_to_what_they_decode_to(
        ids in prop::collection::vec(prop_oneof![0u32..4096, byte_token()], 0..40)
    ) {
        // Oracle: all bytes read at once.
        let bytes: Vec<u8> = ids.iter().flat_map(|id| {
            let token = LIBRARY.id_to_token(*id).unwrap();
            match token.strip_prefix("<0x").and_then(|rest| u8::from_str_radix(&rest[..2], 16).ok()) {
                Some(byte) => vec![byte],
                None => token.replace('▁', " ").into_bytes(),
            }
        }).collect();
        prop_assert_eq!(stream(&ids).concat(), String::from_utf8_lossy(&bytes));
        prop_assert_eq!(stream(&ids).concat(), PEBBLE.decode(&ids).unwrap());
    }
}

fn byte_token() -> impl Strategy<Value = u32> {
    let byte = |byte: u8| LIBRARY.token_to_id(&format!("<0x{byte:02X}>")).unwrap();
    prop_oneof![
        Just(b'a'),
        Just(0xF0),
        Just(0x9F),
        Just(0x90),
        Just(0xB1),
        Just(0xC3),
        Just(0xA4),
        any::<u8>()
    ]
    .prop_map(byte)
}
