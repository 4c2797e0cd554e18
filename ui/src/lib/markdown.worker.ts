/** Reads long texts beside the window. */

import { chooseLanguage } from '../messages';
import { draftWhole, useNonce } from './markdownDraft';
import type { Job, JobDone } from './markdownJobs';

self.onmessage = async ({ data }: MessageEvent<Job>) => {
  chooseLanguage([data.language]);
  useNonce(data.nonce);
  const done: JobDone = { id: data.id, drafts: await draftWhole(data.text) };
  self.postMessage(done);
};
