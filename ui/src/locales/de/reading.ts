import { translation } from '../en/catalogue';

/** Reading all documents of a chat: its cost, its progress. */
export const reading = translation({
  'reading.parts': { one: '{count} Teil', other: '{count} Teilen' },
  'reading.cost': 'Liest {passages} in {parts}, etwa {tokens}',
  'reading.time': 'Geschätzte Dauer: {duration}',
});
