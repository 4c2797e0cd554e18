//! Text to token ids and back. Knows which tokens are control tokens and keeps typed text from becoming one.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::{Map, Value};
use tokenizers::AddedToken;

use super::growth::Growth;
use super::losses::most_shrinking;
use super::spelling::Spelling;
use crate::error::{Error, Result};
use crate::json_file::read;

/// Noncharacters that may escape a typed control token. One that no text contains is used.
const SENTINELS: std::ops::RangeInclusive<char> = '\u{FDD0}'..='\u{FDEF}';

/// The largest tokenizer.json; the same as the hub's.
const LARGEST: u64 = 256 << 20;

/// A model's tokenizer.json, with the tokens that tokenizer_config.json adds to it.
#[derive(Debug)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// `inner` that also splits at the first sentinel; built when a control token is first typed.
    guarded: OnceLock<tokenizers::Tokenizer>,
    spelling: Spelling,
    growth: Growth,
    /// Control tokens by their first character.
    control: HashMap<char, Vec<String>>,
    control_ids: HashMap<u32, String>,
    /// Found out when it is first asked for.
    most_bytes: OnceLock<Option<usize>>,
    /// Of the tokens, without added ones; the same.
    vocabulary_hash: OnceLock<u64>,
}

/// The parts of tokenizer.json that are looked at before it is read.
#[derive(Deserialize)]
struct Parts {
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    added_tokens: Vec<Value>,
}

impl Tokenizer {
    /// Reads `tokenizer.json` in `dir`. `config` is tokenizer_config.json, `template` the chat template's source and
    /// what else is known to be written in prompts.
    pub fn open(dir: &Path, config: &Value, template: &str) -> Result<Self> {
        Self::open_with(dir, config, template, Spelling::of)
    }

    /// The same for a model that writes nothing, so that its tokens may be spelled in any way.
    pub(crate) fn open_to_encode(dir: &Path, config: &Value) -> Result<Self> {
        Self::open_with(dir, config, "", |decoder| Ok(Spelling::of(decoder).unwrap_or_default()))
    }

    fn open_with(
        dir: &Path,
        config: &Value,
        template: &str,
        spelling: impl Fn(&Value) -> Result<Spelling>,
    ) -> Result<Self> {
        let path = dir.join("tokenizer.json");
        let bytes = read(&path, LARGEST).map_err(|source| Error::File {
            path: path.clone(),
            source,
        })?;
        // Says where broken JSON breaks; the tokenizer's own message does not.
        let parts: Parts = serde_json::from_slice(&bytes).map_err(|source| Error::Json { path, source })?;
        let growth = Growth::of(&parts.normalizer);
        let configured = config["added_tokens_decoder"]
            .as_object()
            .into_iter()
            .flat_map(Map::values);
        let added = parts.added_tokens.iter().chain(configured);
        let mut lengths = added.map(|token| token["content"].as_str().map_or(0, str::len));
        // They are normalized when they are read.
        if !lengths.all(|bytes| growth.allows(bytes)) {
            return Err(Error::Tokenizer("its normalizer makes its own tokens endless".into()));
        }
        let mut inner = tokenizers::Tokenizer::from_bytes(&bytes).map_err(broken)?;
        inner.with_truncation(None).map_err(broken)?.with_padding(None);
        add_configured_tokens(&mut inner, config)?;

        let spelling = spelling(&serde_json::to_value(inner.get_decoder()).unwrap_or_default())?;
        let mut control: HashMap<char, Vec<String>> = HashMap::new();
        let mut control_ids = HashMap::new();
        for (id, token) in inner.get_added_tokens_decoder() {
            if is_control(&token, template) {
                let first = token.content.chars().next().expect("a control token is not empty");
                control.entry(first).or_default().push(token.content.clone());
                control_ids.insert(id, token.content);
            }
        }
        Ok(Self {
            inner,
            guarded: OnceLock::new(),
            spelling,
            growth,
            control,
            control_ids,
            most_bytes: OnceLock::new(),
            vocabulary_hash: OnceLock::new(),
        })
    }

