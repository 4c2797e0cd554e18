import { afterEach, describe, expect, it } from 'vitest';

import { useCatalogue } from '../locales';
import { ar } from '../locales/ar';
import { de } from '../locales/de';
import { en } from '../locales/en';
import { hubModels } from '../host/fake/catalog';
import { goodFor, hubTags } from './modelText';
import FIRST from '../../../src-tauri/crates/hub/src/huggingface/recommended.json';

afterEach(() => useCatalogue('en', en));

describe('a good first model', () => {
  it.each(FIRST)('$id is said to be good for something in every language', ({ id, note }) => {
    const [model] = hubModels();
    if (!model) throw new Error('there is no model');
    expect(goodFor({ ...model, id, note })).toBe(note);
    useCatalogue('de', de);
    const german = goodFor({ ...model, id, note });
    useCatalogue('ar', ar, true);
    expect(new Set([note, german, goodFor({ ...model, id, note })]).size).toBe(3);
    expect(goodFor({ ...model, note: 'Another one.' })).toBe('Another one.');
  });
});

describe('bits', () => {
  it('are a word of the language, other formats names', () => {
    const [model] = hubModels();
    if (!model) throw new Error('there is no model');
    useCatalogue('de', de);
    expect(hubTags({ ...model, quantization: '4 bit' })[0]).toBe('4 Bit');
    expect(hubTags({ ...model, quantization: 'mxfp4' })[0]).toBe('mxfp4');
  });
});
