//! The whole text of a model's response, which nobody waits for word by word.

use protocol::{CancelOnDrop, Content, EngineEvent, Error, ErrorCode, NoticeCode, Request};

use super::Knowledge;

impl Knowledge {
    /// The response to a request; the work ends if the future is dropped.
    ///
    /// # Errors
    /// Those of the engine; `ImageNotSeen` if an image was left out, because the response would be about something that
    /// the model never saw.
    pub(super) async fn response(&self, request: Request) -> protocol::Result<String> {
        let mut job = self.shared.engine.generate(request);
        let _cancel = CancelOnDrop(job.cancel.clone());
        let mut said = String::new();
        while let Some(event) = job.events.recv().await {
            match event {
                EngineEvent::Delta {
                    content: Content::Text { text },
                    ..
                } => said.push_str(&text),
                EngineEvent::Notice(notice) if notice.code == NoticeCode::ImageLeftOut => {
                    return Err(Error::new(ErrorCode::ImageNotSeen, notice.message));
                }
                EngineEvent::Done(_) => return Ok(said),
                EngineEvent::Failed(error) => return Err(error),
                _ => {}
            }
        }
        Err(Error::new(ErrorCode::Engine, "the model ended without a response"))
    }
}
