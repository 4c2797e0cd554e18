//! tokenizer.json and what belongs to it, out of the metadata.

mod pre;

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{json, Map, Value as Json};

use super::architecture::Architecture;
use super::file::{GgufFile, Value};
use crate::error::{Error, Result};
use pre::Pre;

/// The kinds of tokens, `tokenizer.ggml.token_type`.
const UNKNOWN: i64 = 2;
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;

/// The files of a tokenizer.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenizerFiles {
    /// tokenizer.json.
    pub tokenizer: Json,
    /// tokenizer_config.json, with the chat template.
    pub config: Json,
    /// generation_config.json.
    pub generation: Json,
    /// The ids of config.json.
    pub ids: Map<String, Json>,
}

/// The tokens of a file.
struct Tokens<'a> {
    file: &'a GgufFile,
    texts: Vec<Cow<'a, str>>,
    kinds: &'a [i64],
}

impl<'a> Tokens<'a> {
    fn of(file: &'a GgufFile) -> Result<Self> {
        let list = |key: &str| file.value(&format!("tokenizer.ggml.{key}"));
        let texts = list("tokens").and_then(Value::texts);
        let texts = texts.ok_or_else(|| file.broken("it has no list of tokens"))?;
        let kinds = list("token_type").and_then(Value::integers).unwrap_or_default();
        if !kinds.is_empty() && kinds.len() != texts.len() {
            return Err(file.broken("it has not as many kinds of tokens as tokens"));
        }
        let texts = texts.iter().map(|text| Cow::Borrowed(text.as_str())).collect();
        Ok(Self { file, texts, kinds })
    }

    /// Spells tokens that are blanks alone as SentencePiece does; llama.cpp's converter has spelled them out.
    fn spell_blanks(&mut self) {
        for id in 0..self.texts.len() {
            let text = &self.texts[id];
            if self.kind(id) == USER_DEFINED && !text.is_empty() && text.bytes().all(|byte| byte == b' ') {
                self.texts[id] = Cow::Owned(text.replace(' ', "▁"));
            }
        }
    }

    fn kind(&self, id: usize) -> i64 {
        self.kinds.get(id).copied().unwrap_or(1)
    }

    /// The id of a role, such as `bos`, if the file names a token for it.
    fn id(&self, role: &str) -> Option<u64> {
        let id = self.file.count(&format!("tokenizer.ggml.{role}_token_id"))?;
        (id < self.texts.len() as u64).then_some(id)
    }

    fn text(&self, role: &str) -> Option<&str> {
        self.texts.get(self.id(role)? as usize).map(AsRef::as_ref)
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.file.value(&format!("tokenizer.ggml.{key}")).and_then(Value::flag)
    }

    /// `added_tokens`: those that are no text, and those that are always one token.
    fn added(&self) -> Vec<Json> {
        let added = |id: &usize| matches!(self.kind(*id), CONTROL | USER_DEFINED | UNKNOWN);
        let ids = (0..self.texts.len())
            .filter(added)
            .filter(|id| !self.texts[*id].is_empty());
        let entry = |id: usize| {
            json!({"id": id, "content": self.texts[id], "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": self.kind(id) != USER_DEFINED})
        };
        ids.map(entry).collect()
    }

    fn vocabulary(&self) -> Map<String, Json> {
        let texts = self.texts.iter().enumerate();
        texts.map(|(id, text)| (text.to_string(), json!(id))).collect()
    }

    /// `post_processor`: the tokens at the beginning and the end of a text.
    fn frame(&self, begins: bool, ends: bool) -> Json {
        let (bos, eos) = (
            begins.then(|| self.text("bos").zip(self.id("bos"))).flatten(),
            ends.then(|| self.text("eos").zip(self.id("eos"))).flatten(),
        );
        if bos.is_none() && eos.is_none() {
            return Json::Null;
        }
        let special = |text: &str, kind: u32| json!({"SpecialToken": {"id": text, "type_id": kind}});
        let part = |name: &str, kind: u32| {
            let text = json!({"Sequence": {"id": name, "type_id": kind}});
            let (before, after) = (
                bos.map(|(bos, _)| special(bos, kind)),
                eos.map(|(eos, _)| special(eos, kind)),
            );
            before.into_iter().chain([text]).chain(after).collect::<Vec<_>>()
        };
        let known = bos.into_iter().chain(eos);
        let known: Map<String, Json> = known
            .map(|(text, id)| (text.to_owned(), json!({"id": text, "ids": [id], "tokens": [text]})))
            .collect();
        let pair = [part("A", 0), part("B", 1)].concat();
        json!({"type": "TemplateProcessing", "single": part("A", 0), "pair": pair,
            "special_tokens": known})
    }
}

