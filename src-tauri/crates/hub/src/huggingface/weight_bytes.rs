//! The bytes of the text model's weights in a repository, read from the headers of its safetensors files.

use checkpoint::{is_weight_file, Header};
use net::Purpose;

use crate::cache::{Commit, FilePath, RepoFiles, RepositoryId};
use crate::error::Error;
use crate::huggingface::hub_api::{checked, HubApi};

/// Bytes of the first request for a header; most headers are shorter.
const FIRST_PART: u64 = 256 << 10;

/// Bytes of the tensors that the text model of a repository reads. A file whose header cannot be read counts whole.
pub(crate) async fn weight_bytes(api: &HubApi, id: &RepositoryId, listing: &RepoFiles) -> u64 {
    let mut sum = 0u64;
    for file in listing.files.iter().filter(|file| is_weight_file(file.path.as_str())) {
        let text = match text_bytes(api, id, &listing.commit, &file.path).await {
            Ok(text) => text,
            Err(error) => {
                tracing::warn!("the header of {} of {id} could not be read: {error}", file.path);
                None
            }
        };
        sum = sum.saturating_add(text.map_or(file.bytes, |text| text.min(file.bytes)));
    }
    sum
}

async fn text_bytes(api: &HubApi, id: &RepositoryId, commit: &Commit, path: &FilePath) -> Result<Option<u64>, Error> {
    let start = beginning(api, id, commit, path, FIRST_PART).await?;
    let Some(length) = start.first_chunk().and_then(|first: &[u8; 8]| Header::length(*first)) else {
        return Ok(None);
    };
    let end = 8 + length;
    let whole = match end <= start.len() as u64 {
        true => start,
        false => beginning(api, id, commit, path, end).await?,
    };
    let header = whole.get(8..end as usize).and_then(Header::parse);
    Ok(header.map(|header| header.text_bytes()))
}

/// At most the first `most` bytes of a file. The connection of a server that sends more is dropped.
async fn beginning(
    api: &HubApi,
    id: &RepositoryId,
    commit: &Commit,
    path: &FilePath,
    most: u64,
) -> Result<Vec<u8>, Error> {
    let address = api.file_address(id, commit, path);
    let request = api.net().get(&address, Purpose::ModelInfo).range(0, Some(most - 1));
    let mut answer = checked(request.send().await?, id)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 >= most {
            bytes.truncate(most as usize);
            break;
        }
    }
    Ok(bytes)
}
