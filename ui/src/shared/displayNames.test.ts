import { expect, it } from 'vitest';

import { directionOfSentence } from './displayNames';

it('tells the direction of a sentence, whatever names were inserted into it', () => {
  const sentences = [
    'notes.md cannot be read.',
    '\u2068notes.md\u2069 لا يمكن قراءته.',
    '«\u2068الصيف\u2069» was deleted.',
    '\u2068notes.md\u2069 – 42',
  ];
  expect(sentences.map(directionOfSentence)).toEqual(['ltr', 'rtl', 'ltr', 'auto']);
});
