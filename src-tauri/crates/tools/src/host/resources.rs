//! Resources of servers, listed and read when a person asks for them.

use api::{ServerResource, ServerResources};
use futures::future::join_all;

use super::Tools;
use crate::catalog::Resource;
use crate::configuration::Server;
use crate::error::{Error, Result};
use crate::visible::visible;

/// Bytes of a resource at most: as of any file that is attached.
const LONGEST: usize = 50_000_000;

/// Characters of a file's name at most.
const LONGEST_NAME: usize = 100;

/// Variables of a template at most.
const MOST_VARIABLES: usize = 16;

/// A resource as a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceFile {
    /// Its name, which is a plain one whatever the server says.
    pub name: String,
    /// True if it says that it is an image.
    pub is_image: bool,
    /// Its bytes, which nobody has looked at.
    pub bytes: Vec<u8>,
}

impl Tools {
    /// The resources of the servers that are switched on, which are started for it.
    ///
    /// # Errors
    /// If the file of servers cannot be read; a server that does not list them says why in its place.
    pub async fn resources(&self) -> Result<Vec<ServerResources>> {
        let servers = self.0.file.get()?.servers;
        let lists = servers.iter().filter(|server| server.enabled).map(|server| async {
            let (resources, problem) = match self.resources_of(server).await {
                Ok(resources) => (resources, None),
                Err(problem) => (Vec::new(), Some(visible(&problem))),
            };
            ServerResources {
                server: server.id.clone(),
                server_name: visible(&server.name),
                resources,
                problem,
            }
        });
        let mut lists = join_all(lists).await;
        lists.retain(|list| !list.resources.is_empty() || list.problem.is_some());
        Ok(lists)
    }

    async fn resources_of(&self, server: &Server) -> std::result::Result<Vec<ServerResource>, String> {
        let running = self.0.servers.running(server).await?;
        if !running.session.has_resources() {
            return Ok(Vec::new());
        }
        let listed = running.session.resources().await.map_err(|error| error.to_string())?;
        let (resources, templates) = listed;
        let templates = templates
            .iter()
            .map(|template| shown(template, variables(&template.uri)));
        let plain = resources.iter().map(|resource| shown(resource, Vec::new()));
        Ok(plain.chain(templates).collect())
    }

    /// A resource of a server as a file: `name` is what the list calls it.
    ///
    /// # Errors
    /// [`Error::NoServer`], [`Error::NotRunning`], and [`Error::NoResource`] if it does not come, is empty or too long.
    pub async fn read_resource(&self, server: &str, uri: &str, name: &str) -> Result<ResourceFile> {
        let server = self.server(server)?;
        let running = self.0.servers.running(&server).await;
        let running = running.map_err(|reason| Error::NotRunning {
            server: server.name.clone(),
            reason,
        })?;
        let refused = |reason: String| Error::NoResource {
            server: visible(&server.name),
            reason: visible(&reason),
        };
        let read = running.session.resource(uri).await;
        let content = read.map_err(|error| refused(error.to_string()))?;
        let content = content.ok_or_else(|| refused("its answer holds no content".to_owned()))?;
        if content.bytes.len() > LONGEST {
            return Err(refused(format!("it is larger than {} MB", LONGEST / 1_000_000)));
        }
        Ok(ResourceFile {
            name: file_name(name, uri, &content.media_type),
            is_image: content.media_type.starts_with("image/"),
            bytes: content.bytes,
        })
    }
}

fn shown(resource: &Resource, variables: Vec<String>) -> ServerResource {
    let name = match resource.name.trim() {
        "" => last_segment(&resource.uri),
        name => name,
    };
    ServerResource {
        // As it is: another address would be another resource.
        uri: resource.uri.clone(),
        name: visible(name),
        description: visible(&resource.description),
        media_type: visible(&resource.media_type),
        bytes: resource.bytes,
        variables,
    }
}

