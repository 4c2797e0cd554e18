//! A model's card and its name, for facts that its other files leave out: conversions by mlx-lm copy the card's tags,
//! but neither `modules.json` nor what else sentence-transformers needs.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use protocol::ModelKind;

/// More of a card than any front matter takes, in bytes.
const MOST_BYTES: u64 = 64 << 10;

/// Facts about a model outside its config.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelCard {
    /// Tags and uses, such as `sentence-transformers` or `text-generation`.
    tags: Vec<String>,
    /// Its own name and those of the models that it was made of, in small letters.
    names: Vec<String>,
}

impl ModelCard {
    /// Of these tags, as the hub lists them, and these names.
    pub fn new<'a>(tags: impl IntoIterator<Item = &'a str>, names: impl IntoIterator<Item = &'a str>) -> Self {
        let small = |text: &str| text.to_lowercase();
        let tags: Vec<String> = tags.into_iter().map(small).collect();
        let bases = tags
            .iter()
            .filter_map(|tag| tag.strip_prefix("base_model:"))
            .map(str::to_owned);
        Self {
            names: names.into_iter().map(small).chain(bases).collect(),
            tags,
        }
    }

    /// Of the model in this folder: the front matter of README.md, and the folder's name or its repository's in the
    /// Hugging Face cache.
    pub fn read(dir: &Path) -> Self {
        let mut text = Vec::new();
        if let Ok(file) = File::open(dir.join("README.md")) {
            // The part read before a failure may be enough.
            let _ = file.take(MOST_BYTES).read_to_end(&mut text);
        }
        let text = String::from_utf8_lossy(&text);
        let (tags, mut names) = front_matter(&text);
        let own = dir.components().rev().filter_map(|part| part.as_os_str().to_str());
        // `models--owner--name/snapshots/COMMIT`, or a folder of one's own.
        let in_cache = own.clone().take(3).find(|part| part.starts_with("models--"));
        names.extend(in_cache.or_else(|| own.clone().next()));
        Self::new(tags, names)
    }

    /// The purpose of the model.
    pub fn kind(&self) -> ModelKind {
        let tagged = |name: &str| self.tags.iter().any(|tag| tag == name);
        // mlx-lm tags all that it converts as text generation.
        let embeds = tagged("sentence-transformers")
            || tagged("sentence-similarity")
            || (tagged("feature-extraction") && !tagged("text-generation"))
            || self.is_named("-embedding")
            || self.is_named("embeddinggemma");
        match (tagged("text-ranking"), embeds) {
            (true, _) => ModelKind::Reranker,
            (false, true) => ModelKind::Embedding,
            (false, false) => ModelKind::Chat,
        }
    }

    /// True if its name, or that of a base model, contains this word in lower case.
    pub fn is_named(&self, word: &str) -> bool {
        self.names.iter().any(|name| name.contains(word))
    }
}

/// Tags and base models of a card's front matter. It is YAML, of which cards use lists of words and single words here.
fn front_matter(card: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut tags, mut names) = (Vec::new(), Vec::new());
    let Some(rest) = card.trim_start_matches('\u{feff}').strip_prefix("---") else {
        return (tags, names);
    };
    let mut key = "";
    for line in rest.lines().skip(1).take_while(|line| line.trim_end() != "---") {
        let value = match (line.trim_start().strip_prefix("- "), line.split_once(':')) {
            (Some(item), _) => item,
            (None, Some((name, value))) if !line.starts_with([' ', '#']) => {
                key = name.trim();
                value
            }
            _ => continue,
        };
        let words = value
            .split(',')
            .map(|word| word.trim_matches([' ', '"', '\'', '[', ']', '\t', '\r']));
        let words = words.filter(|word| !word.is_empty());
        match key {
            "tags" | "pipeline_tag" | "library_name" => tags.extend(words),
            "base_model" => names.extend(words),
            _ => {}
        }
    }
    (tags, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONVERTED: &str = "---\nlicense: apache-2.0\nbase_model: Qwen/Qwen3-Embedding-0.6B\ntags:\n- transformers\n- sentence-transformers\n- mlx\npipeline_tag: text-generation\nlibrary_name: mlx\n---\n\n# mlx-community/a\ntags: none\n";

    #[test]
    fn a_cards_front_matter_is_read() {
        let (tags, names) = front_matter(CONVERTED);
        assert_eq!(
            tags,
            ["transformers", "sentence-transformers", "mlx", "text-generation", "mlx"]
        );
        assert_eq!(names, ["Qwen/Qwen3-Embedding-0.6B"]);
        let (tags, names) =
            front_matter("---\ntags: [mlx, \"a b\"]\nbase_model:\n  - \"x/y\"\n# pipeline_tag: z\n---\n");
        assert_eq!((tags, names), (vec!["mlx", "a b"], vec!["x/y"]));
        for none in ["", "# Title\ntags: a", "---", "---\n- a"] {
            assert_eq!(front_matter(none), (vec![], vec![]), "{none}");
        }
    }

    #[test]
    fn what_a_model_is_for_is_told_by_tags_and_then_by_its_name() {
        let kind = |tags: &[&str], name: &str| ModelCard::new(tags.iter().copied(), [name]).kind();
        assert_eq!(
            kind(&["sentence-transformers", "text-generation"], "x/y"),
            ModelKind::Embedding
        );
        assert_eq!(
            kind(&["base_model:quantized:Qwen/Qwen3-Embedding-4B"], "x/y"),
            ModelKind::Embedding
        );
        assert_eq!(kind(&["feature-extraction"], "x/y"), ModelKind::Embedding);
        assert_eq!(
            kind(&["sentence-transformers", "text-ranking"], "x/y"),
            ModelKind::Reranker
        );
        assert_eq!(kind(&["feature-extraction", "text-generation"], "x/y"), ModelKind::Chat);
        assert_eq!(
            kind(&[], "models--mlx-community--Qwen3-Embedding-0.6B-4bit-DWQ"),
            ModelKind::Embedding
        );
        for name in ["mlx-community/Qwen3-4B-4bit", "embedded/Llama-3.2-1B"] {
            assert_eq!(kind(&["text-generation", "mlx"], name), ModelKind::Chat, "{name}");
        }
    }

    #[test]
    fn the_name_in_the_cache_is_the_repositorys() {
        let card = ModelCard::read(Path::new("/c/models--org--Some-Embedding-1B/snapshots/0123"));
        assert!(card.is_named("some-embedding-1b") && !card.is_named("0123"));
        assert!(ModelCard::read(Path::new("/c/My-Embedding")).is_named("my-embedding"));
    }
}
