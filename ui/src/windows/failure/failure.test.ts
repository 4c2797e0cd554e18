import { afterEach, describe, expect, it } from 'vitest';

import { chooseLanguage } from '../../locales/languages.svelte';
import { open, the, useWindow } from '../../testing/window';

useWindow();
afterEach(() => chooseLanguage(['en']));

describe('the window of an app that could not start', () => {
  it.each([
    ['en', 'The history in /tmp/a cannot be read.'],
    ['de', 'Sichern oder Lesen ist gescheitert. The history in /tmp/a cannot be read.'],
  ])('says why in sentences (%s)', async (language, sentence) => {
    await chooseLanguage([language]);
    await open('failure');
    expect([...the('failure').querySelectorAll('p')].map((line) => line.textContent)).toContain(sentence);
  });
});
