//! Texts as the token ids that an embedding model reads.

use std::path::Path;

use super::tokens::Tokenizer;
use crate::error::Result;
use crate::json_file::read_json;

/// The tokenizer of a model that makes embeddings: no chat template, no answers.
#[derive(Debug)]
pub struct TextEncoder {
    tokenizer: Tokenizer,
    lower_case: bool,
}

/// A text, or a pair of them, as token ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncodedText {
    /// The ids.
    pub ids: Vec<u32>,
    /// The type of each: 0 in a text that is alone, and what the tokenizer says of a pair.
    pub types: Vec<u32>,
}

impl From<Vec<u32>> for EncodedText {
    fn from(ids: Vec<u32>) -> Self {
        Self {
            types: vec![0; ids.len()],
            ids,
        }
    }
}

impl TextEncoder {
    /// Reads `tokenizer.json` and, if it is there, tokenizer_config.json. `lower_case`: texts are written in small
    /// letters first.
    ///
    /// # Errors
    /// If they are missing or broken.
    pub fn open(dir: &Path, lower_case: bool) -> Result<Self> {
        let config = read_json(&dir.join("tokenizer_config.json"))?;
        Ok(Self {
            tokenizer: Tokenizer::open_to_encode(dir, &config)?,
            lower_case,
        })
    }

    /// The ids of a text with those that the tokenizer puts before and after every text, such as a beginning or an end;
    /// control tokens spelled in it stay text. Other texts get the ids of transformers.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        match self.lower_case {
            true => self.tokenizer.encode_framed(&text.to_lowercase()),
            false => self.tokenizer.encode_framed(text),
        }
    }

    /// A question and a text as one input, put together as the tokenizer puts pairs; control tokens spelled in either
    /// stay text.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn encode_pair(&self, question: &str, text: &str) -> Result<EncodedText> {
        let (ids, types) = match self.lower_case {
            true => self
                .tokenizer
                .encode_pair(&question.to_lowercase(), &text.to_lowercase())?,
            false => self.tokenizer.encode_pair(question, text)?,
        };
        Ok(EncodedText { ids, types })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A small WordPiece tokenizer as BERT has it.
    fn word_piece(folder: &Path) {
        let words = [
            "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "world", "##s", "[", "]", "sep",
        ];
        let vocabulary: serde_json::Map<String, serde_json::Value> = words
            .iter()
            .zip(0..)
            .map(|(word, id)| ((*word).to_owned(), json!(id)))
            .collect();
        let special = |id: usize| {
            json!({"id": id, "content": words[id], "special": true, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false})
        };
        let piece = |id: usize, kind: &str| json!({kind: {"id": words[id], "type_id": 0}});
        let tokenizer = json!({
            "version": "1.0",
            "truncation": {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0},
            "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0,
                "pad_token": "[PAD]"},
            "added_tokens": (0..5).map(special).collect::<Vec<_>>(),
            "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
                "lowercase": true},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "TemplateProcessing",
                "single": [piece(2, "SpecialToken"), {"Sequence": {"id": "A", "type_id": 0}}, piece(3, "SpecialToken")],
                "pair": [piece(2, "SpecialToken"), {"Sequence": {"id": "A", "type_id": 0}}, piece(3, "SpecialToken"),
                    {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
                "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                    "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                "vocab": vocabulary}
        });
        std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    }

    #[test]
    fn a_text_is_framed_whole_and_cannot_frame_itself() {
        let folder = tempfile::tempdir().unwrap();
        word_piece(folder.path());
        let encoder = TextEncoder::open(folder.path(), false).unwrap();
        // Neither cut nor padded, as the file asks for.
        assert_eq!(encoder.encode("Hello worlds hello").unwrap(), [2, 5, 6, 7, 5, 3]);
        assert_eq!(encoder.encode("hello [SEP] world").unwrap(), [2, 5, 8, 10, 9, 6, 3]);
        assert_eq!(encoder.encode("").unwrap(), [2, 3]);
    }

    #[test]
    fn a_pair_is_put_together_by_the_tokenizer_and_knows_its_halves() {
        let folder = tempfile::tempdir().unwrap();
        word_piece(folder.path());
        let encoder = TextEncoder::open(folder.path(), false).unwrap();
        let pair = encoder.encode_pair("hello", "world [SEP] hello").unwrap();
        assert_eq!(pair.ids, [2, 5, 3, 6, 8, 10, 9, 5, 3]);
        assert_eq!(pair.types, [0, 0, 0, 1, 1, 1, 1, 1, 1]);
    }
}