/// Refuses files whose tokenizer is of another kind, or that have no chat template.
pub fn check_tokenizer(file: &GgufFile) -> Result<()> {
    Tokens::of(file)?;
    match file.text("tokenizer.ggml.model").unwrap_or("none") {
        "gpt2" => pre(file).map(|_| ())?,
        "llama" | "gemma4" => {}
        other => {
            return Err(Error::Unsupported(format!(
                "tokenizers of the kind `{other}` in GGUF files"
            )))
        }
    }
    file.text("tokenizer.chat_template")
        .map(|_| ())
        .ok_or(Error::NoTemplate)
}

fn pre(file: &GgufFile) -> Result<&'static Pre> {
    let name = file.text("tokenizer.ggml.pre").unwrap_or("default");
    Pre::named(name).ok_or_else(|| Error::Unsupported(format!("the pre-tokenizer `{name}` of GGUF files")))
}

/// The files of the tokenizer in a GGUF file, as [`check_tokenizer`] wants it.
pub fn tokenizer_files(file: &GgufFile, row: &Architecture) -> Result<TokenizerFiles> {
    let mut tokens = Tokens::of(file)?;
    let (tokenizer, begins) = match file.text("tokenizer.ggml.model") {
        Some("llama") => {
            tokens.spell_blanks();
            let merges = merges_by_score(&tokens)?;
            pieces(&tokens, row.blank_first, merges)
        }
        // Llama.cpp's name for pieces with a list of merges.
        Some("gemma4") => pieces(&tokens, false, listed_merges(&tokens, &tokens.vocabulary())?),
        _ => byte_level(&tokens)?,
    };
    let template = file.text("tokenizer.chat_template").ok_or(Error::NoTemplate)?;
    let mut config = json!({
        "tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false,
        "add_bos_token": begins, "chat_template": template,
    });
    let mut ids = Map::new();
    for (field, role) in [("bos", "bos"), ("eos", "eos"), ("pad", "padding"), ("unk", "unknown")] {
        let (Some(id), Some(text)) = (tokens.id(role), tokens.text(role)) else {
            continue;
        };
        config[format!("{field}_token")] = json!(text);
        if field != "unk" {
            ids.insert(format!("{field}_token_id"), json!(id));
        }
    }
    let mut ends: Vec<u64> = ["eos", "eot", "eom"]
        .iter()
        .filter_map(|role| tokens.id(role))
        .collect();
    ends.dedup();
    let mut generation = ids.clone();
    if ends.len() > 1 {
        generation.insert("eos_token_id".to_owned(), json!(ends));
        ids.insert("eos_token_id".to_owned(), json!(ends));
    }
    Ok(TokenizerFiles {
        tokenizer,
        config,
        generation: Json::Object(generation),
        ids,
    })
}

fn tokenizer(tokens: &Tokens<'_>, parts: Json) -> Json {
    let mut made = json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": tokens.added()});
    if let (Some(made), Json::Object(parts)) = (made.as_object_mut(), parts) {
        made.extend(parts);
    }
    made
}

/// GPT-2's kind: bytes as characters, and a list of merges.
fn byte_level(tokens: &Tokens<'_>) -> Result<(Json, bool)> {
    let file = tokens.file;
    let pre = pre(file)?;
    let vocabulary = tokens.vocabulary();
    let pairs = listed_merges(tokens, &vocabulary)?;
    let begins = tokens.flag("add_bos_token").unwrap_or(pre.begins);
    let ends = tokens.flag("add_eos_token").unwrap_or(false);
    let bytewise = json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true});
    let made = tokenizer(
        tokens,
        json!({
            "normalizer": if pre.composed { json!({"type": "NFC"}) } else { Json::Null },
            "pre_tokenizer": pre.json(),
            "post_processor": tokens.frame(begins, ends),
            "decoder": bytewise,
            "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": pre.whole,
                "vocab": vocabulary, "merges": pairs},
        }),
    );
    Ok((made, begins))
}