    /// Adds a control token, if there is no token of this content.
    pub(crate) fn add_control(&mut self, content: &'static str) -> Result<()> {
        if self.id(content).is_some() {
            return Ok(());
        }
        let token = AddedToken::from(content, true).normalized(false);
        self.inner.add_special_tokens([token]).map_err(broken)?;
        if let (Some(id), Some(first)) = (self.id(content), content.chars().next()) {
            self.control.entry(first).or_default().push(content.to_owned());
            self.control_ids.insert(id, content.to_owned());
        }
        Ok(())
    }

    /// The id of the token with this content, added or of the model's vocabulary.
    pub fn id(&self, content: &str) -> Option<u32> {
        self.inner.token_to_id(content)
    }

    /// The content of a token, for people.
    pub fn content(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// True for control tokens, which steer the model instead of spelling text.
    pub fn is_control(&self, id: u32) -> bool {
        self.control_ids.contains_key(&id)
    }

    /// The ids and contents of all control tokens.
    pub fn control_tokens(&self) -> &HashMap<u32, String> {
        &self.control_ids
    }

    /// Encodes a rendered template, control tokens and all. A `sentinel` in it splits the text and gets no id.
    pub(crate) fn encode_rendered(&self, text: &str, sentinel: Option<char>) -> Result<Vec<u32>> {
        self.encode_guarded(text, sentinel, false)
    }

    /// The same; `framed`: with what the tokenizer puts before and after every text.
    fn encode_guarded(&self, text: &str, sentinel: Option<char>, framed: bool) -> Result<Vec<u32>> {
        self.check_length(text.len())?;
        let Some(sentinel) = sentinel.filter(|sentinel| text.contains(*sentinel)) else {
            return Ok(self.inner.encode_fast(text, framed).map_err(broken)?.get_ids().to_vec());
        };
        let guarded = self.guarded_by(sentinel);
        let split = guarded.token_to_id(sentinel.encode_utf8(&mut [0; 4]));
        let encoding = guarded.encode_fast(text, framed).map_err(broken)?;
        let ids = encoding.get_ids().iter().copied();
        Ok(ids.filter(|id| Some(*id) != split).collect())
    }

    /// Encodes two plain texts as the pair that the tokenizer makes of them; returns ids and their types. Control
    /// tokens spelled in either become the text they look like.
    pub(crate) fn encode_pair(&self, first: &str, second: &str) -> Result<(Vec<u32>, Vec<u32>)> {
        self.check_length(first.len() + second.len())?;
        let sentinel = Self::sentinel_for([first, second]);
        let escaped = [first, second].map(|text| self.escape_control_tokens(text, sentinel));
        let guarded = match escaped.iter().any(|text| text.contains(sentinel)) {
            true => self.guarded_by(sentinel),
            false => Cow::Borrowed(&self.inner),
        };
        let split = guarded.token_to_id(sentinel.encode_utf8(&mut [0; 4]));
        let [first, second] = &escaped;
        let encoding = guarded
            .encode_fast((first.as_ref(), second.as_ref()), true)
            .map_err(broken)?;
        let ids = encoding.get_ids().iter().copied();
        let tokens = ids.zip(encoding.get_type_ids().iter().copied());
        Ok(tokens.filter(|(id, _)| Some(*id) != split).unzip())
    }

    fn check_length(&self, bytes: usize) -> Result<()> {
        match self.growth.allows(bytes) {
            true => Ok(()),
            false => Err(Error::TextTooLong { bytes }),
        }
    }

    /// The tokenizer that splits texts at this sentinel.
    fn guarded_by(&self, sentinel: char) -> Cow<'_, tokenizers::Tokenizer> {
        match sentinel == *SENTINELS.start() {
            true => Cow::Borrowed(self.guarded.get_or_init(|| guard(&self.inner, sentinel))),
            false => Cow::Owned(guard(&self.inner, sentinel)),
        }
    }