/// The variables of a template of addresses (RFC 6570), without their operators.
fn variables(template: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for expression in template.split('{').skip(1) {
        let Some((inside, _)) = expression.split_once('}') else {
            continue;
        };
        let inside = inside.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
        for variable in inside.split(',') {
            let name = variable.split(':').next().unwrap_or_default().trim_end_matches('*');
            if !name.is_empty() && found.len() < MOST_VARIABLES && !found.iter().any(|known| known == name) {
                found.push(name.to_owned());
            }
        }
    }
    found
}

fn last_segment(uri: &str) -> &str {
    let path = uri.split(['?', '#']).next().unwrap_or(uri).trim_end_matches('/');
    match path.rsplit('/').next() {
        Some(last) if !last.is_empty() => last,
        _ => uri,
    }
}

/// The name of a file in which nothing leads elsewhere or hides, with an ending by which its kind is known.
fn file_name(name: &str, uri: &str, media_type: &str) -> String {
    let given = match name.trim() {
        "" => last_segment(uri),
        name => name,
    };
    let plain: String = visible(given)
        .chars()
        .map(|character| match character {
            '/' | '\\' | ':' | '\n' | '\t' => '_',
            other => other,
        })
        .take(LONGEST_NAME)
        .collect();
    let plain = plain.trim().trim_start_matches('.').to_owned();
    let plain = if plain.is_empty() { "resource".to_owned() } else { plain };
    let has_ending = plain.rsplit_once('.').is_some_and(|(_, ending)| {
        (1..=5).contains(&ending.len()) && ending.chars().all(|letter| letter.is_ascii_alphanumeric())
    });
    match ending(media_type) {
        Some(ending) if !has_ending => format!("{plain}.{ending}"),
        _ => plain,
    }
}

fn ending(media_type: &str) -> Option<&'static str> {
    let kind = media_type.split(';').next().unwrap_or_default().trim();
    Some(match kind {
        "text/markdown" => "md",
        "text/html" => "html",
        "text/csv" => "csv",
        "application/json" => "json",
        "application/pdf" => "pdf",
        "application/epub+zip" => "epub",
        "application/vnd.oasis.opendocument.presentation" => "odp",
        "application/vnd.oasis.opendocument.spreadsheet" => "ods",
        "application/vnd.oasis.opendocument.text" => "odt",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation" => "pptx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "xlsx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "message/rfc822" => "eml",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        kind if kind.starts_with("text/") => "txt",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_lead_nowhere_and_hide_nothing() {
        for (name, uri, media_type, expected) in [
            ("notes", "memo://1", "text/markdown", "notes.md"),
            ("notes.txt", "memo://1", "text/markdown", "notes.txt"),
            ("", "file:///home/me/a.pdf", "application/pdf", "a.pdf"),
            ("note", "memo://2", "message/rfc822", "note.eml"),
            ("", "demo://resource/static/7?x=/../b", "", "7"),
            ("../../etc/passwd", "a:b", "", "_.._etc_passwd"),
            ("..\\..\\x", "a:b", "", "_.._x"),
            ("  ", "a:", "text/plain", "a_.txt"),
            ("invoice\u{202e}gpj.exe", "a:b", "", "invoice⟨U+202E⟩gpj.exe"),
            ("a\nb\0c", "a:b", "image/png", "a_b⟨U+0000⟩c.png"),
            ("...", "a:b", "", "resource"),
            (
                "v1. First draft",
                "a:b",
                "text/plain; charset=utf-8",
                "v1. First draft.txt",
            ),
        ] {
            assert_eq!(file_name(name, uri, media_type), expected, "{name:?} {uri}");
        }
        let long = file_name(&"ä/".repeat(1000), "a:b", "text/plain");
        assert!(long.chars().count() <= LONGEST_NAME + 4 && !long.contains('/'));
    }

    #[test]
    fn the_variables_of_a_template_are_found() {
        assert_eq!(variables("file:///{path}"), ["path"]);
        assert_eq!(
            variables("db://{table}/{+rest*}{?limit,offset:3}{&limit}"),
            ["table", "rest", "limit", "offset"]
        );
        for none in ["a:b", "a:{", "a:{}", "a:}{"] {
            assert_eq!(variables(none), [""; 0], "{none}");
        }
        assert_eq!(variables(&"{a}{b}".repeat(9)).len(), 2);
    }
}
