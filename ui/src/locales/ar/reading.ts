import { translation } from '../en/catalogue';

/** Reading all documents of a chat: its cost, its progress. */
export const reading = translation({
  'reading.parts': { zero: 'لا أجزاء', one: 'جزء واحد', two: 'جزأين', few: '{count} أجزاء', many: '{count} جزءًا', other: '{count} جزء' },
  'reading.cost': 'المقروء: {passages} في {parts}، نحو {tokens}',
  'reading.time': 'المدة المقدّرة: {duration}',
});