    /// Encodes plain text; control tokens spelled in it become the text they look like.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let sentinel = Self::sentinel_for([text]);
        self.encode_rendered(&self.escape_control_tokens(text, sentinel), Some(sentinel))
    }

    /// Encodes plain text with what the tokenizer puts before and after every text; control tokens spelled in it become
    /// the text they look like.
    pub(crate) fn encode_framed(&self, text: &str) -> Result<Vec<u32>> {
        let sentinel = Self::sentinel_for([text]);
        self.encode_guarded(&self.escape_control_tokens(text, sentinel), Some(sentinel), true)
    }

    /// Encodes text as it is, with what the tokenizer puts before and after every text; control tokens spelled in it
    /// are control tokens. A `sentinel` in it splits the text and gets no id.
    pub(crate) fn encode_with_beginning(&self, text: &str, sentinel: Option<char>) -> Result<Vec<u32>> {
        self.encode_guarded(text, sentinel, true)
    }

    /// The bytes a token stands for; empty for unknown ids.
    pub(crate) fn bytes(&self, id: u32) -> Vec<u8> {
        let token = self.inner.id_to_token(id);
        token.map(|token| self.spelling.bytes(token)).unwrap_or_default()
    }

    /// The bytes of every token by id, up to the last one; empty for control tokens and for ids that are none.
    pub fn vocabulary(&self) -> Vec<Vec<u8>> {
        let ids = self.inner.get_vocab(true).into_values();
        let size = ids.max().map_or(0, |last| last + 1);
        let text = |id: &u32| !self.is_control(*id);
        (0..size)
            .map(|id| Some(id).filter(text).map(|id| self.bytes(id)).unwrap_or_default())
            .collect()
    }

    /// True if the other tokenizer has the same vocabulary, whatever tokens either adds to it.
    pub fn has_tokens_of(&self, other: &Self) -> bool {
        self.vocabulary_hash() == other.vocabulary_hash()
    }

    fn vocabulary_hash(&self) -> u64 {
        *self.vocabulary_hash.get_or_init(|| {
            let mut tokens: Vec<(String, u32)> = self.inner.get_vocab(false).into_iter().collect();
            tokens.sort_unstable();
            let mut hasher = DefaultHasher::new();
            tokens.hash(&mut hasher);
            hasher.finish()
        })
    }

    /// The most bytes of a text that one token stands for, so that a text has at least its bytes divided by these as
    /// tokens. `None` if this tokenizer may drop some of a text.
    pub fn most_bytes_of_token(&self) -> Option<usize> {
        let find = || {
            let step = |step: serde_json::Result<Value>| step.unwrap_or_default();
            let normalizer = step(serde_json::to_value(self.inner.get_normalizer()));
            let pre_tokenizer = step(serde_json::to_value(self.inner.get_pre_tokenizer()));
            let shrinking = most_shrinking(&normalizer, &pre_tokenizer)?;
            let tokens = self.vocabulary();
            // A byte without a token is dropped, or becomes part of one for all that is unknown.
            let has_token = |byte: u8| tokens.iter().any(|token| *token == [byte]);
            if !(0..=0xBF).chain(0xC2..=0xF4).all(has_token) {
                return None;
            }
            let spelled = tokens.iter().map(Vec::len);
            let longest = spelled.chain(self.control_ids.values().map(String::len)).max()?;
            Some(longest * shrinking)
        };
        *self.most_bytes.get_or_init(find)
    }

    /// The offset of the first control token that a text spells.
    pub(crate) fn first_control(&self, text: &str) -> Option<usize> {
        let controls = self.control_ids.values();
        controls.filter_map(|control| text.find(control)).min()
    }

    /// A noncharacter that none of the texts contains.
    pub(crate) fn sentinel_for<'a>(texts: impl IntoIterator<Item = &'a str> + Clone) -> char {
        let unused = |candidate: &char| !texts.clone().into_iter().any(|text| text.contains(*candidate));
        SENTINELS.into_iter().find(unused).unwrap_or(*SENTINELS.start())
    }

    /// Another noncharacter that none of the texts contains, to stand for something in them.
    pub(crate) fn marker_for<'a>(texts: impl IntoIterator<Item = &'a str> + Clone) -> char {
        let unused = |candidate: &char| !texts.clone().into_iter().any(|text| text.contains(*candidate));
        SENTINELS.into_iter().rfind(unused).unwrap_or(*SENTINELS.end())
    }

    /// The text with a sentinel inside of every control token that it spells.
    pub(crate) fn escape_control_tokens<'a>(&self, text: &'a str, sentinel: char) -> Cow<'a, str> {
        let mut broken = String::new();
        let mut copied = 0;
        for (start, first) in text.char_indices() {
            let mut tokens = self.control.get(&first).into_iter().flatten();
            if tokens.any(|token| text[start..].starts_with(token.as_str())) {
                let end = start + first.len_utf8();
                broken.push_str(&text[copied..end]);
                broken.push(sentinel);
                copied = end;
            }
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        broken.push_str(&text[copied..]);
        Cow::Owned(broken)
    }

    /// How many control tokens a rendered text spells before the last one, and where that begins.
    pub(crate) fn last_control(&self, text: &str) -> (usize, Option<usize>) {
        let (mut count, mut last, mut at) = (0usize, None, 0);
        while let Some(first) = text[at..].chars().next() {
            let tokens = self.control.get(&first).into_iter().flatten();
            let spelled = tokens.filter(|token| text[at..].starts_with(token.as_str()));
            match spelled.map(String::len).max() {
                Some(length) => {
                    (count, last) = (count + 1, Some(at));
                    at += length;
                }
                None => at += first.len_utf8(),
            }
        }
        (count.saturating_sub(1), last)
    }

    /// True if the text begins or ends with part of a control token, which its neighbors in a template could complete.
    pub(crate) fn has_loose_edge(&self, text: &str) -> bool {
        let text = text.trim();
        !text.is_empty()
            && self.control.values().flatten().any(|token| {
                let mut cuts = token.char_indices().map(|(cut, _)| cut).skip(1);
                cuts.any(|cut| text.ends_with(&token[..cut]) || text.starts_with(&token[cut..]))
            })
    }
}

