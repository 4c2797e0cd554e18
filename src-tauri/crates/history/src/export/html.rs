//! Chats as one page for a browser: everything is in it, nothing is fetched and nothing runs.

use std::fmt::Write;

use api::ChatView;
use protocol::{Content, Role};

use crate::export::text::{extent, speaker, title, ExportedImages};
use crate::{History, Result};

/// The head of every page. Its policy refuses every script and every address, so that no text can become more than a
/// text.
const HEAD: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>Chats</title>
<style>
:root { color-scheme: light dark; }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; }
nav a { display: block; }
article { margin: 3rem 0; }
section { margin: 1.2rem 0; }
h3 { margin: 0 0 .3rem; font-size: .8rem; opacity: .65; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; }
pre { padding: .7rem; border: 1px solid #8885; border-radius: 8px; overflow: auto; }
details { opacity: .75; }
img { max-width: 100%; border-radius: 8px; }
</style>
"#;

impl History {
    /// The branch of a chat that is looked at, as a part of a [`page`]. These images stand in it, others by name.
    pub async fn export_html(&self, chat: &str, images: &ExportedImages) -> Result<String> {
        Ok(article(&self.chat(chat).await?, images))
    }
}

/// A page of these articles, with their titles first if they are several.
pub fn page(articles: &[(String, String)]) -> String {
    let mut page = HEAD.to_owned();
    if articles.len() > 1 {
        page.push_str("<nav>\n");
        for (place, (title, _)) in articles.iter().enumerate() {
            let _ = writeln!(page, "<a href=\"#chat-{place}\" dir=\"auto\">{}</a>", escaped(title));
        }
        page.push_str("</nav>\n");
    }
    for (place, (_, article)) in articles.iter().enumerate() {
        let _ = writeln!(page, "<article id=\"chat-{place}\">\n{article}</article>");
    }
    page.push_str("</html>\n");
    page
}

fn article(view: &ChatView, images: &ExportedImages) -> String {
    let mut out = format!("<h1 dir=\"auto\">{}</h1>\n", escaped(title(view)));
    if !view.settings.system_prompt.is_empty() {
        let instructions = text(&view.settings.system_prompt);
        let _ = writeln!(out, "<section><h3>Instructions</h3>{instructions}</section>");
    }
    for message in &view.messages {
        let class = if message.role == Role::User {
            "question"
        } else {
            "answer"
        };
        let speaker = escaped(speaker(message));
        let _ = writeln!(out, "<section class=\"{class}\"><h3 dir=\"auto\">{speaker}</h3>");
        for part in &message.parts {
            let _ = match &part.content {
                Content::Text { text: words } => writeln!(out, "{}", text(words)),
                Content::Thinking { text: words } => {
                    writeln!(out, "<details><summary>Thought</summary>{}</details>", text(words))
                }
                Content::ToolCall { call } => {
                    let (name, arguments) = (escaped(&call.name), escaped(&format!("{:#}", call.arguments)));
                    writeln!(out, "<p>Called <code>{name}</code></p><pre>{arguments}</pre>")
                }
                Content::Data { data } => writeln!(out, "<pre>{}</pre>", escaped(&format!("{data:#}"))),
                Content::Image { attachment, alt, .. } if images.contains_key(attachment) => {
                    let (media_type, bytes) = &images[attachment];
                    let (address, alt) = (escaped(&bytes.to_data_url(media_type)), escaped(alt));
                    writeln!(out, "<img src=\"{address}\" alt=\"{alt}\">")
                }
                Content::Image { .. } | Content::File { .. } => {
                    let name = escaped(&part.content.as_text().unwrap_or_default());
                    writeln!(out, "<p><em>{name}</em></p>")
                }
                Content::Passages { passages, coverage } => {
                    let mut sources = String::new();
                    for passage in passages {
                        let (number, place) = (passage.number, escaped(&passage.place()));
                        let (hash, text) = (escaped(&passage.file_hash), escaped(&passage.text));
                        let _ = write!(sources, "<p>[{number}] {place}, SHA-256 {hash}</p><pre>{text}</pre>");
                    }
                    let extent = extent(coverage);
                    writeln!(out, "<details><summary>{extent}</summary>{sources}</details>")
                }
            };
        }
        if let Some(error) = &message.error {
            let _ = writeln!(out, "<p><em>Failed: {}</em></p>", escaped(&error.message));
        }
        out.push_str("</section>\n");
    }
    out
}

/// A text as it was written, with what stands between fences as code.
fn text(words: &str) -> String {
    let mut out = String::new();
    let (mut run, mut code) = (String::new(), false);
    let mut close = |run: &mut String, code: bool| {
        if code {
            let _ = write!(out, "<pre><code>{}</code></pre>", escaped(run));
        } else if !run.trim().is_empty() {
            let words = escaped(run.trim_matches('\n'));
            let _ = write!(out, "<div class=\"text\" dir=\"auto\">{words}</div>");
        }
        run.clear();
    };
    for line in words.lines() {
        if line.trim_start().starts_with("```") {
            close(&mut run, code);
            code = !code;
        } else {
            run.push_str(line);
            run.push('\n');
        }
    }
    close(&mut run, code);
    out
}

/// A text that no browser takes for markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\0' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