/// The list of merges, each of two tokens that make a third one.
fn listed_merges(tokens: &Tokens<'_>, vocabulary: &Map<String, Json>) -> Result<Vec<Json>> {
    let file = tokens.file;
    let merges = file.value("tokenizer.ggml.merges").and_then(Value::texts);
    let merges = merges.ok_or_else(|| file.broken("its tokenizer has no merges"))?;
    let mut pairs = Vec::new();
    for merge in merges {
        // The first character may be a blank in itself.
        let first = merge.chars().next().map_or(0, char::len_utf8);
        let pair = merge[first..]
            .find(' ')
            .map(|at| (&merge[..first + at], &merge[first + at + 1..]));
        let known = |(left, right): &(&str, &str)| {
            [*left, *right, &[*left, *right].concat()]
                .iter()
                .all(|part| vocabulary.contains_key(*part))
        };
        match pair.filter(known) {
            Some((left, right)) => pairs.push(json!([left, right])),
            None => return Err(file.broken(format!("its tokenizer merges {merge:?}, which are no tokens"))),
        }
    }
    Ok(pairs)
}

/// SentencePiece's kind: characters, bytes of those that are no tokens, and merges.
fn pieces(tokens: &Tokens<'_>, blank_first: bool, merges: Vec<Json>) -> (Json, bool) {
    let prefixed = tokens.flag("add_space_prefix").unwrap_or(blank_first);
    let blanks = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
    let spelled = json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "});
    let (normalizer, decoder) = match prefixed {
        true => (
            json!({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, blanks]}),
            json!([spelled, {"type": "ByteFallback"}, {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0}]),
        ),
        false => (blanks, json!([spelled, {"type": "ByteFallback"}, {"type": "Fuse"}])),
    };
    let begins = tokens.flag("add_bos_token").unwrap_or(true);
    let ends = tokens.flag("add_eos_token").unwrap_or(false);
    let made = tokenizer(
        tokens,
        json!({
            "normalizer": normalizer,
            "pre_tokenizer": null,
            "post_processor": tokens.frame(begins, ends),
            "decoder": {"type": "Sequence", "decoders": decoder},
            "model": {"type": "BPE", "dropout": null, "unk_token": tokens.text("unknown"),
                "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true,
                "ignore_merges": false, "vocab": tokens.vocabulary(), "merges": merges},
        }),
    );
    (made, begins)
}

/// Every way to make a token of two others: of those that are always one token the longest first, then those of higher
/// scores.
fn merges_by_score(tokens: &Tokens<'_>) -> Result<Vec<Json>> {
    let file = tokens.file;
    let scores = file.value("tokenizer.ggml.scores").and_then(Value::floats);
    let scores = scores.filter(|scores| scores.len() == tokens.texts.len());
    let scores = scores.ok_or_else(|| file.broken("its tokenizer has not as many scores as tokens"))?;
    let texts = tokens.texts.iter().enumerate();
    let ids: HashMap<&str, usize> = texts.map(|(id, text)| (text.as_ref(), id)).collect();
    let (mut always, mut found) = (Vec::new(), Vec::new());
    for (id, text) in tokens.texts.iter().enumerate() {
        let mut ways: Vec<(usize, usize)> = text
            .char_indices()
            .skip(1)
            .filter_map(|(at, _)| Some((*ids.get(&text[..at])?, *ids.get(&text[at..])?)))
            .collect();
        ways.sort_unstable();
        match tokens.kind(id) {
            USER_DEFINED => always.extend(ways),
            _ => found.extend(ways.into_iter().map(|way| (scores[id], way))),
        }
    }
    // Both stable, so that equals stay in the order of ids.
    let length = |id: usize| std::cmp::Reverse(tokens.texts[id].len());
    always.sort_by_key(|(left, right)| (length(*left), length(*right)));
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let all = always.into_iter().chain(found.into_iter().map(|(_, way)| way));
    Ok(all
        .map(|(left, right)| json!([tokens.texts[left], tokens.texts[right]]))
        .collect())
}