/// Special tokens always; others if the template or their form shows that they steer: `<think>`, `<|…|>`. Runs of
/// blanks, HTML tags and the like are added tokens of some models and stay text. A single character cannot be broken
/// up.
fn is_control(token: &AddedToken, template: &str) -> bool {
    let content = token.content.as_str();
    let blank = content.chars().all(|c| c.is_whitespace() || c == '▁');
    let word = content.chars().all(char::is_alphanumeric);
    let ends = ["think>", "tool_call>", "tool_response>", "THINK]"];
    let marker = ends.iter().any(|end| content.ends_with(end));
    let bars = content.starts_with("<|") || content.ends_with("|>");
    !blank && content.chars().count() > 1 && (token.special || bars || marker || (!word && template.contains(content)))
}

/// Tokens of `added_tokens_decoder` that tokenizer.json lacks; transformers adds them too.
fn add_configured_tokens(inner: &mut tokenizers::Tokenizer, config: &Value) -> Result<()> {
    let Some(configured) = config.get("added_tokens_decoder").and_then(Value::as_object) else {
        return Ok(());
    };
    let mut missing: Vec<(u32, AddedToken)> = configured
        .iter()
        .filter_map(|(id, token)| {
            let content = token.get("content")?.as_str()?;
            let flag = |name: &str| token.get(name).and_then(Value::as_bool).unwrap_or(false);
            let added = AddedToken::from(content, flag("special"))
                .single_word(flag("single_word"))
                .lstrip(flag("lstrip"))
                .rstrip(flag("rstrip"))
                .normalized(flag("normalized"));
            Some((id.parse().ok()?, added)).filter(|_| inner.token_to_id(content).is_none())
        })
        .collect();
    missing.sort_by_key(|(id, _)| *id);
    for (id, token) in missing {
        let content = token.content.clone();
        inner.add_tokens([token]).map_err(broken)?;
        if inner.token_to_id(&content) != Some(id) {
            return Err(Error::Tokenizer(format!(
                "tokenizer_config.json gives `{content}` the id {id}, which tokenizer.json does not have room for"
            )));
        }
    }
    Ok(())
}

/// A copy that also splits at the sentinel.
fn guard(inner: &tokenizers::Tokenizer, sentinel: char) -> tokenizers::Tokenizer {
    let mut guarded = inner.clone();
    guarded
        .add_tokens([AddedToken::from(sentinel, false).normalized(false)])
        .expect("adding a token that is not normalized calls nothing that fails");
    guarded
}

fn broken(error: tokenizers::Error) -> Error {
    Error::Tokenizer(error.to_string())
}
