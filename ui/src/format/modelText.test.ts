import { afterEach, describe, expect, it } from 'vitest';

import type { ModelNote } from '../bindings/ModelNote';
import { useCatalogue } from '../locales';
import { ar } from '../locales/ar';
import { de } from '../locales/de';
import { en } from '../locales/en';
import { hubModels } from '../host/fake/catalog';
import { goodFor, hubTags } from './modelText';
import FIRST from '../../../src-tauri/crates/hub/src/huggingface/recommended.json';

afterEach(() => useCatalogue('en', en));

describe('a good first model', () => {
  it.each(FIRST)('$id is said to be good for something in every language', ({ note }) => {
    const [model] = hubModels();
    if (!model) throw new Error('there is no model');
    const of = { ...model, note: note as ModelNote };
    const english = goodFor(of);
    useCatalogue('de', de);
    const german = goodFor(of);
    useCatalogue('ar', ar, true);
    const said = [english, german, goodFor(of)];
    expect(new Set(said).size).toBe(3);
    expect(said.every((text) => text !== null && !text.includes('firstModel.'))).toBe(true);
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
