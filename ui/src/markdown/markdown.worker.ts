/** Renders long texts off the window's thread. */

import { useCatalogue } from '../locales';
import { draftWhole, useNonce } from './markdownDraft';
import type { Job, JobDone } from './markdownJobs';

self.onmessage = async ({ data }: MessageEvent<Job>) => {
  if (data.texts) useCatalogue(data.language, data.texts);
  useNonce(data.nonce);
  const done: JobDone = { id: data.id, drafts: await draftWhole(data.text, data.reading) };
  self.postMessage(done);
};

// It has started; from here on only a text can take long.
self.postMessage(null);
